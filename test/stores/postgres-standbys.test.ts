/** Reads from standbys: the contracts, and standbys that are behind, stuck, cut off, in trouble or promoted. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { createReader } from '../../adapters/stores/postgres/reader.ts'
import { createRevisions } from '../../adapters/stores/postgres/revisions.ts'
import type { Standby } from '../../adapters/stores/postgres/standby.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { Store } from '../../core/ports/store.ts'
import { imported, texts, whole } from '../contract/store/imports.ts'
import { apply, createPartners, key, profile, publish, T0 } from '../contract/store/samples.ts'
import type { SharedStore } from '../contract/store/suites.ts'
import { createPlace, openDatabase, serverFor } from '../postgres/fixtures.ts'
import { createOracle } from '../postgres/freshness.ts'
import { startGate } from '../postgres/network.ts'
import { hasPooler, startPooler } from '../postgres/pooler.ts'
import { PATIENT } from '../postgres/server.ts'
import { readingFrom, startStandby } from '../postgres/standby.ts'
import { follow, READS, standbyContract } from '../postgres/standby-contract.ts'
import { until, within } from '../postgres/until.ts'

const server = await serverFor(t)
const standby = await startStandby(server)
t.teardown(() => standby.close())
const gate = await startGate(standby.port)
t.teardown(() => gate.close())

/** The URL of a database on its primary and its standby, which is behind the gate. */
const withStandby = (url: string): string => readingFrom(url, gate.port)

const direct = await server.createDatabase()
const url = withStandby(direct)
const writer = await openPostgresStore(direct)
t.teardown(async () => await writer.close())
await publish(writer, [profile('one')])
await standby.caughtUp()

async function open(t: Test, url: string, options: { lookUpTimeoutMs?: number } = PATIENT) {
  const store = await openPostgresStore(url, options) as SharedStore
  t.teardown(async () => await store.close())
  follow(store)
  const counts = store.standbyReads!()
  return Object.assign(store, {
    counts,
    /** @returns By how much each count has grown during a call. */
    async counted(call: () => unknown) {
      const before = { ...counts }
      await call()
      return Object.fromEntries(
        Object.entries(counts).map(([name, count]) => [name, count - before[name]!]).filter(([, more]) =>
          more
        ),
      )
    },
  })
}

await t.test('a store that reads from a standby passes the contract', async (t) => {
  fc.configureGlobal({ numRuns: 3 })
  const { answered, behind, not_asked } = await standbyContract(t, server, standby)
  t.ok(answered > behind + not_asked, `${answered} answered, ${behind} behind, ${not_asked} not asked`)
})

/** Reads until the standby answers: connections are opened in the background. */
const untilAnswered = (
  store: Awaited<ReturnType<typeof open>>,
  read: (store: Store) => unknown = READS.findProfile,
) =>
  until(async () => {
    await store.revision()
    const { answered = 0 } = await store.counted(() => read(store))
    return answered > 0
  }, 'the standby to answer')

await t.test('every read of requests comes from the standby', async (t) => {
  const store = await open(t, url)
  for (const [name, read] of Object.entries(READS)) {
    await untilAnswered(store, read)
    t.strictSame(await store.counted(() => read(store)), { answered: 1 }, name)
    t.strictSame(await read(store), await read(writer), name)
  }
  const others = await store.counted(async () => {
    await store.revision()
    await store.findPartner('acme')
    await store.listKeys({}, undefined, 1)
    await store.listPartners(undefined, 1)
  })
  t.strictSame(others, {}, 'and nothing else does')
})

/** Changes the profile. @returns Its new name. */
async function change(store: Store): Promise<string> {
  const name = `Changed ${changes++}`
  await store.importContent('profiles', [profile('one', { name })], { now: T0, actor: 'ada' })
  return name
}
let changes = 0
const nameIn = async (store: Store) => (await store.findProfile('acme', 'one', T0))?.name

await t.test('a standby that lacks a confirmed change is not used until it has it', async (t) => {
  const store = await open(t, url)
  await untilAnswered(store)
  await standby.admin`select pg_wal_replay_pause()`
  t.teardown(() => standby.admin`select pg_wal_replay_resume()`)
  const before = await nameIn(store)
  const changed = await change(writer)
  t.equal(await nameIn(store), before, 'a change that is not confirmed may be missing')
  await store.revision()
  t.strictSame(await store.counted(async () => t.equal(await nameIn(store), changed)), { behind: 1 })
  await standby.admin`select pg_wal_replay_resume()`
  await untilAnswered(store)
  t.equal(await nameIn(store), changed)
})

await t.test('a command reads from the primary', async (t) => {
  const store = await openPostgresStore(url, PATIENT)
  t.teardown(async () => await store.close())
  await store.revision()
  for (const read of Object.values(READS)) await read(store)
  const { not_asked, ...asked } = store.standbyReads!()
  t.match(asked, { answered: 0, behind: 0, failed: 0 })
  t.ok(not_asked! >= Object.keys(READS).length)
})

await t.test('a change of facts is none of content', async (t) => {
  const store = await open(t, url)
  await untilAnswered(store)
  await standby.admin`select pg_wal_replay_pause()`
  t.teardown(() => standby.admin`select pg_wal_replay_resume()`)
  await createPartners(writer, 'acme')
  await store.revision()
  t.strictSame(await store.counted(() => READS.findProfile(store)), { answered: 1 })
})

await t.test('a change of the process itself is in its next read', async (t) => {
  const store = await open(t, url)
  await untilAnswered(store)
  await standby.admin`select pg_wal_replay_pause()`
  t.teardown(() => standby.admin`select pg_wal_replay_resume()`)
  const changed = await change(store)
  t.strictSame(await store.counted(async () => t.equal(await nameIn(store), changed)), { not_asked: 1 })
})

await t.test('rows that are newer than the confirmed revision are used once the primary has confirmed it', async (t) => {
  const store = await open(t, url)
  await untilAnswered(store)
  const changed = await change(writer)
  await standby.caughtUp()
  t.strictSame(await store.counted(async () => t.equal(await nameIn(store), changed)), { answered: 1 })
})

await t.test('a key that was issued a moment ago is found, also if the standby lacks it', async (t) => {
  const database = await server.createDatabase()
  const store = await open(t, withStandby(database))
  const { store: writer } = await createPlace(t, server, () => database)
  await createPartners(writer, 'acme')
  await untilAnswered(store, READS.findKey)
  await standby.admin`select pg_wal_replay_pause()`
  t.teardown(() => standby.admin`select pg_wal_replay_resume()`)
  const ids = ['new-1', 'new-2', 'new-3', 'new-4']
  const issued = ids.map((id) => ({ type: 'key.issued' as const, key: key({ id }) }))
  await apply(writer, ...issued, imported('new-5', whole, texts.whole))
  const found = await Promise.all([
    ...ids.map((id) => store.findKey(id)),
    store.findImportedKey!(texts.whole),
  ])
  t.strictSame(found.map((facts) => facts && facts.key.id), [...ids, 'new-5'])
})

await t.test('an answer that a later question has overtaken leaves no older revision', async (t) => {
  const database = openDatabase(t, url, PATIENT)
  const revisions = createRevisions(database)
  revisions.follow()
  const repeated = Promise.withResolvers<void>()
  const overtaken = revisions.current(async (sql) => {
    await repeated.promise
    return await database.lookUp(sql)
  })
  const { content } = await revisions.current()
  t.equal(revisions.confirmed()?.content, content)
  await change(writer)
  repeated.resolve()
  t.not((await overtaken).content, content)
  t.equal(revisions.confirmed(), undefined)
})

await t.test('rows of another history are not used, however many changes it has', async (t) => {
  const database = openDatabase(t, url, PATIENT)
  const revisions = createRevisions(database)
  revisions.follow()
  const { content } = await revisions.current()
  const [, id, mark, changes] = /^(.*)-(\w+)\.(\d+)$/.exec(content)!
  const counts = { answered: 0, behind: 0, failed: 0, not_asked: 0 }
  async function readFrom(mark: string, changes: number) {
    const rows = (
      sql: string,
    ) => [sql.includes('pg_is_in_recovery') ? [true, id, mark, changes] : ['standby']]
    const query = ((sql: string) => Promise.resolve(rows(sql))) as never
    const run: Standby['run'] = (_options, work) => work(query)
    const reader = createReader({ ...database, standby: { run } }, revisions, 'content', counts)
    return String(await reader.read("SELECT 'primary'"))
  }
  t.equal(await readFrom(mark!, Number(changes)), 'standby')
  for (const more of [-1, 0, 1]) t.equal(await readFrom('lost', Number(changes) + more), 'primary')
  t.match(counts, { answered: 1, behind: 3 })
})

await t.test('a standby that hangs is left alone for a while', async (t) => {
  const database = openDatabase(t, url, PATIENT)
  const revisions = createRevisions(database)
  revisions.follow()
  await revisions.current()
  const counts = { answered: 0, behind: 0, failed: 0, not_asked: 0 }
  const run = async () => {
    await database.read('SELECT pg_sleep(0.5)')
    throw new Error('it took long')
  }
  const reader = createReader({ ...database, standby: { run } }, revisions, 'content', counts)
  for (const _ of [1, 2, 3]) t.equal(String(await reader.read('SELECT 1')), '1')
  t.match(counts, { failed: 2, not_asked: 1 })
})

await t.test('the primary answers when a standby fails or takes long', async (t) => {
  const database = openDatabase(t, url, { lookUpTimeoutMs: 1_200 })
  const revisions = createRevisions(database)
  revisions.follow()
  await revisions.current()
  const counts = { answered: 0, behind: 0, failed: 0, not_asked: 0 }
  const reader = createReader(database, revisions, 'content', counts)
  const troubles = {
    // As in a conflict with what it replays, the transaction fails and the connection remains.
    'an error': 'SELECT 1 / CASE WHEN pg_is_in_recovery() THEN 0 ELSE 1 END',
    'a long statement': 'SELECT 1 FROM pg_sleep(CASE WHEN pg_is_in_recovery() THEN 60 ELSE 0 END)',
    'a lost connection':
      'SELECT 1 WHERE NOT pg_is_in_recovery() OR NOT pg_terminate_backend(pg_backend_pid(), 10000)',
  }
  for (const [trouble, sql] of Object.entries(troubles)) {
    const ways: Record<string, (sql: string) => Promise<unknown>> = {
      lookUp: (sql) => reader.lookUp(sql),
      read: (sql) => reader.read(sql),
      search: (sql) => reader.search((query) => query(sql)),
    }
    for (const [name, read] of Object.entries(ways)) {
      await until(async () => {
        const { answered } = counts
        await read('SELECT 1')
        return counts.answered > answered
      }, 'a standby to answer')
      const { failed } = counts
      t.equal(String(await read(sql)), '1', `${name}: ${trouble}`)
      t.equal(counts.failed, failed + 1)
    }
  }
})

await t.test('with a pooler, a read and its revision come from one server', {
  skip: hasPooler() ?? false,
}, async (t) => {
  const poolers = await Promise.all([startPooler(server), startPooler(standby)])
  t.teardown(() => Promise.all(poolers.map((pooler) => pooler.close())))
  const hosts = poolers.map((pooler) => new URL(pooler.url(direct)).host).join(',')
  const store = await open(t, `${url.replace(/@[^/]+/, `@${hosts}`)}&pooler=transaction`)
  for (const [name, read] of Object.entries(READS)) {
    await untilAnswered(store, read)
    t.strictSame(await store.counted(() => read(store)), { answered: 1 }, name)
    t.strictSame(await read(store), await read(writer), name)
  }
})

await t.test('without the primary, a standby that has the confirmed revision answers', async (t) => {
  // What asks the primary takes as long.
  const store = await open(t, url, { lookUpTimeoutMs: 2_000 })
  await untilAnswered(store)
  const expected = await nameIn(writer)
  await server.kill()
  t.teardown(() => server.restart())
  await until(async () => {
    const answered = await store.counted(() => nameIn(store).catch(() => undefined))
    return answered['answered'] === 1
  }, 'the standby to answer')
  t.equal(await nameIn(store), expected)
  await t.rejects(async () => await store.revision(), { code: 'unreachable' })
  t.equal(await nameIn(store), expected)
})

// Last: the standby is promoted.
await t.test('no read lacks a confirmed change, whatever happens to the standby', async (t) => {
  const database = await server.createDatabase()
  const store = await open(t, withStandby(database), {})
  const writer = await openPostgresStore(database)
  t.teardown(async () => await writer.close())
  const oracle = await createOracle(writer, store)
  t.teardown(() => oracle.close())
  const { counts } = store
  const more = async (name: string, by = 20) => {
    const enough = counts[name]! + by
    await until(() => counts[name]! >= enough, `${by} more reads ${name}`)
  }

  const faults: Record<string, () => Promise<unknown>> = {
    'in order': () => more('answered', 500),
    async 'replay paused'() {
      await standby.admin`select pg_wal_replay_pause()`
      await more('behind')
      await standby.admin`select pg_wal_replay_resume()`
      await more('answered', 100)
    },
    async 'cut off'() {
      gate.cut()
      await more('failed', 1)
      await more('not_asked', 200)
      await gate.restore()
      await more('answered', 100)
    },
    async 'refuses connections'() {
      await gate.reset()
      await more('not_asked', 200)
      await gate.restore()
      await more('answered', 100)
    },
    async hangs() {
      await Promise.all([more('failed', 1), standby.pause()])
      await more('not_asked', 200)
      await standby.resume()
      await more('answered', 100)
    },
    async promoted() {
      await Promise.all([more('failed', 1), standby.promote()])
      await more('not_asked', 200)
    },
  }
  for (const [name, fault] of Object.entries(faults)) {
    const stop = oracle.changeEvery(10)
    let isOver = false
    const [outcome] = await Promise.all([
      oracle.readWhile(() => !isOver),
      within(fault(), name).finally(() => isOver = true),
    ]).finally(stop)
    t.match(outcome, { stale: 0, failed: 0 }, name)
  }
})
