import type { ProfileRecord } from '../../../core/ports/content.ts'
import type { ProfileQuery } from '../../../core/ports/directory.ts'
import type { Store } from '../../../core/ports/store.ts'
import { expectedSlugs, readAll } from './oracle.ts'
import { actor, createPartners, profile, publish, query, T0 } from './samples.ts'
import type { Check, TestContext } from './suites.ts'

const SIZE = 2500
const countries = Array.from({ length: 20 }, (_, index) => `C${String.fromCharCode(65 + index)}`)
const industries = Array.from({ length: 20 }, (_, index) => `i${index}`)

/**
 * Too many profiles to scan for every page, with words of every frequency, at both ends of the order by name and spread
 * over the order by date.
 */
const catalog = Array.from({ length: SIZE }, (_, index) => {
  const words = [
    'everywhere',
    ...(index % 3 === 0 ? ['third'] : []),
    ...(index % 40 === 0 ? ['fortieth'] : []),
    ...(index >= SIZE / 2 ? ['second-half'] : []),
    ...(index % 1999 === 1 ? ['rare'] : []),
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

const singleWords = [
  'everywhere every third fortieth second half rare ends tagged unique42 name n',
  `x xy x${'y'.repeat(37)} absent 0 00042 東`,
  // Operators of full-text query languages are plain words.
  'and or not near words rowid',
].flatMap((words) => words.split(' '))

const searches: Partial<ProfileQuery>[] = [
  {},
  ...singleWords.map((word) => ({ words: [word] })),
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

/** Equal names and instants in every country and industry, with shuffled slugs. */
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

/** Compares all pages with the oracle, in both orders. */
async function compare(
  t: TestContext,
  store: Store,
  records: readonly ProfileRecord[],
  search: Partial<ProfileQuery>,
  partner = 'acme',
  now = T0,
): Promise<void> {
  for (const sort of ['name', '-published_at'] as const) {
    const sorted = query({ ...search, sort })
    const found = (await readAll(store, partner, sorted, now)).map(({ slug }) => slug)
    const expected = expectedSlugs(records, partner, sorted, now)
    const { words, countries, industries, limit } = sorted
    const filters = `${countries.length} countries and ${industries.length} industries`
    t.equal(
      found.join(),
      expected.join(),
      `${words} in ${filters} for ${partner} by ${sort}, ${limit} a page`,
    )
  }
}

/** A catalog of thousands of profiles, in which a store must not scan all. */
export async function searchContract(check: Check): Promise<void> {
  await check(
    'search and filters in a large catalog find what a full scan finds',
    async (t, store) => {
      await createPartners(store, 'acme')
      await publish(store, catalog)
      for (const search of searches) {
        await compare(t, store, catalog, { ...search, limit: 997 })
        await compare(t, store, catalog, { ...search, limit: SIZE }, 'missing', T0 - 1000)
      }
      for (const words of [['rare'], ['ends'], ['fortieth', 'tagged'], ['unique42'], ['xy']]) {
        await compare(t, store, catalog, { words, limit: 2 })
      }
    },
  )

  await check(
    'profiles imported one at a time, each before the last, are listed in order',
    async (t, store) => {
      const last = profile('last', { name: 'Zoo', publishedAt: T0 - 5000 })
      const added = Array.from({ length: 70 }, (_, index) =>
        profile(`p${index}`, {
          name: `Name ${1000 - index}`,
          headline: index % 3 === 0 ? 'third' : 'other',
          publishedAt: T0 - 1000 + index,
        }))
      await publish(store, [last])
      for (const record of added) await store.importContent('profiles', [record], { now: T0, actor })
      for (const words of [[], ['third']]) await compare(t, store, [...added, last], { words, limit: 7 })
    },
  )

  await check('filters with many values keep the order among ties', async (t, store) => {
    await publish(store, ties)
    for (const limit of [7, 20, 21, 160, 161, 400]) {
      for (
        const filter of [{ countries, industries }, { countries }, { industries: [...industries, 'i0'] }]
      ) {
        await compare(t, store, ties, { ...filter, limit })
      }
    }
  })
}
