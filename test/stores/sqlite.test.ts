import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { copyStore } from '../../adapters/stores/copy/copy.ts'
import { openSqliteSource, openSqliteTarget } from '../../adapters/stores/sqlite/copy.ts'
import { migrationStatus } from '../../adapters/stores/sqlite/migrate.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { storeContract } from '../contract/store/suites.ts'
import {
  actor,
  apply,
  claim,
  createPartners,
  exported,
  industry,
  key,
  partner,
  profile,
  publish,
  query,
  signup,
  stamp,
  T0,
} from '../contract/store/samples.ts'

const folder = mkdtempSync(join(tmpdir(), 'partner-api-sqlite-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
const newFile = () => join(folder, `${++files}.db`)

// In memory, as a disk makes it many times slower. Files are opened below, and by the contract over HTTP.
await t.test('the contract of stores', (t) => storeContract(t, () => openSqliteStore(':memory:')))

await t.test('all of it is there when the file is opened again', async (t) => {
  const file = newFile()
  const first = await openSqliteStore(file)
  await createPartners(first, 'acme')
  await apply(first, { type: 'key.issued', key: key() })
  await publish(first, [profile('a')])
  const { settings } = first
  const revision = await first.revision()
  await first.close()
  const second = await openSqliteStore(file, { create: false, migrate: false })
  t.strictSame(second.settings, settings)
  t.strictSame(await second.revision(), revision)
  t.strictSame(await second.findKey(key().id), { key: key(), partner: partner({ slug: 'acme' }) })
  t.equal((await second.listProfiles('acme', query(), T0)).length, 1)
  await second.close()
})

await t.test('of a profile that is hidden no more is read than of one that is absent', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  t.teardown(() => store.close())
  await createPartners(store, 'acme', 'other')
  await publish(store, [profile('shared', { visibleTo: ['acme'] })])
  t.equal((await store.findProfile('acme', 'shared', T0))?.slug, 'shared')
  const other = new DatabaseSync(file)
  other.exec(`UPDATE profile SET detail = 'no JSON'`)
  other.close()
  t.throws(() => store.findProfile('acme', 'shared', T0), 'what is read is noticed')
  t.equal(await store.findProfile('other', 'shared', T0), undefined)
})

await t.test('connections see at once what others have committed', async (t) => {
  const file = newFile()
  const [a, b] = [await openSqliteStore(file), await openSqliteStore(file)]
  t.strictSame(await a.revision(), await b.revision())
  for (const [writer, reader] of [[a, b], [b, a], [a, b]] as const) {
    const before = await reader.revision()
    await createPartners(writer, `p${(await writer.listPartners(undefined, 1000)).length}`)
    t.not((await reader.revision()).facts, before.facts)
    t.equal((await reader.revision()).content, before.content)
    t.strictSame(await reader.revision(), await writer.revision())
    await publish(writer, [profile(`p${before.content}`)])
    t.not((await reader.revision()).content, before.content)
    t.strictSame(await reader.revision(), await writer.revision())
  }
  t.equal((await a.listProfiles('acme', query(), T0)).length, 3)
  t.equal((await b.listProfiles('acme', query(), T0)).length, 3)

  const before = await b.revision()
  t.equal(await a.apply([{ type: 'partner.suspended', slug: 'p0' }], before.facts, stamp), true)
  t.equal(await b.apply([{ type: 'partner.resumed', slug: 'p0' }], before.facts, stamp), false)
  await a.recordKeyUses(new Map([['nothing', T0]]))
  const after = await b.revision()
  await a.recordKeyUses(new Map([['nothing', T0]]))
  t.strictSame(await b.revision(), after)
  await a.close()
  await b.close()
})

await t.test('while another process writes, pages are read as before and uses of keys are not waited for', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  await createPartners(store, 'acme')
  await apply(store, { type: 'key.issued', key: key() })
  await publish(store, [profile('a')])
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  t.equal((await store.listProfiles('acme', query(), T0)).length, 1)
  t.equal((await store.findKey(key().id))?.key.id, key().id)
  t.throws(() => store.recordKeyUses(new Map([[key().id, T0]])), {
    code: 'unreachable',
    message: /another process is writing to it\.$/,
  })
  other.exec('ROLLBACK')
  await store.recordKeyUses(new Map([[key().id, T0]]))
  t.equal((await store.findKey(key().id))?.key.lastUsedAt, T0)
  other.close()
  await store.close()
})

await t.test('the revisions of two files are never equal', async (t) => {
  const [a, b] = [await openSqliteStore(newFile()), await openSqliteStore(newFile())]
  t.not((await a.revision()).facts, (await b.revision()).facts)
  t.not((await a.revision()).content, (await b.revision()).content)
  t.not(a.settings.cursorSecret, b.settings.cursorSecret)
  await a.close()
  await b.close()
})

await t.test('the key prefix can be settled until there is a key', async (t) => {
  const file = newFile()
  const open = async (keyPrefix?: string) => {
    const store = await openSqliteStore(file, keyPrefix === undefined ? {} : { keyPrefix })
    await store.close()
    return store.settings
  }
  const first = await open('first')
  t.equal(first.keyPrefix, 'first')
  t.strictSame(await open(), first)
  t.strictSame(await open('last'), { ...first, keyPrefix: 'last' })
  const store = await openSqliteStore(file)
  await createPartners(store, 'acme')
  await apply(store, { type: 'key.issued', key: key() })
  await store.close()
  t.strictSame(await open('last'), { ...first, keyPrefix: 'last' })
  await t.rejects(open('other'), {
    code: 'refused',
    message: /cannot become other: it holds keys that begin with last/,
  })
  await t.rejects(open('Other'), { code: 'refused', message: /2 to 10 lower-case/ })
  t.strictSame(await open(), { ...first, keyPrefix: 'last' })
})

await t.test('a file that is not there is made, unless it has to be there', async (t) => {
  const file = newFile()
  await t.rejects(openSqliteStore(file, { create: false }), { code: 'unreachable', message: /no such file/ })
  t.throws(() => migrationStatus(file), { code: 'unreachable', message: /no such file/ })
  t.notOk(existsSync(file))
  await t.rejects(openSqliteStore(join(folder, 'none', 'a.db')), {
    code: 'unreachable',
    message: /cannot be opened/,
  })
  await (await openSqliteStore(file)).close()
  t.ok(existsSync(file))
})

await t.test('a file that is something else stays as it is', async (t) => {
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
  t.equal(pending[0], '001-facts-and-content')
  await t.rejects(openSqliteStore(file, { migrate: false }), {
    code: 'refused',
    message: /version 0.*migrate it first/,
  })
  t.equal(statSync(file).size, 0)
  await (await openSqliteStore(file)).close()
  t.strictSame(migrationStatus(file), { current: latest, latest, pending: [] })
})

await t.test('a schema of a newer program is refused', async (t) => {
  const file = newFile()
  await (await openSqliteStore(file)).close()
  const newer = new DatabaseSync(file)
  newer.exec(`INSERT INTO migration VALUES (99, '099-of-tomorrow', 0)`)
  newer.close()
  await t.rejects(openSqliteStore(file), { code: 'newer_schema', message: /version 99/ })
  await t.rejects(openSqliteStore(file, { migrate: false }), { code: 'newer_schema' })
  t.equal(migrationStatus(file).current, 99)
})

await t.test('a file restored from a dump is a store, and gets the application id that dumps lack', async (t) => {
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

await t.test('a new file, and what SQLite keeps beside it, is for its owner alone', async (t) => {
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
  /** What was committed meanwhile was committed with FULL (2) or EXTRA (3). */
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
  await isDurable('a signup', () => store.createSignup(signup('1'), claim()))
  await isDurable('an import', () => publish(store, [profile('a')]))
  await isDurable('a removal', () => store.removeContent('profiles', ['a'], stamp))
  await isDurable('another key prefix', async () => {
    await (await openSqliteStore(newFile(), { keyPrefix: 'abc' })).close()
  })
  await isDurable('a copy', async () => {
    const [source, target] = [openSqliteSource(file), openSqliteTarget(newFile())]
    await copyStore(source, target, { now: T0 })
    await source.close()
    await target.close()
  })
})

const child = fileURLToPath(new URL('sqlite-child.ts', import.meta.url))

/** Starts a process on a file. `said` resolves with each line that it prints, in turn. */
function start(...parameters: string[]) {
  const started = spawn(process.execPath, [child, ...parameters], { stdio: ['pipe', 'pipe', 'inherit'] })
  started.stdout.setEncoding('utf8')
  const lines = started.stdout[Symbol.asyncIterator]()
  return {
    said: async (): Promise<string> => String((await lines.next()).value ?? '').trim(),
    go: () => started.stdin.end('\n'),
    kill: async () => {
      started.kill('SIGKILL')
      await once(started, 'close')
    },
    ended: once(started, 'close'),
  }
}

await t.test('processes that start at once on an empty file make one store of it', async (t) => {
  for (let round = 0; round < 5; round++) {
    const file = newFile()
    const children = [start('open', file), start('open', file), start('open', file)]
    for (const { said } of children) t.equal(await said(), 'ready')
    for (const { go } of children) go()
    const secrets = await Promise.all(children.map(({ said }) => said()))
    await Promise.all(children.map(({ ended }) => ended))
    t.match(secrets[0], /^[0-9a-f]{64}$/)
    t.strictSame(secrets, [secrets[0], secrets[0], secrets[0]])
    const database = new DatabaseSync(file, { readOnly: true })
    const applied = database.prepare('SELECT count(*) AS rows FROM migration').get()?.rows
    t.equal(applied, migrationStatus(file).latest)
    database.close()
  }
})

await t.test('a process that is killed in the middle of an import leaves nothing of it', async (t) => {
  for (const steps of [1, 4, 8, 1000]) {
    const file = newFile()
    const store = await openSqliteStore(file)
    await store.importContent('industries', [industry('education')], { now: T0, actor })
    await store.importContent('profiles', [profile('before')], { now: T0, actor })
    const before = await store.revision()
    const importing = start('import', file, String(steps))
    t.equal(await importing.said(), 'ready')
    importing.go()
    const said = await importing.said()
    await importing.ended
    if (said === 'done') {
      t.equal(steps, 1000)
      t.equal((await exported(store, 'profiles')).length, 6001)
      await store.close()
      continue
    }
    t.strictSame(await store.revision(), before)
    t.strictSame(await exported(store, 'profiles'), [profile('before')])
    // It might be under way still, as far as others know.
    t.throws(() => store.importContent('profiles', [profile('after')], { now: T0, actor }), {
      code: 'refused',
    })
    const database = new DatabaseSync(file)
    database.exec('UPDATE store SET import_at = import_at - 60000')
    const [other] = [await openSqliteStore(file)]
    t.equal(database.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name LIKE 'next%'").get()?.n, 0)
    await store.importContent('profiles', [profile('after')], { now: T0, actor })
    t.equal((await store.listProfiles('acme', query(), T0)).length, 2)
    for (const open of [database, other, store]) await open.close()
  }
})
