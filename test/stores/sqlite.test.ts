import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import t from 'tap'
import { copyStore } from '../../adapters/stores/sql/copy.ts'
import { openSqliteCopy } from '../../adapters/stores/sqlite/copy.ts'
import { openDatabase } from '../../adapters/stores/sqlite/database.ts'
import { migrate, MIGRATIONS, migrationStatus } from '../../adapters/stores/sqlite/migrate.ts'
import { openSqliteStore, StoreError } from '../../adapters/stores/sqlite/store.ts'
import type { Replica } from '../../core/ports/replicas.ts'
import { durableContract } from '../contract/store/durable.ts'
import {
  apply,
  createPartners,
  key,
  profile,
  publish,
  reservation,
  signup,
  stamp,
  T0,
  usageCount,
} from '../contract/store/samples.ts'
import { sharedStoreContract, storeContract } from '../contract/store/suites.ts'
import { tamperingContract } from '../contract/store/tampering.ts'
import { newFile } from '../support/cli-program.ts'
import { openMemoryStore, shareMemoryStore } from '../support/memory-store.ts'

// In memory, as a disk makes it many times slower. Files are opened below, and by the contract over HTTP.
await t.test('the contract of stores', (t) => storeContract(t, openMemoryStore))

await t.test('the contract of stores that replicas share, in memory', (t) =>
  sharedStoreContract(t, shareMemoryStore))

await t.test('the contract of stores that processes share', async (t) => {
  // A file waits for the disk.
  fc.configureGlobal({ numRuns: 15 })
  await sharedStoreContract(t, () => {
    const file = newFile()
    return Promise.resolve(() => openSqliteStore(file, { shareLimits: true }))
  })
  fc.resetConfigureGlobal()
})

await tamperingContract(t, async () => {
  const file = newFile()
  const store = await openSqliteStore(file)
  return {
    store,
    // deno-lint-ignore require-await -- a thrown error is to be a rejection
    async tamper(sql) {
      const database = new DatabaseSync(file)
      database.exec(sql)
      database.close()
    },
    table: (name) => name,
    derived: {},
    undo: {
      create: `CREATE TRIGGER undo AFTER UPDATE ON partner_key BEGIN
        UPDATE partner_key SET state = old.state, name = old.name WHERE id = new.id; END`,
      drop: 'DROP TRIGGER undo',
    },
  }
})

await durableContract(t, () => {
  const file = newFile()
  return Promise.resolve((options) => openSqliteStore(file, options))
})

await t.test('a hidden profile costs no more reads than an absent one', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  t.teardown(() => store.close())
  await createPartners(store, 'acme', 'other')
  await publish(store, [profile('shared', { visibleTo: ['acme'] })])
  t.equal((await store.findProfile('acme', 'shared', T0))?.slug, 'shared')
  const other = new DatabaseSync(file)
  other.exec(`UPDATE profile SET detail = 'no JSON'`)
  other.close()
  t.throws(() => store.findProfile('acme', 'shared', T0), 'the detail of a visible profile is read')
  t.equal(await store.findProfile('other', 'shared', T0), undefined)
})

const idleReplica: Replica = {
  name: 'one',
  leaseMs: 60_000,
  revalidateEveryMs: 60_000,
  revalidate: () => Promise.resolve({ facts: 'a', content: 'a' }),
  skewMs: () => 0,
}

await t.test('stores in memory are independent', async (t) => {
  const a = await openMemoryStore()
  const b = await openMemoryStore({ keyPrefix: 'acme2' })
  t.strictSame([a.settings.keyPrefix, b.settings.keyPrefix], ['spk', 'acme2'])
  t.not(a.settings.cursorSecret, b.settings.cursorSecret)
  t.notSame(await a.revision(), await b.revision())
  await createPartners(a, 'acme')
  t.equal(await b.findPartner('acme'), undefined)
  const month = { policy: 'month', subject: 'acme 2026-01', quota: 9, windowSeconds: 3_600 } as const
  await a.quotas.leaseQuota({ ...month, wanted: 4 })
  t.equal((await b.quotas.leaseQuota({ ...month, wanted: 0 })).remaining, 9)
  await a.replicas.register(idleReplica).registered()
  t.equal((await a.replicas.progress(await a.revision())).length, 1)
  t.strictSame(await b.replicas.progress(await b.revision()), [])
  await a.close()
  t.equal((await b.revision()).facts.length > 0, true, 'the other one stays open')
  await b.close()
})

await t.test('a closed store says that it is closed, and can be closed again', async (t) => {
  for (const file of [newFile(), ':memory:']) {
    const store = await openSqliteStore(file)
    await createPartners(store, 'acme')
    await store.replicas.progress(await store.revision())
    const lease = {
      policy: 'month',
      subject: 'acme 2026-01',
      quota: 9,
      windowSeconds: 3_600,
      wanted: 1,
    } as const
    await store.quotas.leaseQuota(lease)
    await store.close()
    await store.close()
    const closed = { code: 'unreachable', message: `The store ${file} is closed.` }
    const uses: Readonly<Record<string, () => unknown>> = {
      revision: store.revision,
      check: store.check,
      findPartner: () => store.findPartner('acme'),
      apply: () => createPartners(store, 'other'),
      createSignup: () => store.createSignup(signup('1'), reservation()),
      recordUsage: () => store.recordUsage([usageCount()], 'a'),
      exportContent: async () => await Array.fromAsync(await store.exportContent('profiles')),
      countProfiles: () => store.countProfiles('acme', 'country', 0),
      eraseRemains: () => store.eraseRemains(false),
      leaseQuota: () => store.quotas.leaseQuota(lease),
      register: () => store.replicas.register(idleReplica).registered(),
    }
    for (const [name, use] of Object.entries(uses)) {
      await t.rejects(async () => await use(), closed, `${name} of ${file}`)
    }
  }
})

await t.test('a missing file is created, unless create is false', async (t) => {
  const file = newFile()
  await t.rejects(openSqliteStore(file, { create: false }), { code: 'unreachable', message: /no such file/ })
  t.throws(() => migrationStatus(file), { code: 'unreachable', message: /no such file/ })
  t.notOk(existsSync(file))
  await t.rejects(openSqliteStore(join(newFile(), 'none', 'a.db')), {
    code: 'unreachable',
    message: /cannot be opened/,
  })
  await (await openSqliteStore(file)).close()
  t.ok(existsSync(file))
})

await t.test('the entries of both stores, and of the service, export the class of their errors', async (t) => {
  const modules = [import('../../adapters/stores/postgres/store.ts'), import('../../core/mod.ts')]
  for (const module of await Promise.all(modules)) t.equal(module.StoreError, StoreError)
  t.type(await openSqliteStore('memory:').catch((error: unknown) => error), StoreError)
})

await t.test('a URL is no path', async (t) => {
  for (const url of ['memory:', 'sqlite:partner-api.db', 'postgres://user:secret@127.0.0.1/p']) {
    await t.rejects(openSqliteStore(url), {
      code: 'refused',
      message: "openSqliteStore takes the path of a file or ':memory:', and no URL.",
    })
    t.notOk(existsSync(url), url)
  }
})

await t.test('a file of another program is refused and stays unchanged', async (t) => {
  const text = newFile()
  writeFileSync(text, 'no database, but long enough to be read as the header of one'.repeat(20))
  await t.rejects(openSqliteStore(text), {
    code: 'unreachable',
    message: /cannot be read: file is not a database/,
  })
  t.throws(() => migrationStatus(text), { code: 'unreachable' })

  const foreign = newFile()
  const theirs = new DatabaseSync(foreign)
  theirs.exec('CREATE TABLE migration (version INTEGER)')
  await t.rejects(openSqliteStore(foreign), { code: 'refused', message: /database of another program/ })
  t.throws(() => migrationStatus(foreign), { code: 'refused' })
  t.equal(theirs.prepare('PRAGMA journal_mode').get()?.journal_mode, 'delete')
  t.equal(theirs.prepare('SELECT count(*) AS tables FROM sqlite_schema').get()?.tables, 1)
  theirs.close()
})

await t.test('a schema is migrated only on demand, and its status changes nothing', async (t) => {
  const file = newFile()
  writeFileSync(file, '')
  const { current, latest, pending } = migrationStatus(file)
  t.equal(current, 0)
  t.equal(latest, pending.length)
  await t.rejects(openSqliteStore(file, { migrate: false }), {
    code: 'missing',
    message: /^There is no store at /,
  })
  t.equal(statSync(file).size, 0)
  await (await openSqliteStore(file)).close()
  t.strictSame(migrationStatus(file), { current: latest, latest, pending: [] })
})

await t.test('a file of an older schema is migrated, and of a newer one refused', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  await createPartners(store, 'acme')
  await store.close()
  const database = openDatabase(file, { create: false })
  const next = { name: 'next', sql: 'CREATE TABLE next (id INTEGER) STRICT' }
  const failing = { name: 'failing', sql: 'CREATE TABLE next (id INTEGER)' }
  t.throws(() => migrate(database, file, undefined, [...MIGRATIONS, next, failing]), /already exists/)
  t.equal(migrationStatus(file).current, MIGRATIONS.length, 'all migrations are one transaction')
  for (let times = 0; times < 2; times++) migrate(database, file, undefined, [...MIGRATIONS, next])
  database.close()
  const newer = new DatabaseSync(file)
  const names = newer.prepare('SELECT name FROM migration ORDER BY version').all().map(({ name }) => name)
  t.strictSame(names, [...MIGRATIONS, next].map(({ name }) => name))
  t.equal(newer.prepare('SELECT count(*) AS rows FROM partner LEFT JOIN next').get()?.rows, 1)
  newer.close()
  await t.rejects(openSqliteStore(file), {
    code: 'newer_schema',
    message: new RegExp(`version ${MIGRATIONS.length + 1}`),
  })
  await t.rejects(openSqliteStore(file, { migrate: false }), { code: 'newer_schema' })
  t.equal(migrationStatus(file).current, MIGRATIONS.length + 1)
})

await t.test('a file of another build, with the same version, is refused', async (t) => {
  const file = newFile()
  const database = openDatabase(file, { create: true })
  const [first] = MIGRATIONS
  migrate(database, file, undefined, [{ ...first!, sql: `${first!.sql}\n` }])
  database.close()
  const before = statSync(file).size
  const refusal = { code: 'refused', message: /another build .* migration 001-store differs/ }
  for (const options of [{}, { migrate: false }, { readOnly: true }]) {
    await t.rejects(openSqliteStore(file, options), refusal)
  }
  t.throws(() => migrationStatus(file), refusal)
  t.equal(statSync(file).size, before)
})

await t.test('a file restored from a dump opens, and gets the application id that dumps lack', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  await createPartners(store, 'acme')
  await store.close()
  const restored = newFile()
  const dumped = new DatabaseSync(file)
  dumped.exec(`VACUUM INTO '${restored}'`)
  dumped.close()
  const database = new DatabaseSync(restored)
  // All that `sqlite3 store.db .dump | sqlite3 restored.db` loses.
  database.exec('PRAGMA application_id = 0')
  database.close()
  t.equal(migrationStatus(restored).pending.length, 0)
  const opened = await openSqliteStore(restored, { create: false, migrate: false })
  t.equal((await opened.findPartner('acme'))?.slug, 'acme')
  await opened.close()
  const after = new DatabaseSync(restored, { readOnly: true })
  t.equal(after.prepare('PRAGMA application_id').get()?.application_id, 0x70617069)
  after.close()
  const other = new DatabaseSync(newFile())
  other.exec(`CREATE TABLE migration (version, name); CREATE TABLE store (id); INSERT INTO store VALUES (1);
    INSERT INTO migration VALUES (1, 'of another program')`)
  const foreign = String(other.location())
  other.close()
  await t.rejects(openSqliteStore(foreign), { code: 'refused', message: /another program/ })
})

await t.test('a new file and the files beside it are accessible to their owner only', async (t) => {
  const umask = process.umask(0)
  t.teardown(() => void process.umask(umask))
  const file = newFile()
  const store = await openSqliteStore(file)
  await createPartners(store, 'acme')
  for (const path of [file, `${file}-wal`, `${file}-shm`]) t.equal(statSync(path).mode & 0o777, 0o600, path)
  await store.close()
})

await t.test('every connection that commits waits for the disk', async (t) => {
  const { exec } = DatabaseSync.prototype
  const levels: unknown[] = []
  DatabaseSync.prototype.exec = function (sql) {
    if (/\bCOMMIT\b/.test(sql)) levels.push(this.prepare('PRAGMA synchronous').get()?.synchronous)
    exec.call(this, sql)
  }
  t.teardown(() => void (DatabaseSync.prototype.exec = exec))
  /** All commits of the work were made with FULL (2) or EXTRA (3). */
  async function isDurable(what: string, work: () => unknown): Promise<void> {
    levels.length = 0
    await work()
    t.ok(levels.length > 0 && levels.every((level) => Number(level) >= 2), `${what}: ${levels}`)
  }
  const file = newFile()
  let store = await openSqliteStore(newFile())
  await isDurable('migrating', async () => {
    store = await openSqliteStore(file)
  })
  t.teardown(() => store.close())
  await isDurable('a change', () => createPartners(store, 'acme'))
  await isDurable('a key', () => apply(store, { type: 'key.issued', key: key() }))
  await isDurable('a signup', () => store.createSignup(signup('1'), reservation()))
  await isDurable(
    'signups of one moment',
    () => Promise.all(['2', '3', '4'].map((id) => store.createSignup(signup(id), undefined))),
  )
  t.equal(levels.length, 1, 'they share a commit')
  await isDurable('an import', () => publish(store, [profile('a')]))
  await isDurable('a removal', () => store.removeContent('profiles', ['a'], stamp))
  await isDurable('another key prefix', async () => {
    await (await openSqliteStore(newFile(), { keyPrefix: 'abc' })).close()
  })
  await isDurable('a copy', async () => {
    const empty = newFile()
    await (await openSqliteStore(empty)).close()
    const source = openSqliteCopy(empty, { create: false })
    await copyStore(source, () => Promise.resolve(openSqliteCopy(newFile(), { create: true })))
    await source.close()
  })
})

await t.test('deliveries are kept for 30 days after they were settled', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  t.teardown(() => store.close())
  const webhooks = store.webhooks
  const hook = {
    id: 'whk_1',
    url: 'https://hooks.example/',
    events: [],
    partner: undefined,
    state: 'active',
  } as const
  await webhooks.changeWebhook(hook.id, 'webhook.created', stamp, () => ({
    ...hook,
    createdAt: T0,
    secrets: [],
    failingSince: undefined,
  }))
  const event = { type: 'webhook.test', partner: undefined, createdAt: T0, payload: '{}' } as const
  await webhooks.enqueue(['msg_1', 'msg_2', 'msg_3'].map((id) => ({ ...event, id })), hook.id)
  for (const [index, state] of (['delivered', 'failed'] as const).entries()) {
    const [{ webhook, id } = { webhook: '', id: '' }] = await webhooks.leaseDeliveries(hook.id, 1, 0)
    const more = { retryMs: 0, lastStatus: undefined, lastError: undefined }
    await webhooks.settleDeliveries([{ webhook, id, state, ...more }])
    t.equal((await webhooks.listDeliveries(hook.id, 'pending', undefined, 9)).length, 2 - index)
  }
  const database = new DatabaseSync(file)
  t.teardown(() => database.close())
  const age = (days: number) =>
    database.exec(`UPDATE webhook_delivery SET due_at = due_at - ${days} * 86400000`)
  age(29)
  t.equal((await webhooks.pruneDeliveries()).length, 0)
  age(2)
  t.equal((await webhooks.pruneDeliveries()).length, 2)
  const left = await webhooks.listDeliveries(hook.id, undefined, undefined, 9)
  t.strictSame(left.map(({ state }) => state), ['pending'], 'what is pending stays')
})

// The last one: the clock of this process never goes back.
await t.test('deliveries are due by the clock of the process', async (t) => {
  const date = Date.now
  const monotonic = performance.now
  t.teardown(() => Object.assign(Date, { now: date }) && Object.assign(performance, { now: monotonic }))
  const { webhooks, close } = await openSqliteStore(newFile())
  const created = { id: 'whk_1', url: 'https://a.example', events: [], partner: undefined, secrets: [] }
  await webhooks!.changeWebhook(
    'whk_1',
    'webhook.created',
    stamp,
    () => ({ ...created, state: 'active', createdAt: T0, failingSince: undefined }),
  )
  const event = { id: 'msg_1', type: 'webhook.test', partner: undefined, createdAt: T0, payload: '' } as const
  await webhooks!.enqueue([event], 'whk_1')
  const due = async (ms: number) => {
    Date.now = () => date() + ms
    performance.now = () => monotonic.call(performance) + ms
    return await webhooks!.dueWebhooks()
  }
  await webhooks!.leaseDeliveries('whk_1', 1, 30_000)
  t.strictSame([await due(0), await due(31_000)], [[], ['whk_1']])
  await close()
})
