import fc from 'fast-check'
import type { ProfileRecord } from '../../../core/ports/content.ts'
import type { ProfileQuery } from '../../../core/ports/directory.ts'
import type { Store } from '../../../core/ports/store.ts'
import { expectedSlugs, positionOf, publicSet, readAll } from './oracle.ts'
import { actor, createPartners, fullProfile, profile, publish, query, stamp, T0 } from './samples.ts'
import { type Check, checkProperty } from './suites.ts'

/** Names that are easily sorted or folded wrongly. U+FA0E sorts before supplementary characters. */
const names = [
  'Alpha',
  'alpha',
  'Ålpha',
  'Alpha Beta',
  'Alphabet',
  '',
  '!!!',
  '\ufa0e',
  '\u{20000}',
  'Łódź ab',
  '東京',
]
const countries = ['DE', 'FR', 'JP'] as const
const industries = ['education', 'energy', 'utilities'] as const
const instants = [T0 - 1, T0, T0 + 1, T0 + 2]

const anyProfile = fc.record({
  name: fc.constantFrom(...names),
  headline: fc.constantFrom('One', 'Two words', 'über'),
  description: fc.constantFrom(undefined, 'alphabetical', 'To-day'),
  tags: fc.subarray(['Beta', 'b', '東']),
  country: fc.constantFrom(...countries),
  industry: fc.constantFrom(...industries),
  publishedAt: fc.constantFrom(undefined, ...instants),
  visibleTo: fc.option(fc.subarray(['acme', 'globex']), { nil: undefined }),
})

const anyCatalog = fc.array(anyProfile, { maxLength: 25 }).map((drawn) =>
  // Slugs in an order other than that of the import.
  drawn.map((more, index) => profile(`p${(index * 7) % 25}`, more))
)

const anyQuery: fc.Arbitrary<ProfileQuery> = fc.record({
  words: fc.subarray(['al', 'alpha', 'b', 'beta', 'to', 'uber', '東', '\u{20000}', 'none'], { maxLength: 2 }),
  countries: fc.subarray([...countries, 'XK']),
  industries: fc.subarray([...industries, 'none']),
  sort: fc.constantFrom('name', '-published_at'),
  after: fc.constant(undefined),
  limit: fc.integer({ min: 1, max: 6 }),
})

/** The public set of each partner: its profiles, their order and counts, and its next change. */
export async function directoryContract(check: Check, open: () => Promise<Store>): Promise<void> {
  await check(
    'a profile and its card have every imported member except its audience',
    async (t, store) => {
      await createPartners(store, 'acme', 'globex')
      await publish(store, [fullProfile], { now: T0 + 7, actor })
      const { visibleTo: _, ...shown } = fullProfile
      const industry = { slug: 'education', name: 'Industry education' }
      const { slug, name, headline, country, logoUrl } = fullProfile
      t.strictSame(await store.findProfile('acme', 'full', T0 + 1), { ...shown, industry, updatedAt: T0 + 7 })
      t.strictSame(await store.listProfiles('acme', query(), T0 + 1), [
        { slug, name, headline, country, industry, logoUrl, publishedAt: T0 + 1, updatedAt: T0 + 7 },
      ])
    },
  )

  await check(
    'a replaced profile is listed at its new position only',
    async (t, store) => {
      await createPartners(store, 'acme')
      await publish(store, [profile('a', { name: 'Zoo' }), profile('b', { name: 'Moo', industry: 'energy' })])
      await publish(store, [
        profile('a', {
          name: 'Ant',
          country: 'FR',
          industry: 'energy',
          publishedAt: T0 - 5,
          visibleTo: ['acme'],
        }),
      ])
      const slugs = async (more: Partial<ProfileQuery>, partner = 'acme') =>
        (await store.listProfiles(partner, query(more), T0)).map(({ slug }) => slug)
      t.strictSame(await slugs({}), ['a', 'b'])
      t.strictSame(await slugs({ sort: '-published_at' }), ['b', 'a'])
      t.strictSame(await slugs({}, 'globex'), ['b'])
      t.strictSame(await slugs({ words: ['zoo'] }), [])
      t.strictSame(await slugs({ words: ['ant'] }), ['a'])
      t.strictSame(await slugs({ countries: ['FR'] }), ['a'])
      t.strictSame(await slugs({ countries: ['DE'] }), ['b'])
      t.strictSame([...await store.countProfiles('acme', 'industry', T0)], [['energy', 2]])
      await store.removeContent('profiles', ['a'], stamp)
      t.strictSame(await slugs({}), ['b'])
      t.strictSame(await slugs({ words: ['ant'] }), [])
      t.strictSame([...await store.countProfiles('acme', 'industry', T0)], [['energy', 1]])
    },
  )

  await check('a partner does not see what one with a longer slug sees', async (t, store) => {
    const partners = ['acme', 'acme-2', 'my-acme']
    await createPartners(store, ...partners)
    const records = partners.flatMap((partner) => [
      profile(`of-${partner}`, { visibleTo: [partner] }),
      profile(`soon-of-${partner}`, { visibleTo: [partner], publishedAt: T0 + 1 }),
      profile(`not-of-${partner}`, { visibleTo: partners.filter((other) => other !== partner) }),
    ])
    await publish(store, records)
    for (const partner of partners) {
      for (const more of [{}, { sort: '-published_at' }, { words: ['of'] }, { countries: ['DE'] }] as const) {
        await expectPages(store, records, partner, query(more), T0)
      }
      await expectFound(store, records, partner, T0)
      await expectCounts(store, records, partner, T0)
      await expectNextChange(store, records, partner, T0)
    }
    await store.removeContent('profiles', ['soon-of-acme'], stamp)
    t.equal(await store.nextProfileChangeAt('acme', T0), undefined, 'the others have profiles to come')
  })

  await check('a position stays valid after its profile is withdrawn', async (t, store) => {
    await publish(
      store,
      ['a', 'b', 'c', 'd'].map((slug, index) => profile(slug, { publishedAt: T0 - index })),
    )
    for (const sort of ['name', '-published_at'] as const) {
      const [, second] = await store.listProfiles('acme', query({ sort }), T0)
      const after = positionOf(second!, sort)
      await store.importContent('profiles', [profile('b', { publishedAt: undefined })], { now: T0, actor })
      const rest = await store.listProfiles('acme', query({ sort, after }), T0)
      t.strictSame(rest.map(({ slug }) => slug), ['c', 'd'])
      // A position from a replica whose clock is ahead: listed profiles are not repeated, and future ones are omitted.
      const ahead = await store.listProfiles('acme', query({ sort, after }), T0 - 3)
      t.strictSame(ahead.map(({ slug }) => slug), ['d'])
      await store.importContent('profiles', [profile('b', { publishedAt: T0 - 1 })], { now: T0, actor })
    }
  })

  await check(
    'pages, profiles, counts and the next change equal those of a naive scan',
    async (t) => {
      const drawn = fc.tuple(
        anyCatalog,
        fc.array(anyQuery, { minLength: 1, maxLength: 8 }),
        fc.constantFrom(...instants),
      )
      await checkProperty(t, open, drawn, async (store, [records, queries, now]) => {
        await createPartners(store, 'acme', 'globex')
        await publish(store, records)
        for (const partner of ['acme', 'missing']) {
          for (const query of queries) await expectPages(store, records, partner, query, now)
          await expectFound(store, records, partner, now)
          await expectCounts(store, records, partner, now)
          await expectNextChange(store, records, partner, now)
        }
      })
    },
  )
}

type Expect<Arguments extends unknown[] = []> = (
  store: Store,
  records: readonly ProfileRecord[],
  partner: string,
  ...more: [...Arguments, now: number]
) => Promise<void>

const expectPages: Expect<[query: ProfileQuery]> = async (store, records, partner, query, now) => {
  const found = (await readAll(store, partner, query, now)).map(({ slug }) => slug)
  const expected = expectedSlugs(records, partner, query, now)
  if (found.join() === expected.join()) return
  throw new Error(`${partner} found ${found} instead of ${expected} for ${JSON.stringify(query)}`)
}

const expectFound: Expect = async (store, records, partner, now) => {
  const found: string[] = []
  for (const slug of [...records.map(({ slug }) => slug), 'nothing', '', '\u0000']) {
    if (await store.findProfile(partner, slug, now)) found.push(slug)
  }
  const expected = publicSet(records, partner, now).map(({ slug }) => slug)
  if (found.join() !== expected.join()) throw new Error(`${partner} found ${found} instead of ${expected}`)
}

const expectNextChange: Expect = async (store, records, partner, now) => {
  const expected = instants.filter((instant) => instant > now).find((instant) =>
    publicSet(records, partner, instant).length > publicSet(records, partner, now).length
  )
  const found = await store.nextProfileChangeAt(partner, now)
  if (found !== expected) throw new Error(`the next change is at ${expected}, not at ${found}`)
}

const expectCounts: Expect = async (store, records, partner, now) => {
  for (const by of ['country', 'industry'] as const) {
    const groups = Map.groupBy(publicSet(records, partner, now), (record) => record[by])
    const found = await store.countProfiles(partner, by, now)
    const expected = [...groups].map(([name, members]) => `${name} ${members.length}`).sort().join()
    const counted = [...found].filter(([, count]) => count !== 0).map(([name, count]) => `${name} ${count}`)
    if (counted.sort().join() !== expected) throw new Error(`by ${by}: ${counted} instead of ${expected}`)
  }
}
