/** A query string taken apart: each name with its values in order. */
export interface Query {
  readonly values: ReadonlyMap<string, readonly string[]>
  /** Names with a value that is not percent-encoded UTF-8. */
  readonly malformed: ReadonlySet<string>
}

/**
 * Reads `application/x-www-form-urlencoded` text: `+` is a space, and empty pieces are passed over
 * (URL living standard §5.1), but malformed percent-encoding is told, not kept.
 */
export function readQuery(text: string): Query {
  const values = new Map<string, string[]>()
  const malformed = new Set<string>()
  for (const piece of text === '' ? [] : text.split('&')) {
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

/** Whether every escape of a text is part of percent-encoded UTF-8 (RFC 3986 §2.1). */
export function isPercentEncoded(text: string): boolean {
  return decodePercent(text) !== undefined
}

function decode(text: string): string | undefined {
  return decodePercent(text.includes('+') ? text.replaceAll('+', ' ') : text)
}

function decodePercent(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
