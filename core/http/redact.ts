import { holdsKey } from '../keys/format.ts'

const redacted = '[redacted]'
/** A key may have been encoded more than once on its way. */
const maxDecodings = 3

/** A name that a client made up, safe to be said back: never something in the shape of a key, encoded or not. */
export function sayable(name: string): string {
  return hidesKey(name) ? redacted : name
}

/** A path that is safe to be said back and logged: the root when something in the shape of a key is in it. */
export function sayablePath(path: string): string {
  return hidesKey(path) ? '/' : path
}

function hidesKey(text: string): boolean {
  let decoded = text
  for (let time = 0; time <= maxDecodings; time++) {
    if (holdsKey(decoded.replace(invisible, ''))) return true
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
