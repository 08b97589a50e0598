/** Stores whose file is deleted, replaced, truncated, overwritten or full while it is open. */
import { spawnSync } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openDatabase } from '../../adapters/stores/sqlite/database.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { Store } from '../../core/ports/store.ts'
import {
  createKeys,
  createPartners,
  industry,
  profile,
  publish,
  query,
  signup,
  stamp,
  T0,
  usageCount,
} from '../contract/store/samples.ts'
import { until } from '../postgres/until.ts'
import { documentOf, newFile, runProgram, startServing } from '../support/cli-program.ts'

/** Moves everything from the log into the file. */
function checkpoint(file: string): void {
  const database = new DatabaseSync(file)
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
}

function overwrite(file: string, length: number, position: number): void {
  const open = openSync(file, 'r+')
  writeSync(open, new Uint8Array(length).fill(7), 0, length, position)
  closeSync(open)
}

const losses: Readonly<Record<string, (file: string) => void>> = {
  deleted: (file) => unlinkSync(file),
  'moved away': (file) => renameSync(file, `${file}.old`),
  'replaced by another file': (file) => {
    copyFileSync(file, `${file}.new`)
    renameSync(`${file}.new`, file)
  },
  'separated from its log': (file) => unlinkSync(`${file}-wal`),
  'separated from the index of its log': (file) => unlinkSync(`${file}-shm`),
}

for (const [what, lose] of Object.entries(losses)) {
  await t.test(`a store whose file was ${what} is unavailable until it is opened again`, async (t) => {
    const file = newFile()
    const store = await openSqliteStore(file)
    await createKeys(store, 'acme')
    const api = createPartnerApi({ store }, { maxStalenessMs: 0 })
    const health = async () => (await api.fetch(new Request('http://localhost/service/health'))).status
    const sign = async (id: string) => await store.createSignup(signup(id, { keyId: 'acme-live' }), undefined)
    t.strictSame(await sign('1'), { outcome: 'created' })
    t.equal(await health(), 200)
    lose(file)
    const lost = { code: 'unreachable', message: /is not the file that was opened/ }
    await t.rejects(sign('2'), lost, 'no signup is acknowledged')
    t.throws(() => store.apply([], '', stamp), lost)
    t.equal(await health(), 503)
    // May fail: without its log, the rest may be no store.
    await openSqliteStore(file).then((other) => other.close(), () => undefined)
    await setTimeout(10)
    t.throws(() => store.revision(), lost, 'a new store in its place is another store')
    await api.close()
    await store.close()
  })
}

await t.test('a store is available again when its own file is back', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  await createKeys(store, 'acme')
  renameSync(file, `${file}.away`)
  await setTimeout(10)
  t.throws(() => store.revision(), { code: 'unreachable' })
  renameSync(`${file}.away`, file)
  t.equal(store.revision(), store.revision())
  t.strictSame(await store.createSignup(signup('1', { keyId: 'acme-live' }), undefined), {
    outcome: 'created',
  })
  await store.close()
})

await t.test('a server whose file was replaced ends, so that a supervisor starts it again', async (t) => {
  const file = newFile()
  const { ended, url } = await startServing(['serve', '--port', '0'], `sqlite:${file}`)
  t.equal((await fetch(`${url}/service/health`)).status, 200)
  losses['replaced by another file']!(file)
  const { code, stderr } = await ended
  t.equal(code, 3)
  t.match(stderr, /is not the file that was opened/)
})

await t.test('a write whose file is deleted meanwhile is not acknowledged', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  const progress = () => rmSync(file, { force: true })
  const records = Array.from({ length: 500 }, (_, number) => industry(`i${number}`))
  t.throws(() => store.importContent('industries', records, { ...stamp, now: T0, progress }), {
    code: 'unreachable',
  })
  await setTimeout(10)
  t.throws(() => store.revision(), { code: 'unreachable' }, 'reads notice within milliseconds')
  await store.close()
})

/** A replica that confirms the revision every few milliseconds, counted, and shares limits. */
async function startReplica(t: Test) {
  const file = newFile()
  const store = await openSqliteStore(file, { shareLimits: true })
  let polls = 0
  const revalidate = async () => {
    polls++
    return await store.revision()
  }
  const member = store.replicas.register({
    name: 'one',
    leaseMs: 1_000,
    revalidateEveryMs: 5,
    revalidate,
    skewMs: () => 0,
  })
  await member.registered()
  t.teardown(async () => {
    await member.deregister()
    await store.close()
  })
  const polled = async () => {
    const from = polls
    await until(() => polls > from + 2, 'the replica to confirm')
  }
  return { file, store, member, polled }
}

await t.test('servers create the file again in which they register', async (t) => {
  const { file, store, polled } = await startReplica(t)
  await polled()
  for (const suffix of ['', '-wal', '-shm']) unlinkSync(`${file}-servers${suffix}`)
  const other = await openSqliteStore(file, { shareLimits: true })
  const names = async () => (await other.replicas.progress(await other.revision())).map(({ name }) => name)
  await until(async () => (await names())[0] === 'one', 'the replica to register again')
  const lease = { policy: 'key' as const, subject: 'a', quota: 10, windowSeconds: 60, wanted: 4 }
  t.match(await store.quotas.leaseQuota(lease), { granted: 4, remaining: 6 })
  t.match(await other.quotas.leaseQuota(lease), { granted: 4, remaining: 2 })
  await other.close()
})

await t.test('a server stays registered while the disk is full', async (t) => {
  const { file, member, polled } = await startReplica(t)
  await polled()
  const database = new DatabaseSync(`${file}-servers`)
  database.exec(`CREATE TRIGGER full BEFORE UPDATE ON replica BEGIN
    SELECT RAISE(ABORT, 'database or disk is full'); END`)
  database.close()
  const { now } = Date
  t.teardown(() => Date.now = now)
  for (const seconds of [25, 50]) {
    Date.now = () => now() + seconds * 1000
    t.equal(member.registered(), undefined, `after ${seconds} s`)
    await polled()
  }
})

await t.test('a store may be opened by a link, which must not change', async (t) => {
  const file = newFile()
  const link = newFile()
  await (await openSqliteStore(file)).close()
  symlinkSync(file, link)
  const store = await openSqliteStore(link)
  const other = await openSqliteStore(file)
  await createPartners(store, 'acme')
  await createPartners(other, 'globex')
  await setTimeout(10)
  await store.revision()
  t.equal((await store.listPartners(undefined, 1000)).length, 2)
  unlinkSync(link)
  symlinkSync(newFile(), link)
  t.throws(() => store.apply([], '', stamp), { code: 'unreachable' })
  await other.close()
  await store.close()
})

await t.test('a truncated file is an error, and does not end the process', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  await publish(store, Array.from({ length: 200 }, (_, index) => profile(`p${index}`)))
  await store.close()
  const module = new URL('../../adapters/stores/sqlite/store.ts', import.meta.url).href
  // With something in the log, SQLite takes the size of the store from there.
  const program = `
    const { openSqliteStore } = await import(${JSON.stringify(module)})
    const store = await openSqliteStore(${JSON.stringify(file)})
    store.recordUsage([${JSON.stringify(usageCount())}], 'a')
    store.listPlans()
    process.getBuiltinModule('fs').truncateSync(${JSON.stringify(file)}, 8192)
    try { [...store.exportContent('profiles')] } catch ({ code }) { console.log(code) }
    process.exit(0)`
  const { stdout, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  })
  t.strictSame([signal, stdout], [null, 'unreachable\n'])
})

await t.test('a check reads the file, not what was read of it before', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  checkpoint(file)
  await store.check()
  overwrite(file, statSync(file).size, 0)
  t.throws(() => store.check(), { code: 'unreachable' })
  await store.close()
})

await t.test('errors of SQLite about a file say what could not be done with the store', (t) => {
  const file = newFile()
  const made = openDatabase(file, { create: true })
  made.exec('PRAGMA max_page_count = 4; CREATE TABLE heap (bytes)')
  const fill = made.statement('INSERT INTO heap VALUES (zeroblob(1000000))')
  t.throws(() => fill.run(), {
    code: 'unreachable',
    message: /cannot be changed: database or disk is full\.$/,
  })
  t.throws(() => made.transaction(() => fill.run()), { code: 'unreachable', message: /disk is full/ })
  made.close()
  const readOnly = openDatabase(file, { create: false, readOnly: true })
  const write = readOnly.statement('INSERT INTO heap VALUES (1)')
  t.throws(() => write.run(), {
    code: 'unreachable',
    message: /cannot be changed: attempt to write a readonly/,
  })
  t.throws(() => readOnly.exec('DELETE FROM nothing'), { code: 'ERR_SQLITE_ERROR' }, 'other errors stay')
  readOnly.close()
  t.end()
})

await t.test('a store without its settings or its schema version says so', async (t) => {
  for (const table of ['store', 'migration']) {
    const file = newFile()
    await (await openSqliteStore(file)).close()
    const database = new DatabaseSync(file)
    database.exec(`DELETE FROM ${table}`)
    database.close()
    const ended = await runProgram(['--json', '--store', `sqlite:${file}`, 'partners', 'list'])
    t.match(
      documentOf(ended).error,
      { code: 'store_unavailable', detail: /its settings are missing\.$/ },
      table,
    )
  }
})

await t.test('a damaged search index is reported with the command that builds it again', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  await publish(store, [profile('a'), profile('b')])
  const database = new DatabaseSync(file, { defensive: false } as object)
  database.exec('UPDATE search_name_data SET block = zeroblob(20) WHERE id > 10')
  database.close()
  const from = `sqlite:${file}`
  const to = `sqlite:${file}.mended`
  const remedy = { command: 'store copy', args: ['--from', from, '--to', to] }
  const search = (store: Store) => store.listProfiles('acme', query({ words: ['profile'] }), T0)
  await t.rejects(async () => await search(store), { code: 'unreachable', remedy })
  await store.close()
  const backup = await runProgram(['--store', from, 'store', 'backup', `${file}.backup`, '--json'])
  t.match(documentOf(backup).error, { code: 'refused', remedy })
  t.equal((await runProgram(['store', 'copy', '--from', from, '--to', to])).code, 0)
  const mended = await openSqliteStore(`${file}.mended`)
  t.equal((await search(mended)).length, 2)
  await mended.close()
})

await t.test('commands exit 3 for a damaged store', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  await createKeys(store, 'acme')
  await store.close()
  const database = new DatabaseSync(file)
  const page = database.prepare(`SELECT rootpage FROM sqlite_schema WHERE name = 'partner'`).get()?.rootpage
  database.close()
  overwrite(file, 4096, (Number(page) - 1) * 4096)
  for (const args of [['partners', 'list'], ['partners', 'create', 'globex', '--name', 'Globex']]) {
    const ended = await runProgram(['--json', '--store', `sqlite:${file}`, ...args])
    t.equal(ended.code, 3)
    t.match(documentOf(ended).error, {
      code: 'store_unavailable',
      detail: /cannot be (read|changed): database disk image is malformed\.$/,
    })
  }
})
