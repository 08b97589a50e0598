const redacted = '[redacted]'
/** A key may have been encoded more than once on its way. */
const maxDecodings = 3

/** A name that a client made up, safe to be said back: never something in the shape of a key, encoded or not. */
export function redactKeys(name: string): string {
  return containsEncodedKey(name) ? redacted : name
}

/** A path that is safe to be said back and logged: the root when something in the shape of a key is in it. */
export function redactPath(path: string): string {
  return containsEncodedKey(path) ? '/' : path
}

function containsEncodedKey(text: string): boolean {
  let decoded = text
  for (let time = 0; time <= maxDecodings; time++) {
    if (containsKey(decoded.replace(invisible, ''))) return true
    if (!decoded.includes('%')) return false
    decoded = decodeLoosely(decoded)
  }
  return false
}

/** What may stand in a copied key without being seen, or is a space in a query. */
const invisible = /[\p{Cf}\p{Z}+]+/gu

/** Every escape that stands for one ASCII character decoded: a key holds no others. */
function decodeLoosely(text: string): string {
  return text.replace(/%([0-7][0-9a-f])/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)))
}

const maxCodePoints = 60

/**
 * A value that arrived, fit to stand in a message: text quoted, cut to 60 code points, with nothing in it
 * that a terminal would obey, and not shown at all when it holds something in the shape of a key.
 */
export function formatValue(value: unknown): string {
  if (typeof value === 'string') return containsKey(value) ? 'a value in the shape of a key' : quote(value)
  if (Array.isArray(value)) return 'a list'
  if (value === undefined) return 'nothing'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

function quote(text: string): string {
  // Twice the limit in UTF-16 units always holds that many code points.
  const points = Array.from(text.slice(0, 2 * maxCodePoints + 2))
  const shown = points.length > maxCodePoints ? points.slice(0, maxCodePoints).join('') + '…' : text
  // JSON leaves C1 controls and format characters (bidirectional overrides) as they are.
  return JSON.stringify(shown).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  )
}

/** What every key has, whatever its prefix: all that follows the prefix. */
export const KEY_SHAPE: RegExp = /_(?:live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}/

/**
 * Whether a text holds something in the shape of a key, whatever its prefix: such a value is never echoed
 * and never logged.
 */
export function containsKey(text: string): boolean {
  return KEY_SHAPE.test(text)
}
