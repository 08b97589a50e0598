/** Folded words as the server's full-text types hold them: letters and digits only, so that nothing needs escaping. */

/**
 * Bytes of UTF-8 that a lexeme may have. Longer words lose their ends, where they are kept and where they are asked for.
 * Nobody can tell through the API: no character folds to more than 18 bytes of one word, and a search has 100.
 */
const maxBytes = 2046

/** The text of a `tsvector` without positions. That of a profile is far below the megabyte that it may have. */
export function wordVector(words: Iterable<string>): string {
  return Array.from(words, quoted).join(' ')
}

/** The text of a `tsquery` that holds where each word starts a lexeme. */
export function prefixQuery(words: readonly string[]): string {
  return words.map((word) => `${quoted(word)}:*`).join(' & ')
}

function quoted(word: string): string {
  return `'${cutText(word)}'`
}

/** The first characters of a text, as many as have `maxBytes` bytes together, or all of them. */
function cutText(text: string): string {
  // No unit of UTF-16 is more than three bytes.
  if (text.length * 3 <= maxBytes) return text
  let bytes = 0
  let end = 0
  for (const character of text) {
    bytes += utf8Length(character.codePointAt(0)!)
    if (bytes > maxBytes) break
    end += character.length
  }
  return text.slice(0, end)
}

function utf8Length(codePoint: number): number {
  return codePoint < 0x80 ? 1 : codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4
}
