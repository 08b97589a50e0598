import { containsKey } from '../http/redact.ts'
import type { Sha256 } from '../lib/digest.ts'
import { type IdempotencyReservation, RESERVATION_LIFETIME_MS } from '../ports/signups.ts'

const maxLength = 255

/**
 * Parses `Idempotency-Key`: 1–255 printable ASCII characters, bare or as a string (RFC 9651 §3.3.3). Both
 * forms of a key are equal.
 *
 * @param isRepeated Whether the request had several such fields, which are joined by a comma and a space (RFC 9110
 * §5.3). If that is unknown, a key that contains both must be quoted.
 * @returns The key, or an error message as `detail`.
 */
export function readIdempotencyKey(
  value: string,
  isRepeated?: boolean,
): { readonly key: string } | { readonly detail: string } {
  // Idempotency keys are stored, and credentials never are.
  if (containsKey(value)) return { detail: 'must not hold a key of this service' }
  if (!/^[\x20-\x7e]*$/.test(value)) return { detail: 'must be printable ASCII' }
  const key = value.startsWith('"') ? unquote(value) : value
  if (key === undefined || (key === value && isUnbalanced(value))) {
    return { detail: 'must be one key, bare or in balanced quotes with only \\" and \\\\ escaped' }
  }
  if (isRepeated ?? (key === value && value.includes(', '))) {
    return { detail: 'must not be repeated; a key with a comma and a space in it is put in quotes' }
  }
  if (key === '') return { detail: 'must not be empty' }
  return key.length > maxLength ? { detail: `must have at most ${maxLength} characters` } : { key }
}

function unquote(value: string): string | undefined {
  const [, inside] = /^"((?:[^"\\]|\\["\\])*)"$/.exec(value) ?? []
  return inside?.replace(/\\(.)/g, '$1')
}

function isUnbalanced(value: string): boolean {
  return value.split('"').length % 2 === 0
}

/** Reserves an idempotency key for a body: a retry has an equal one. */
export function createReservation(
  key: string,
  body: unknown,
  now: number,
  sha256: Sha256,
): IdempotencyReservation {
  return { key, fingerprint: sha256(canonicalJson(body)), expiresAt: now + RESERVATION_LIFETIME_MS }
}

/**
 * Formats a JSON value so that equal values have equal texts: members in the order of their names' UTF-16 units,
 * numbers and strings as in ECMAScript (RFC 8785 §3.2).
 */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  const members = Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join()}}`
}
