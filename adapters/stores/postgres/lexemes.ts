/** Folded words as the server's full-text types hold them: letters and digits only, so that nothing needs escaping. */
import { cutText } from './cut-text.ts'

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
  return `'${cutText(word, maxBytes)}'`
}
