import { listText } from './sql.ts'
import type { Query } from './database.ts'

/** Folded words as the server's full-text types hold them: letters and digits only, so that nothing needs escaping. */

/**
 * Bytes of UTF-8 that a lexeme may have. Longer words lose their ends, where they are kept and where they are asked for.
 * Nobody can tell through the API: no character folds to more than 18 bytes of one word, and a search has 100.
 */
const maxLexemeBytes = 2046

/** The text of a `tsvector` without positions. That of a profile is far below the megabyte that it may have. */
export function wordVector(words: Iterable<string>): string {
  return Array.from(words, quoteLexeme).join(' ')
}

/** The text of a `tsquery` that holds where each word starts a lexeme. */
export function prefixQuery(words: readonly string[]): string {
  return words.map((word) => `${quoteLexeme(word)}:*`).join(' & ')
}

function quoteLexeme(word: string): string {
  return `'${truncateText(word)}'`
}

/** The first characters of a text, as many as have `maxBytes` bytes together, or all of them. */
function truncateText(text: string): string {
  // No unit of UTF-16 is more than three bytes.
  if (text.length * 3 <= maxLexemeBytes) return text
  let bytes = 0
  let end = 0
  for (const character of text) {
    bytes += utf8Length(character.codePointAt(0)!)
    if (bytes > maxLexemeBytes) break
    end += character.length
  }
  return text.slice(0, end)
}

function utf8Length(codePoint: number): number {
  return codePoint < 0x80 ? 1 : codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4
}

/** What a listing counts under: its audience, country and industry. */
export type CounterKey = readonly [audience: string, country: string, industry: string]

/** Gathers how a transaction changes the number of listings. */
export interface ListingCounter {
  add(key: CounterKey, listings: 1 | -1): void
  /** Writes what was gathered. */
  flush(query: Query): Promise<void>
}

/** A row is changed once, however many listings it counts: no transaction waits for its own old versions of it. */
export function createListingCounter(): ListingCounter {
  const changes = new Map<string, { readonly key: CounterKey; listings: number }>()
  return {
    add(key, listings) {
      const text = key.join('\n')
      const change = changes.get(text)
      if (change === undefined) changes.set(text, { key, listings })
      else change.listings += listings
    },

    async flush(query) {
      const changed = [...changes.values()].filter(({ listings }) => listings !== 0)
      changes.clear()
      if (changed.length === 0) return
      await query(
        `INSERT INTO partner_api.tally (audience, country, industry, listings)
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
          AS change (audience, country, industry, listings)
        ORDER BY audience, country, industry
        ON CONFLICT (audience, country, industry) DO UPDATE SET listings = tally.listings + excluded.listings`,
        [
          ...[0, 1, 2].map((part) => listText(changed.map(({ key }) => key[part]!))),
          listText(changed.map(({ listings }) => listings)),
        ],
      )
    },
  }
}
