import { holdsKey } from '../keys/format.ts'

const maxShown = 60

/**
 * A value that arrived, fit to stand in a message: text quoted, cut to 60 code points, with nothing in it
 * that a terminal would obey, and not shown at all when it holds something in the shape of a key.
 */
export function echo(value: unknown): string {
  if (typeof value === 'string') return holdsKey(value) ? 'a value in the shape of a key' : quote(value)
  if (Array.isArray(value)) return 'a list'
  if (value === undefined) return 'nothing'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

function quote(text: string): string {
  // Twice the limit in UTF-16 units always holds that many code points.
  const points = Array.from(text.slice(0, 2 * maxShown + 2))
  const shown = points.length > maxShown ? points.slice(0, maxShown).join('') + '…' : text
  // JSON leaves C1 controls and format characters (bidirectional overrides) as they are.
  return JSON.stringify(shown).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  )
}
