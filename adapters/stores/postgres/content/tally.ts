import { listText, type Query } from '../connection/database.ts'

/** What a listing counts under: its audience, country and industry. */
export type TallyKey = readonly [audience: string, country: string, industry: string]

/** Gathers how a transaction changes the number of listings. */
export interface Tally {
  add(key: TallyKey, listings: 1 | -1): void
  /** Writes what was gathered. */
  write(query: Query): Promise<void>
}

/** A row is changed once, however many listings it counts: no transaction waits for its own old versions of it. */
export function createTally(): Tally {
  const changes = new Map<string, { readonly key: TallyKey; listings: number }>()
  return {
    add(key, listings) {
      const text = key.join('\n')
      const change = changes.get(text)
      if (change === undefined) changes.set(text, { key, listings })
      else change.listings += listings
    },

    async write(query) {
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
