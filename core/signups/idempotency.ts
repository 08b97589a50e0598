import { containsKey } from '../http/redact.ts'

/** The header field that makes a request safe to repeat. */
export const IDEMPOTENCY_HEADER = 'Idempotency-Key'

const maxLength = 255

/** What a field's value says: a key, or what is wrong with it. */
export type IdempotencyKey = { readonly key: string } | { readonly detail: string }

/**
 * Reads `Idempotency-Key`: 1–255 printable ASCII characters, bare or as a string (RFC 9651 §3.3.3). The same key
 * in both forms is the same key.
 *
 * @param isRepeated Whether the request had several such fields, which are joined by a comma and a space (RFC 9110
 * §5.3). Where that is not known, a key that contains both has to be in quotes.
 */
export function readIdempotencyKey(value: string, isRepeated?: boolean): IdempotencyKey {
  // A key is kept, and nothing in the shape of a credential ever is.
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

/**
 * A JSON value as text that is the same for equal values: members in the order of their names' UTF-16 units, and
 * every number and string as ECMAScript writes it (RFC 8785 §3.2).
 *
 * @param value What `JSON.parse` made.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  const members = Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join()}}`
}
