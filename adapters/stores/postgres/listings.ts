import { query, rowsSql, type Work } from '../sql/database.ts'
import { DIALECT } from './sql.ts'

/**
 * Bytes of UTF-8 that Postgres allows in a lexeme. Longer words are truncated, in listings and in searches. The API
 * does not show it: a search has 100 characters, and none folds to more than 18 bytes of one word.
 */
const maxLexemeBytes = 2046

/** The text of a `tsvector` without positions. Folded words are letters and digits: nothing needs escaping. */
export function wordVector(words: Iterable<string>): string {
  return Array.from(words, quoteLexeme).join(' ')
}

/** The text of a `tsquery` for all `words` as prefixes. */
export function prefixQuery(words: readonly string[]): string {
  return words.map((word) => `${quoteLexeme(word)}:*`).join(' & ')
}

function quoteLexeme(word: string): string {
  // No unit of UTF-16 is more than three bytes.
  if (word.length * 3 <= maxLexemeBytes) return `'${word}'`
  const bytes = new TextEncoder().encode(word).subarray(0, maxLexemeBytes)
  // A stream may be continued: the first half of a character is left out.
  return `'${new TextDecoder().decode(bytes, { stream: true })}'`
}

/** The columns by which listings are counted. */
export type CounterKey = readonly [audience: string, country: string, industry: string]

const counterColumns = ['audience', 'country', 'industry', 'listings']
const addToCounters = `
  INSERT INTO partner_api.tally (${counterColumns})
  SELECT ${counterColumns} FROM ${
  rowsSql(DIALECT, counterColumns)
} AS change ORDER BY audience, country, industry
  ON CONFLICT (audience, country, industry) DO UPDATE SET listings = tally.listings + excluded.listings`

/** Sums up how a transaction changes the number of listings, so that each row is updated once. */
export function createListingCounter() {
  const changes = new Map<string, { readonly key: CounterKey; listings: number }>()
  return {
    add(key: CounterKey, listings: 1 | -1): void {
      const text = key.join('\n')
      const change = changes.get(text)
      if (change === undefined) changes.set(text, { key, listings })
      else change.listings += listings
    },

    *flush(): Work<void> {
      const changed = [...changes.values()].filter(({ listings }) => listings !== 0)
      changes.clear()
      if (changed.length === 0) return
      yield* query(addToCounters, [JSON.stringify(changed.map(({ key, listings }) => [...key, listings]))])
    },
  }
}
