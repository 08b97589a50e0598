import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { createContentAdministration } from '../../adapters/stores/sql/content.ts'
import { done, query as statement, runWork } from '../../adapters/stores/sql/database.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { andThen } from '../../core/lib/promise.ts'
import type { ProfileQuery } from '../../core/ports/directory.ts'
import type { Store } from '../../core/ports/store.ts'
import { expectedSlugs, readAll } from '../contract/store/oracle.ts'
import {
  actor,
  apply,
  createPartners,
  exported,
  industry,
  key,
  profile,
  query,
  stamp,
  T0,
} from '../contract/store/samples.ts'
import { newFile } from '../support/cli-program.ts'

const options = { now: T0, actor }

/** More profiles than one transaction writes. */
const many = Array.from({ length: 6000 }, (_, index) =>
  profile(`p${index}`, {
    name: `Name ${index % 300}`,
    headline: index % 2 === 0 ? 'even observatory' : 'odd',
    publishedAt: index % 50 === 0 ? undefined : T0 - index % 700,
    visibleTo: index % 20 === 1 ? ['acme'] : undefined,
  }))

async function openFilled(file: string): Promise<Store> {
  const store = await openSqliteStore(file)
  await createPartners(store, 'acme')
  await store.importContent('industries', [industry('education')], options)
  await store.importContent('profiles', [profile('before'), profile('p3', { name: 'Replaced' })], options)
  return store
}

await t.test('a dry run of any size takes no write lock', async (t) => {
  const file = newFile()
  const store = await openFilled(file)
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  const before = await store.revision()
  for (const records of [many.slice(0, 10), many]) {
    const report = await store.importContent('profiles', records, {
      ...options,
      dryRun: true,
    })
    t.same(report, { created: records.length - 1, replaced: 1, unchanged: 0 })
  }
  t.strictSame(await store.revision(), before)
  other.exec('ROLLBACK')
  other.close()
  await store.close()
})

await t.test('a large import lets others write between its steps, and is visible at its end', async (t) => {
  const file = newFile()
  const store = await openFilled(file)
  await apply(store, { type: 'key.issued', key: key() })
  const other = new DatabaseSync(file, { timeout: 0 })
  const before = await store.revision()
  let locks = 0
  let isDone = false
  const importing = Promise.resolve(
    store.importContent('profiles', many, options),
  ).finally(() => isDone = true)
  while (!isDone) {
    // The import is between two steps whenever anything else of this process runs.
    other.exec('BEGIN IMMEDIATE')
    other.exec('COMMIT')
    if (++locks === 3) {
      t.ok(await apply(store, { type: 'key.revoked', id: key().id }), 'a key is revoked meanwhile')
      t.throws(() => store.importContent('plans', [], options), {
        code: 'refused',
      })
      t.throws(() => store.removeContent('profiles', ['before'], stamp), {
        code: 'refused',
      })
      t.equal((await store.revision()).content, before.content)
      t.equal((await store.listProfiles('acme', query(), T0)).length, 2)
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  t.same(await importing, { created: 5999, replaced: 1, unchanged: 0 })
  t.ok(locks > 5, `${locks} times`)
  t.ok((await store.revision()).content !== before.content, 'the revision has moved')
  const all = [profile('before'), ...many]
  t.equal((await exported(store, 'profiles')).length, all.length)
  const searches: Partial<ProfileQuery>[] = [
    {},
    { words: ['observat'] },
    { words: ['odd', 'na'], sort: '-published_at' },
    { words: ['even', 'odd'] },
  ]
  for (const search of searches) {
    for (const partner of ['acme', 'nobody']) {
      const asked = query({ ...search, limit: 500 })
      const found = (await readAll(store, partner, asked, T0)).map(({ slug }) => slug)
      t.ok(
        found.join() === expectedSlugs(all, partner, asked, T0).join(),
        `${JSON.stringify(search)} of ${partner}`,
      )
    }
  }
  const counted = await store.countProfiles('nobody', 'industry', T0)
  t.equal(counted.get('education'), expectedSlugs(all, 'nobody', query({ limit: 9999 }), T0).length)
  const names = other.prepare(
    "SELECT name FROM sqlite_schema WHERE name LIKE 'next%' OR name LIKE 'old%'",
  ).all()
  t.same(names, [], 'nothing is left')
  // The new tables can be written to.
  await store.importContent(
    'profiles',
    [profile('p7', { name: 'Aardvark' })],
    options,
  )
  t.equal((await store.listProfiles('acme', query(), T0))[0]?.slug, 'p7')
  t.same(await store.importContent('profiles', many, options), {
    created: 0,
    replaced: 1,
    unchanged: 5999,
  })
  t.same(other.prepare('PRAGMA integrity_check').get(), {
    integrity_check: 'ok',
  })
  other.close()
  await store.close()
})

await t.test('one of several large imports at once succeeds, and the others are refused', async (t) => {
  const file = newFile()
  const a = await openFilled(file)
  const b = await openSqliteStore(file)
  const outcomes = await Promise.allSettled(
    [a, b, a].map((store) => store.importContent('profiles', many, options)),
  )
  t.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') {
      t.equal(outcome.reason.code, 'refused')
    }
  }
  t.equal((await exported(b, 'profiles')).length, 6001)
  for (const store of [a, b]) await store.close()
})

await t.test('a long search gives way to others, and is abandoned in the end', async (t) => {
  const file = newFile()
  const store = await openFilled(file)
  await store.importContent('profiles', many.slice(0, 2000), options)
  // A store of a hundred million profiles, as far as it knows: it is read window by window.
  const large = new DatabaseSync(file)
  large.exec(`UPDATE rank_name SET profile = 100000000 WHERE slug = 'p1'`)
  large.exec(`UPDATE rank_newest SET profile = 100000000 WHERE slug = 'p1'`)
  large.exec(`UPDATE profile SET id = 100000000 WHERE slug = 'p1'`)
  large.close()

  // A few windows in each slice. A search without slices reaches the end of this clock, and fails instead of hanging.
  let now = 0
  let each = 0.3
  let end = 1_000
  t.intercept(performance, 'now', {
    value: () => {
      if (now > end) throw new Error('too many windows')
      return now += each
    },
  })
  let user = 0
  t.intercept(process, 'cpuUsage', { value: () => ({ user, system: 0 }) })
  const never = query({ words: ['even', 'odd'] })
  ;[each, end] = [20, 10_000]
  const rare = query({ words: ['even', '71'], sort: '-published_at' })
  const onBusyMachine = store.listProfiles('acme', rare, T0)
  t.ok(onBusyMachine instanceof Promise)
  t.same(await onBusyMachine, [], 'time that other processes take is not counted in full')

  // From here on, all the time of this clock is work.
  user = 1e12
  ;[each, end] = [0.3, now + 1_000]
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  const search = store.listProfiles('acme', never, T0)
  t.ok(search instanceof Promise)
  t.equal(
    (await store.listProfiles('acme', query({ limit: 3 }), T0)).length,
    3,
    'another search is answered first',
  )
  t.same(await search, [])
  t.ok(turns > 0, 'timers fire between its turns')

  const moving = store.listProfiles('acme', query({ words: ['odd'], limit: 2000 }), T0)
  await store.importContent('profiles', [profile('p0', { headline: 'odd', name: 'Name 150' })], options)
  const odd = [
    ...many.slice(1, 2000),
    profile('p0', { headline: 'odd', name: 'Name 150' }),
  ]
  t.strictSame(
    (await moving).map(({ slug }) => slug),
    expectedSlugs(odd, 'acme', query({ words: ['odd'], limit: 2000 }), T0),
    'changes between its slices are seen',
  )

  await store.importContent('profiles', [profile('last', { name: 'Zeppelin' })], options) // Each window is a turn, and is the smallest: only a jump comes to the last of them in time.
  ;[each, end] = [1.5, now + 1_000]
  const late = await store.listProfiles('acme', query({ words: ['zeppelin'] }), T0)
  t.same(late.map(({ slug }) => slug), ['last'], 'windows without a match are skipped')
  ;[each, end] = [5, now + 40_000]
  const waiting = Array.from(
    { length: 40 },
    async () => await store.listProfiles('acme', never, T0),
  )
  const ofOther = Promise.resolve(store.listProfiles('globex', never, T0))
  const [other, ...outcomes] = await Promise.allSettled([ofOther, ...waiting])
  t.match(other, { reason: { message: /takes too long/ } }, 'another partner gets its slices')
  const tooMany = outcomes.map((outcome) =>
    t.match(outcome, { status: 'rejected', reason: { code: 'overloaded', message: /was abandoned/ } }) &&
    /would wait/.test((outcome as PromiseRejectedResult).reason.message)
  )
  t.equal(tooMany.filter(Boolean).length, 36, 'no more than four searches of a partner wait')
  clearInterval(timer)
  await store.close()
})

await t.test('profiles that are not due are counted in slices', async (t) => {
  const store = await openFilled(newFile())
  const undue = many.slice(0, 2000).map((record) => ({ ...record, publishedAt: T0 + 1 }))
  await store.importContent('profiles', undue, options)
  let now = 0
  t.intercept(performance, 'now', { value: () => now += 5 })
  // All the time of this clock is work.
  t.intercept(process, 'cpuUsage', { value: () => ({ user: 1e12, system: 0 }) })
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  const counting = store.countProfiles('acme', 'industry', T0)
  t.ok(counting instanceof Promise)
  await store.importContent('profiles', [profile('now', { name: 'Now' })], options)
  t.same([...await counting], [['education', 2]], 'and counted again when content changes between slices')
  t.same([...await store.countProfiles('acme', 'industry', T0 + 1)], [['education', 2002]])
  t.same([...await store.countProfiles('globex', 'country', T0 + 1)].map(([, profiles]) => profiles), [1902])
  t.ok(turns > 0)
  clearInterval(timer)
  await store.close()
})

await t.test('a synchronous import has any number of batches', (t) => {
  function* find() {
    yield* statement('')
    return new Map()
  }
  const table = { batchSize: 1, find, write: () => done(undefined), remove: () => done(undefined) }
  const tables = { profiles: table, industries: table, plans: table, banners: table }
  const { importContent } = createContentAdministration((_context, _dryRun, work) => {
    return andThen(runWork(work(tables, true), () => []), ({ result }) => result)
  })
  const records = Array.from({ length: 20_000 }, (_, index) => industry(`i${index}`))
  t.same(importContent('industries', records, options), { created: 20_000, replaced: 0, unchanged: 0 })
  t.end()
})
