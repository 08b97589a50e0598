import type { ProfileQuery } from '../../../core/ports/directory.ts'
import { expectedSlugs, readAll } from './oracle.ts'
import { actor, createPartners, profile, publish, query, T0 } from './samples.ts'
import type { Check } from './suites.ts'

const SIZE = 3000
const countries = Array.from({ length: 20 }, (_, index) => `C${String.fromCharCode(65 + index)}`)
const industries = Array.from({ length: 20 }, (_, index) => `i${index}`)

/**
 * A catalogue that is too large to be read for every page, with words of every frequency, at either end of the
 * order by name and anywhere in the order by date.
 */
const catalogue = Array.from({ length: SIZE }, (_, index) => {
  const words = [
    'everywhere',
    ...(index % 3 === 0 ? ['third'] : []),
    ...(index % 40 === 0 ? ['fortieth'] : []),
    ...(index >= SIZE / 2 ? ['second-half'] : []),
    ...(index % 1499 === 1 ? ['rare'] : []),
    ...(index === 10 || index > SIZE - 5 ? ['ends'] : []),
    ...(index < 40 ? [`x${'y'.repeat(index)}`] : []),
  ]
  return profile(`p${index}`, {
    name: `Name ${String(index).padStart(5, '0')}`,
    headline: words.join(' '),
    tags: index % 7 === 0 ? ['Tägged', `unique${index}`] : [],
    country: countries[(index * index) % 20]!,
    industry: industries[(index >> 3) % 20]!,
    publishedAt: T0 - ((index * 7919) % SIZE),
    visibleTo: index % 50 === 0 ? ['acme'] : undefined,
  })
})

const searches: Partial<ProfileQuery>[] = [
  {},
  ...[
    'everywhere',
    'every',
    'third',
    'fortieth',
    'second',
    'half',
    'rare',
    'ends',
    'tagged',
    'unique42',
    'name',
    'n',
  ]
    .map((word) => ({ words: [word] })),
  ...['x', 'xy', 'xyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy', 'absent', '0', '00042', '東'].map((word) => ({
    words: [word],
  })),
  // In quotes, operators and other means of query languages: words and nothing else.
  ...['and', 'or', 'not', 'near', 'words', 'rowid'].map((word) => ({ words: [word] })),
  { words: ['third', 'second'] },
  { words: ['third', 'rare'] },
  { words: ['rare', 'tagged', 'every'] },
  { words: ['fortieth', 'unique'] },
  { words: ['ends'], countries: ['CA', 'CB'] },
  { words: ['rare'], industries: industries.slice(5) },
  { words: ['third'], countries: ['CE'], industries: ['i3', 'i4'] },
  { words: ['second'], countries: ['CA'], industries: ['i0'] },
  { countries },
  { industries },
  { countries, industries },
  { countries: ['CA'], industries },
  { countries: ['CA', 'CB', 'XX'], industries: ['i1', 'i7'] },
  { countries: ['XX'] },
]

/** The same name, at the same instant, in every country and industry; slugs in an order of their own. */
const ties = countries.flatMap((country, row) =>
  industries.map((industry, column) =>
    profile(`p${(row * 20 + column) * 7 % 400}`, {
      name: 'Same',
      country,
      industry,
      publishedAt: T0 - (row >> 3),
    })
  )
)

/** A catalogue of thousands, where a store has to find its way instead of looking at everything. */
export async function searchContract(check: Check): Promise<void> {
  await check(
    'search and filters find the same in a large catalogue as by looking at all of it',
    async (t, store) => {
      await createPartners(store, 'acme')
      await publish(store, catalogue)
      const readers = [['acme', T0, 997], ['nobody', T0 - 500, SIZE]] as const
      for (const [index, search] of searches.entries()) {
        for (const [order, sort] of (['name', '-published_at'] as const).entries()) {
          const [partner, now, limit] = readers[(index + order) % 2]!
          const asked = query({ ...search, sort, limit })
          const found = (await readAll(store, partner, asked, now)).map(({ slug }) => slug)
          const wanted = expectedSlugs(catalogue, partner, asked, now)
          const { words, countries, industries } = asked
          const label =
            `${words} in ${countries.length} countries, ${industries.length} industries for ${partner}`
          t.ok(found.join() === wanted.join(), `${sort}: ${label}: ${found.length} of ${wanted.length}`)
        }
      }
    },
  )

  await check('small pages of a search put together are all of it', async (t, store) => {
    await createPartners(store, 'acme')
    await publish(store, catalogue)
    for (const sort of ['name', '-published_at'] as const) {
      for (const words of [['rare'], ['ends'], ['fortieth', 'tagged'], ['unique42'], ['xy']]) {
        const asked = query({ words, sort, limit: 2 })
        const found = (await readAll(store, 'acme', asked, T0)).map(({ slug }) => slug)
        t.strictSame(found, expectedSlugs(catalogue, 'acme', asked, T0), `${words} by ${sort}`)
      }
    }
  })

  await check(
    'profiles that are added one at a time, each before the last, stay in order',
    async (t, store) => {
      const last = profile('last', { name: 'Zoo', publishedAt: T0 - 5000 })
      const added = Array.from({ length: 100 }, (_, index) =>
        profile(`p${index}`, {
          name: `Name ${1000 - index}`,
          headline: index % 3 === 0 ? 'third' : 'other',
          publishedAt: T0 - 1000 + index,
        }))
      await publish(store, [last])
      for (const record of added) await store.importContent('profiles', [record], { now: T0, actor })
      for (const sort of ['name', '-published_at'] as const) {
        for (const words of [[], ['third']]) {
          const asked = query({ words, sort, limit: 7 })
          const found = (await readAll(store, 'acme', asked, T0)).map(({ slug }) => slug)
          t.strictSame(found, expectedSlugs([...added, last], 'acme', asked, T0), `${words} by ${sort}`)
        }
      }
    },
  )

  await check('filters with many values keep the order among ties', async (t, store) => {
    await publish(store, ties)
    for (const sort of ['name', '-published_at'] as const) {
      for (const limit of [7, 20, 21, 160, 161, 400]) {
        for (
          const filter of [{ countries, industries }, { countries }, { industries: [...industries, 'i0'] }]
        ) {
          const asked = query({ ...filter, sort, limit })
          const found = (await readAll(store, 'acme', asked, T0)).map(({ slug }) => slug)
          const label = `${Object.keys(filter)} by ${sort}, ${limit} a page`
          t.ok(found.join() === expectedSlugs(ties, 'acme', asked, T0).join(), label)
        }
      }
    }
  })
}
