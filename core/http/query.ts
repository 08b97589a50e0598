import { Problem } from './problem.ts'
import { containsKey } from './redact.ts'

/**
 * The partner that a query names.
 *
 * @throws {Problem} `invalid_parameter` if it is repeated, malformed or looks like a key.
 */
export function readPartner(query: Query): string | undefined {
  const texts = query.values.get('partner')
  const detail = texts && valueError(query, 'partner', texts, 1)
  if (detail === undefined) return texts?.[0]
  throw new Problem('invalid_parameter', { errors: [{ parameter: 'partner', detail }] })
}

export const KEY_IN_URL = 'looks like a key, which must not be sent in a URL'

/** What is wrong with the values of a parameter, whatever it means. */
export function valueError(
  query: Query,
  name: string,
  texts: readonly string[],
  most: number,
): string | undefined {
  if (query.malformed.has(name)) return 'is not percent-encoded UTF-8'
  if (texts.length > most) {
    return most === 1 ? 'must not be repeated' : `must not have more than ${most} values`
  }
  return texts.some(containsKey) ? KEY_IN_URL : undefined
}

/** A parsed query string: each name with its values in order. */
export interface Query {
  readonly values: ReadonlyMap<string, readonly string[]>
  /** Names with a value that is not percent-encoded UTF-8. */
  readonly malformed: ReadonlySet<string>
}

/**
 * Parses `application/x-www-form-urlencoded` text: `+` is a space, and empty pieces are ignored (URL living standard
 * §5.1), but malformed percent-encoding is reported.
 */
export function readQuery(text: string): Query {
  const values = new Map<string, string[]>()
  const malformed = new Set<string>()
  for (const piece of text.split('&')) {
    if (piece === '') continue
    const separator = piece.indexOf('=')
    const rawName = separator < 0 ? piece : piece.slice(0, separator)
    const name = decode(rawName) ?? rawName
    const value = separator < 0 ? '' : decode(piece.slice(separator + 1))
    if (value === undefined) malformed.add(name)
    const known = values.get(name)
    if (known === undefined) values.set(name, [value ?? ''])
    else known.push(value ?? '')
  }
  return { values, malformed }
}

/** Whether every escape is part of percent-encoded UTF-8 (RFC 3986 §2.1). */
export function isPercentEncoded(text: string): boolean {
  return decodePercent(text) !== undefined
}

function decode(text: string): string | undefined {
  return decodePercent(text.includes('+') ? text.replaceAll('+', ' ') : text)
}

function decodePercent(text: string): string | undefined {
  if (!text.includes('%')) return text
  // `decodeURIComponent` would throw, and a query can have two thousand malformed pieces: 10 µs for each error.
  return text.replace(percentEncoded, '').includes('%') ? undefined : decodeURIComponent(text)
}

/** A character as percent-encoded UTF-8 (RFC 3629 §4). */
const percentEncoded = new RegExp(
  [
    '%[0-7]X',
    '%(?:C[2-9A-F]|DX)T',
    '%(?:E0%[AB]X|E[1-9ABCEF]T|ED%[89]X)T',
    '%(?:F0%[9AB]XT|F[1-3]TT|F4%8XT)T',
  ].join('|').replaceAll('T', '%[89AB]X').replaceAll('X', '[0-9A-F]'),
  'gi',
)
