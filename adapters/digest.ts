import { Buffer } from 'node:buffer'
import { createHmac, hash } from 'node:crypto'
import type { DigestScheme } from '../core/ports/changes.ts'

/** SHA-256 of the UTF-8 bytes of `text`, 64 lower-case hexadecimal digits. Synchronous, unlike `crypto.subtle`. */
export function sha256(text: string): string {
  return hash('sha256', text, 'hex')
}

/** HMAC-SHA-256 of the UTF-8 bytes of `text` with a secret in hexadecimal, as 64 lower-case hexadecimal digits. */
function hmacSha256(secret: string, text: string): string {
  return createHmac('sha256', Buffer.from(secret, 'hex')).update(text).digest('hex')
}

/** Fewer characters cannot have the 128 bits that make it impossible to find a key by its digest. */
const minHashedLength = 16

/** The digests that a key with this text may have: that of the longest prefix first. */
export function digestsOf(text: string, schemes: readonly DigestScheme[]): readonly string[] {
  return schemes
    .filter(({ prefix }) => text.startsWith(prefix) && text.length >= prefix.length + minHashedLength)
    .sort((a, b) => b.prefix.length - a.prefix.length || (a.id < b.id ? -1 : 1))
    .map(({ id, algorithm, prefix, secret }) => {
      const hashed = text.slice(prefix.length)
      return `${id}:${algorithm === 'sha256' ? sha256(hashed) : hmacSha256(secret, hashed)}`
    })
}
