/** The digests of imported keys. All stores share them. */
import type { Change, DigestScheme } from '../../core/ports/changes.ts'
import { hmacSha256, sha256 } from '../digest.ts'
import { createRowFormat } from './row-format.ts'

export const DIGEST_SCHEMES = createRowFormat<DigestScheme>()(['id', 'algorithm', 'prefix', 'secret'])

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

/** The schemes of issued keys, each once. */
export function schemesOf(changes: readonly Change[]): readonly DigestScheme[] {
  const schemes = changes.flatMap((change) => change.type === 'key.issued' ? change.scheme ?? [] : [])
  return [...new Map(schemes.map((scheme) => [scheme.id, scheme])).values()]
}
