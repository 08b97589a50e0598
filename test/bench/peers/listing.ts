/**
 * The directory as a peer answers it when nothing is kept: the store's own pages and cards, so that what is
 * compared is everything around them. A peer's cursor is not signed and its answer has no ETag: less than the
 * service does.
 */
import { isCountryCode } from '../../../core/content/iso-codes.ts'
import { fold } from '../../../core/lib/text.ts'
import type { ProfileSort } from '../../../core/ports/directory.ts'
import type { Store } from '../../../core/ports/store.ts'
import { toWireCard } from '../../../core/routes/profiles.ts'
import type { ProfileCard as WireCard } from '../../../core/wire.ts'

/** The parameters of the directory, judged. */
export interface Listing {
  readonly countries: readonly string[]
  readonly industries: readonly string[]
  readonly sort: ProfileSort
  readonly limit: number
}

/** What is answered. */
export interface ListingAnswer {
  readonly data: readonly WireCard[]
  readonly page: { readonly limit: number; readonly has_more: boolean; readonly next_cursor: string | null }
}

export async function answerListing(store: Store, partner: string, listing: Listing): Promise<ListingAnswer> {
  const { limit, sort } = listing
  const query = { ...listing, words: [], after: undefined, limit: limit + 1 }
  const found = await store.listProfiles(partner, query, Date.now())
  const shown = found.slice(0, limit)
  const last = found.length > limit ? shown.at(-1) : undefined
  const position = last && JSON.stringify([sort === 'name' ? fold(last.name) : last.publishedAt, last.slug])
  const cursor = position === undefined ? null : Buffer.from(position).toString('base64url')
  return { data: shown.map(toWireCard), page: { limit, has_more: cursor !== null, next_cursor: cursor } }
}

/** Judges what a query says, each name with its values. @returns undefined when something is wrong. */
export function judgeListing(query: Readonly<Record<string, readonly string[]>>): Listing | undefined {
  for (const name in query) {
    if (!known.has(name)) return undefined
    if (query[name]!.length > (name === 'country' || name === 'industry' ? 20 : 1)) return undefined
  }
  const countries = (query['country'] ?? []).map((code) => code.toUpperCase())
  const sort = query['sort']?.[0] ?? 'name'
  const limit = Number(query['limit']?.[0] ?? 20)
  if (!countries.every(isCountryCode)) return undefined
  if (sort !== 'name' && sort !== '-published_at') return undefined
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) return undefined
  return { countries, industries: query['industry'] ?? [], sort, limit }
}

const known = new Set(['partner', 'country', 'industry', 'sort', 'limit'])
