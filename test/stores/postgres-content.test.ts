/** Content and lists: how many rows the server reads, snapshots, and limits of the server. */
import t from 'tap'
import type { PostgresDatabase } from '../../adapters/stores/postgres/database.ts'
import { createContent } from '../../adapters/stores/postgres/content.ts'
import { createDirectory } from '../../adapters/stores/postgres/directory.ts'
import { createLists } from '../../adapters/stores/postgres/lists.ts'
import { createRevisions } from '../../adapters/stores/postgres/revisions.ts'
import { createSignups } from '../../adapters/stores/postgres/signups.ts'
import { createSqlDatabase } from '../../adapters/stores/postgres/sql-database.ts'
import { createAuditLog } from '../../adapters/stores/sql/audit.ts'
import { createAdministration } from '../../adapters/stores/sql/partners-and-keys.ts'
import { foldWords } from '../../core/lib/text.ts'
import type { ProfileQuery } from '../../core/ports/directory.ts'
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
import { createPlace, databasesFor, openDatabase } from '../postgres/fixtures.ts'
import { explaining, rowsRead } from '../postgres/plans.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { until } from '../postgres/until.ts'

const server = await databasesFor(t)
const stamp = { now: T0, actor }

await t.test('the server cancels a search that exceeds the timeout', async (t) => {
  const { url, store: patient } = await createPlace(t, server)
  const store = await openPostgresStore(url)
  t.teardown(async () => await store.close())
  await publish(patient, [profile('a')])
  const database = openDatabase(t, url)
  await database.transaction(async (ask) => {
    await ask('LOCK TABLE partner_api.listing IN ACCESS EXCLUSIVE MODE')
    const search = Promise.resolve(store.listProfiles('acme', query({ words: ['a'] }), T0))
    await t.rejects(search, { code: 'overloaded', message: /statement timeout/ })
  })
  t.equal((await store.listProfiles('acme', query(), T0)).length, 1)
})

await t.test('an export reads one snapshot', async (t) => {
  const { store } = await createPlace(t, server)
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

await t.test('an abandoned or unread export ends its transaction', async (t) => {
  const { url, store } = await createPlace(t, server)
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

await t.test('a retried import keeps nothing of its first attempt', async (t) => {
  const { url, store } = await createPlace(t, server)
  await createPartners(store, 'acme')
  await publish(store, [profile('a'), profile('b', { visibleTo: ['acme'] })])
  const database = openDatabase(t, url)
  const twice: PostgresDatabase = {
    ...database,
    async transaction(work, options) {
      await database.transaction(async (query, rollback) => {
        await work(query, rollback)
        rollback()
      }, options)
      return await database.transaction(work, options)
    },
  }
  const content = createContent(twice, createSqlDatabase(twice, createRevisions(twice)))
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

await t.test('names and words too long for an index are sorted and found', async (t) => {
  const { store } = await createPlace(t, server)
  // Characters that fold to up to six, in an incompressible order.
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
      const profileQuery = query({ sort, words, limit: 2 })
      const found = (await readAll(store, 'acme', profileQuery, T0)).map(({ slug }) => slug)
      t.strictSame(
        found,
        expectedSlugs(records, 'acme', profileQuery, T0),
        `${words.length} words by ${sort}`,
      )
    }
  }
})

await t.test('values that the server rejects match nothing', async (t) => {
  const { store } = await createPlace(t, server)
  await publish(store, [profile('a')])
  const ask = async (industries: string[]) =>
    (await store.listProfiles('acme', query({ industries }), T0)).map(({ slug }) => slug)
  t.strictSame(await ask(['\0']), [])
  t.strictSame(await ask(['\ud800']), [])
  t.strictSame(await ask(['\0', 'education']), ['a'])
  t.strictSame(await ask(['{education}', '"', '\\', "'", 'NULL']), [])
})

/** A third of the profiles have a common word, and few have a rare one. */
function headlineOf(index: number): string {
  if (index % 3 === 0) return 'common'
  return index % 5000 === 1 ? 'rare' : 'other'
}

await t.test('a page reads few rows with any filter, and a search never reads all', async (t) => {
  const { url, store } = await createPlace(t, server)
  await createPartners(store, 'acme')
  const size = 10_000
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
        headline: headlineOf(index),
        publishedAt: T0 - index,
        visibleTo: index % 50 === 0 ? ['acme'] : undefined,
      })),
    stamp,
  )
  const database = openDatabase(t, url)
  let read = 0
  const directory = createDirectory(explaining(database, (plan) => read += rowsRead(plan)))
  const rowsReadFor = async (profileQuery: ProfileQuery) => {
    read = 0
    await directory.listProfiles('acme', profileQuery, T0)
    return read
  }
  for (const sort of ['name', '-published_at'] as const) {
    for (const country of [0, 1, 5, 20]) {
      for (const any of [0, 1, 3]) {
        for (const limit of [21, 101]) {
          const profileQuery = query({
            sort,
            limit,
            countries: countries.slice(0, country),
            industries: industries.slice(0, any),
          })
          const streams = 2 * Math.max(country, 1) * Math.max(any, 1)
          const rows = await rowsReadFor(profileQuery)
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

await t.test('a page of a list reads no rows of others', async (t) => {
  const { url, sql } = await createPlace(t, server)
  // The partner owns the newest half of all rows: a plan that scans all others reads thousands.
  const partner = `case when n <= 3000 then 'other' when n > 5990 then 'rare' else 'late' end`
  await sql.unsafe(`
    insert into partner_api.partner
      select slug, slug, 'active', null, null, 1 from unnest('{late,other,rare}'::text[]) as slugs (slug);
    insert into partner_api.partner_key (id, partner, name, environment, digest, hint, state, scopes, created_at)
      select 'key-' || n, ${partner}, 'Key', 'live', repeat('0', 64), '9xQ2', 'active', null, n / 10
      from generate_series(1, 6000) as numbers (n);
    insert into partner_api.signup (id, partner, key_id, environment, created_at, record, recency)
      select 'sgn_' || n, ${partner}, 'key-1', 'live', -n, '{}', n from generate_series(1, 6000) as numbers (n);
    insert into partner_api.audit (sequence, id, at, actor, type, partner, after, hash, recency)
      select n, 'act_' || n, 7, 'root', 'key.issued', ${partner}, '{}', '', -7 from generate_series(1, 6000) as numbers (n);
    update partner_api.store set audit_sequence = 6000;
    analyze`)
  const database = openDatabase(t, url)
  let read = 0
  const explained = explaining(database, (plan) => read += rowsRead(plan))
  const store = createSqlDatabase(explained, createRevisions(database))
  const auditLog = createAuditLog(store)
  const administration = createAdministration(store)
  const lists = createLists(store)
  const signups = createSignups(explained, store)

  await administration.listPartners(undefined, 2)
  t.ok(read <= 3, `partners: ${read} rows read`)
  for (const partner of [undefined, 'other', 'late', 'rare']) {
    const reads: Record<string, () => unknown> = {
      keys: () => lists.listKeys({ partner }, undefined, 50),
      'keys after one': () => lists.listKeys({ partner }, { createdAt: 450, id: 'key-4500' }, 50),
      audit: () => auditLog.listAudit(0, 50, partner),
      'audit after an entry': () => auditLog.listAudit(4_500, 50, partner),
      'tail of the audit log': () => auditLog.auditTail(49, partner),
      signups: () => signups.listSignups(partner, undefined, 50),
    }
    for (const [name, list] of Object.entries(reads)) {
      read = 0
      await list()
      t.ok(read <= 51, `${name} of ${partner}: ${read} rows read`)
    }
  }
  // An import gives all of its entries one instant.
  read = 0
  const after = { at: 7, id: 'act_5000' }
  const rows = await lists.listActivity(
    'late',
    { types: ['key.issued'], after, limit: 50 },
    T0,
  )
  t.strictSame([rows.length, rows[0]?.id], [50, 'act_5001'])
  t.ok(read <= 200, `activity: ${read} rows read`)
})
