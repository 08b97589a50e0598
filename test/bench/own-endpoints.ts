/** Twenty endpoints of the host's own: three that return the profiles of the built-in list, after others in the table. */
import * as v from 'valibot'
import { fold, foldWords } from '../../core/lib/text.ts'
import type { Store } from '../../core/ports/store.ts'
import { toWireCard } from '../../core/routes/content.ts'
import { defineEndpoint, type OwnEndpoint } from '../../core/routes/host-endpoints.ts'
import { PARTNER } from '../support/partner.ts'

/** With what the store returns, with a revision by which responses are cached, and with a promise. */
const names = ['own', 'own-revision', 'own-async'] as const

export const OWN_TARGETS: readonly string[] = names.map((name) =>
  `/service/${name}/profiles?partner=${PARTNER}&limit=20`
)

export function ownEndpoints(store: Store): OwnEndpoint[] {
  const common = { method: 'GET', scope: 'read:profiles', summary: 'List profiles' } as const
  const others = Array.from({ length: 17 }, (_, number) =>
    defineEndpoint({
      ...common,
      name: `other-${number}`,
      path: `/public/other-${number}/:id`,
      handle: ({ params }) => ({ data: params }),
    }))
  const pages = names.map((name) =>
    defineEndpoint({
      ...common,
      name,
      path: `/${name}/profiles`,
      query: {
        q: v.optional(v.pipe(v.string(), v.minLength(2), v.maxLength(100))),
        country: v.optional(v.array(v.pipe(v.string(), v.regex(/^[A-Z]{2}$/))), []),
        industry: v.optional(v.array(v.pipe(v.string(), v.maxLength(80))), []),
        sort: v.optional(v.picklist(['name', '-published_at']), 'name'),
      },
      paging: { limit: 20, maximum: 100 },
      ...(name === 'own-revision' && { revision: () => 'the only one' }),
      handle: ({ query: { q, country, industry, sort }, page }, { partner, now }) =>
        page({
          read(place, limit) {
            const words = q === undefined ? [] : [...new Set(foldWords(q))].sort()
            const filter = { words, countries: [...country].sort(), industries: [...industry].sort(), sort }
            const after = place && { key: sort === 'name' ? fold(`${place[0]}`) : place[0], slug: place[1] }
            const found = store.listProfiles(partner.slug, { ...filter, after, limit }, now)
            return name === 'own-async' ? Promise.resolve(found) : found
          },
          positionOf: ({ name, publishedAt, slug }) => [sort === 'name' ? name : publishedAt, slug],
          present: toWireCard,
        }),
    })
  )
  return [...others, ...pages]
}
