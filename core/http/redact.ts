const redacted = '[redacted]'
/** A key may have been percent-encoded repeatedly. */
const maxDecodings = 3

/** A client's text for a response; redacted if it contains something that looks like a key, encoded or not. */
export function redactKeys(name: string): string {
  return containsEncoded(name, containsKey) ? redacted : name
}

/**
 * A path for responses, the log and traces: `/` if it contains something that looks like a key, and with `…` for each
 * segment that contains something that looks like the token of a claim.
 */
export function redactPath(path: string): string {
  if (containsEncoded(path, containsKey)) return '/'
  return path.replace(
    /[^/]{28,}/g,
    (segment) => containsEncoded(segment, (text) => tokenShape.test(text)) ? '…' : segment,
  )
}

/** Up to four characters may be missing. Hexadecimal digests and ids have letters of one case. */
const tokenShape = /(?<![0-9A-Za-z])(?=[0-9A-Z]*[a-z])(?=[0-9a-z]*[A-Z])[0-9A-Za-z]{28}/

function containsEncoded(text: string, isSecret: (text: string) => boolean): boolean {
  let decoded = text
  for (let time = 0; time <= maxDecodings; time++) {
    if (isSecret(decoded.replace(invisible, ''))) return true
    if (!decoded.includes('%')) return false
    decoded = decodeLoosely(decoded)
  }
  return false
}

/** What is not visible in ASCII, such as a line break in a copied key, and spaces of a query. */
const invisible = /[^!-*,-~]+/g

/** Decodes bytes: none of a character outside ASCII is visible. */
function decodeLoosely(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)))
}

const maxCodePoints = 60

/** Input for a message: quoted, cut to 60 code points, without terminal control characters, and never a key. */
export function formatValue(value: unknown): string {
  if (typeof value === 'string') return containsKey(value) ? 'a value that looks like a key' : quote(value)
  if (Array.isArray(value)) return 'a list'
  if (value === undefined) return 'nothing'
  if (typeof value === 'function') return 'a function'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

function quote(text: string): string {
  // A code point has at most two UTF-16 units.
  const points = Array.from(text.slice(0, 2 * maxCodePoints + 2))
  const shown = points.length > maxCodePoints ? points.slice(0, maxCodePoints).join('') + '…' : text
  // JSON.stringify does not escape C1 controls and format characters such as bidirectional overrides.
  return JSON.stringify(shown).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  )
}

/** The part of a key that follows its prefix. */
export const KEY_SHAPE: RegExp = /_(?:live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}/

/** Whether a text contains something that looks like a key: such text is never echoed or logged. */
export function containsKey(text: string): boolean {
  return KEY_SHAPE.test(text)
}
