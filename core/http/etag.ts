import type { Sha256 } from '../digest.ts'

/**
 * A strong entity tag for a body (RFC 9110 §8.8.3): half a SHA-256, quoted.
 */
export function entityTag(body: string, sha256: Sha256): string {
  return `"${sha256(body).slice(0, 32)}"`
}

/** Whether `If-None-Match` names the tag (RFC 9110 §13.1.2, compared weakly). */
export function matchesNone(ifNoneMatch: string, tag: string): boolean {
  if (ifNoneMatch === tag || ifNoneMatch.trim() === '*') return true
  for (const [, opaque] of ifNoneMatch.matchAll(/(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g)) {
    if (opaque === tag) return true
  }
  return false
}
