/** Content in a database: what only a server makes hard. */
import process from 'node:process'
import t from 'tap'
import type { Test } from 'tap'
import { createAuditLog } from '../../adapters/stores/postgres/audit.ts'
import { connect } from '../../adapters/stores/postgres/database.ts'
import type { Database } from '../../adapters/stores/postgres/database.ts'
import { createContentAdministration } from '../../adapters/stores/postgres/content.ts'
import { createDirectory } from '../../adapters/stores/postgres/directory.ts'
import { createRevisions } from '../../adapters/stores/postgres/revisions.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { foldWords } from '../../core/lib/text.ts'
import type { ProfileQuery } from '../../core/ports/directory.ts'
import type { Store } from '../../core/ports/store.ts'
import { expectedSlugs, readAll } from '../contract/store/oracle.ts'
import {
  actor,
  createPartners,
  exported,
  industry,
  profile,
  publish,
  query,
  T0,
} from '../contract/store/samples.ts'
import { hasServer } from '../postgres/binaries.ts'
import { explaining, rowsRead } from '../postgres/plans.ts'
import { PATIENT, startServer } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'

const reason = hasServer()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

const server = await startServer()
t.teardown(() => server.close())
const stamp = { now: T0, actor }

async function open(t: Test): Promise<{ url: string; store: Store }> {
  const url = await server.createDatabase()
  const store = await openPostgresStore(url, PATIENT)
  t.teardown(() => store.close())
  return { url, store }
}

await t.test('a search that takes long is given up by the server', async (t) => {
  const { url, store } = await open(t)
  await publish(store, [profile('a')])
  const database = connect(url)
  t.teardown(() => database.close())
  await database.transaction(async (ask) => {
    await ask('LOCK TABLE partner_api.listing IN ACCESS EXCLUSIVE MODE')
    const search = Promise.resolve(store.listProfiles('acme', query({ words: ['a'] }), T0))
    await t.rejects(search, /statement timeout/)
  })
  t.equal((await store.listProfiles('acme', query(), T0)).length, 1)
})

await t.test('an export has the records of one moment, however long it takes', async (t) => {
  const { store } = await open(t)
  const slugs = Array.from({ length: 2500 }, (_, index) => `p${String(index).padStart(4, '0')}`)
  await publish(store, slugs.map((slug) => profile(slug)))
  const found: string[] = []
  for await (const { slug } of await store.exportContent('profiles')) {
    if (found.length === 0) {
      await store.importContent('profiles', [profile('p0001a'), profile('q')], stamp)
      await store.removeContent('profiles', ['p2400'], { actor, at: T0 })
    }
    found.push(slug)
  }
  t.strictSame(found, slugs)
  t.equal((await exported(store, 'profiles')).length, 2501)
})

await t.test('an export that is broken off, or never read, leaves nothing behind', async (t) => {
  const { url, store } = await open(t)
  await publish(store, Array.from({ length: 5000 }, (_, index) => profile(`p${index}`)))
  await store.exportContent('profiles')
  for await (const { slug } of await store.exportContent('profiles')) {
    t.equal(slug, 'p0')
    break
  }
  const name = new URL(url).pathname.slice(1)
  await until(async () => {
    const [row] = await server.admin`
      select count(*)::int as count from pg_stat_activity where datname = ${name} and xact_start is not null`
    return row?.['count'] === 0
  }, 'the transaction to end')
  t.equal((await exported(store, 'profiles')).length, 5000)
})

await t.test('an import that is run again keeps nothing of the first time', async (t) => {
  const { url, store } = await open(t)
  await createPartners(store, 'acme')
  await publish(store, [profile('a'), profile('b', { visibleTo: ['acme'] })])
  const database = connect(url)
  t.teardown(() => database.close())
  const twice: Database = {
    ...database,
    async transaction(work, options) {
      await database.transaction(async (query, rollback) => {
        await work(query, rollback)
        rollback()
      }, options)
      return await database.transaction(work, options)
    },
  }
  const content = createContentAdministration(twice, createRevisions(twice), createAuditLog(twice))
  const before = await store.auditHead()
  t.strictSame(
    await content.importContent(
      'profiles',
      [profile('a'), profile('b'), profile('c', { country: 'FR' })],
      stamp,
    ),
    { created: 1, replaced: 1, unchanged: 1 },
  )
  t.equal((await store.auditHead()).sequence, before.sequence + 1)
  t.strictSame([...await store.countProfiles('acme', 'country', T0)].sort(), [['DE', 2], ['FR', 1]])
  await content.removeContent('profiles', ['a'], { actor, at: T0 })
  t.strictSame([...await store.countProfiles('acme', 'country', T0)].sort(), [['DE', 1], ['FR', 1]])
})

await t.test('names and words longer than any index has room for are sorted and found all the same', async (t) => {
  const { store } = await open(t)
  // One character each, which folds to up to six; in an order that cannot be compressed.
  const squares = (first: number) =>
    Array.from(
      { length: 200 },
      (_, index) => String.fromCodePoint(0x3300 + (first * 31 + index * index * 7) % 0x58),
    )
      .join('')
  const long = 'ź東'.repeat(2500)
  const records = [
    ...Array.from({ length: 12 }, (_, index) => profile(`n${index}`, { name: squares(index % 6) })),
    profile('long', { description: long }),
    profile('longer', { description: `${long}a`, tags: [`${'東'.repeat(49)}b`] }),
    profile('kilometres', { description: '㌖'.repeat(5000) }),
  ]
  await publish(store, records)
  for (const sort of ['name', '-published_at'] as const) {
    for (const words of [[], foldWords(long.slice(0, 100)), foldWords('㌖'.repeat(100)), ['東'.repeat(49)]]) {
      const asked = query({ sort, words, limit: 2 })
      const found = (await readAll(store, 'acme', asked, T0)).map(({ slug }) => slug)
      t.strictSame(found, expectedSlugs(records, 'acme', asked, T0), `${words.length} words by ${sort}`)
    }
  }
})

await t.test('what no server can be asked for is not there', async (t) => {
  const { store } = await open(t)
  await publish(store, [profile('a')])
  const ask = async (industries: string[]) =>
    (await store.listProfiles('acme', query({ industries }), T0)).map(({ slug }) => slug)
  t.strictSame(await ask(['\0']), [])
  t.strictSame(await ask(['\ud800']), [])
  t.strictSame(await ask(['\0', 'education']), ['a'])
  t.strictSame(await ask(['{education}', '"', '\\', "'", 'NULL']), [])
})

await t.test('a page reads few rows, whatever is asked, and no search reads all of them', async (t) => {
  const { url, store } = await open(t)
  await createPartners(store, 'acme')
  const size = 20_000
  const countries = Array.from({ length: 20 }, (_, index) => `C${String.fromCharCode(65 + index)}`)
  const industries = Array.from({ length: 10 }, (_, index) => `i${index}`)
  await store.importContent('industries', industries.map((slug) => industry(slug)), stamp)
  await store.importContent(
    'profiles',
    Array.from({ length: size }, (_, index) =>
      profile(`p${index}`, {
        name: `Name ${(index * 7919) % size}`,
        country: countries[index % 20]!,
        industry: industries[(index >> 4) % 10]!,
        headline: index % 3 === 0 ? 'common' : index % 5000 === 1 ? 'rare' : 'other',
        publishedAt: T0 - index,
        visibleTo: index % 50 === 0 ? ['acme'] : undefined,
      })),
    stamp,
  )
  const database = connect(url)
  t.teardown(() => database.close())
  let read = 0
  const directory = createDirectory(explaining(database, (plan) => read += rowsRead(plan)))
  const rowsReadFor = async (asked: ProfileQuery) => {
    read = 0
    await directory.listProfiles('acme', asked, T0)
    return read
  }
  for (const sort of ['name', '-published_at'] as const) {
    for (const country of [0, 1, 5, 20]) {
      for (const any of [0, 1, 3]) {
        for (const limit of [21, 101]) {
          const asked = query({
            sort,
            limit,
            countries: countries.slice(0, country),
            industries: industries.slice(0, any),
          })
          const streams = 2 * Math.max(country, 1) * Math.max(any, 1)
          const rows = await rowsReadFor(asked)
          t.ok(rows <= 8 * limit + 2 * streams, `${country} × ${any} by ${sort}: ${rows} rows for ${limit}`)
        }
      }
    }
    for (const words of [['common'], ['rare'], ['common', 'rare'], ['common', 'other']]) {
      const rows = await rowsReadFor(query({ sort, words, limit: 21 }))
      t.ok(rows <= 1200, `${words} by ${sort}: ${rows} rows`)
    }
  }
})
