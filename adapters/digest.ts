import { Buffer } from 'node:buffer'
import { createHmac, hash } from 'node:crypto'

/**
 * SHA-256 of the UTF-8 bytes of `text`, 64 lower-case hexadecimal digits. Synchronous: on Node, `crypto.subtle` takes
 * 14 µs per digest and this 0.2 µs.
 */
export function sha256(text: string): string {
  return hash('sha256', text, 'hex')
}

/** HMAC-SHA-256 of the UTF-8 bytes of `text` with a secret in hexadecimal, as 64 lower-case hexadecimal digits. */
export function hmacSha256(secret: string, text: string): string {
  return createHmac('sha256', Buffer.from(secret, 'hex')).update(text).digest('hex')
}
