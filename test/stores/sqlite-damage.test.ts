/** What becomes of a store whose file is deleted, replaced, cut off, overwritten or full while it is open. */
import { spawnSync } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openDatabase } from '../../adapters/stores/sqlite/database.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createKeys, createPartners, industry, stamp, T0 } from '../contract/store/samples.ts'
import { serveStore } from '../support/partner-service.ts'
import { fillWorld } from '../support/world.ts'

const folder = mkdtempSync(join(tmpdir(), 'partner-api-damage-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
const newFile = () => join(folder, `${++files}.db`)
const cli = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))

/** All of the store in its file, nothing in the log beside it. */
function checkpoint(file: string): void {
  const database = new DatabaseSync(file)
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
}

const losses: readonly [what: string, lose: (file: string) => void][] = [
  ['deleted', (file) => unlinkSync(file)],
  ['moved away', (file) => renameSync(file, `${file}.old`)],
  ['replaced by another', (file) => {
    copyFileSync(file, `${file}.new`)
    renameSync(`${file}.new`, file)
  }],
  ['left without its log', (file) => unlinkSync(`${file}-wal`)],
  ['left without the index of its log', (file) => unlinkSync(`${file}-shm`)],
]

for (const [what, lose] of losses) {
  await t.test(`a service whose file was ${what} says so until it starts again`, async (t) => {
    const file = newFile()
    const { api, ask, post, store } = await serveStore(await openSqliteStore(file))
    const signup = { partner: 'demo', email: 'a@example.com', name: 'A' }
    t.equal((await post('/partner/signups', signup)).status, 201)
    t.equal((await ask('/health')).status, 200)
    lose(file)
    t.equal((await post('/partner/signups', signup)).status, 503, 'nothing is acknowledged')
    t.equal((await ask('/public/profiles?partner=demo')).status, 503)
    t.equal((await ask('/health')).status, 503)
    t.throws(() => store.apply([], '', stamp), {
      code: 'unreachable',
      message: /is not the file that was opened/,
    })
    await openSqliteStore(file).then((other) => other.close(), () => 'what is left may be no store')
    await setTimeout(10)
    t.throws(() => store.revision(), { code: 'unreachable' }, 'another store in its place is another store')
    await api.close()
    await store.close()
  })
}

await t.test('a write whose file goes while it is done is not acknowledged', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  const progress = () => rmSync(file, { force: true })
  const records = Array.from({ length: 500 }, (_, number) => industry(`i${number}`))
  t.throws(() => store.importContent('industries', records, { ...stamp, now: T0, progress }), {
    code: 'unreachable',
  })
  await store.close()
})

await t.test('reads notice within some milliseconds', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  await store.revision()
  unlinkSync(file)
  await setTimeout(10)
  t.throws(() => store.revision(), { code: 'unreachable' })
  await store.close()
})

await t.test('a path that leads elsewhere by now is another file; a store may stand behind a link', async (t) => {
  const [file, link] = [newFile(), newFile()]
  await (await openSqliteStore(file)).close()
  symlinkSync(file, link)
  const [store, other] = [await openSqliteStore(link), await openSqliteStore(file)]
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

/** What a process of its own says that opens a store, and what ended it. */
function run(file: string, script: string) {
  const module = new URL('../../adapters/stores/sqlite/store.ts', import.meta.url).href
  const program = `
    import { openSqliteStore } from ${JSON.stringify(module)}
    const store = await openSqliteStore(${JSON.stringify(file)})
    const tell = (ask) => { try { ask(); console.log('ok') } catch ({ code }) { console.log(code) } }
    ${script}
    process.exit(0)`
  const { stdout, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  })
  return { said: stdout.trim().split('\n'), signal }
}

await t.test('a file that is cut off is an error, and not the end of the process', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  await fillWorld(store)
  await store.close()
  const { said, signal } = run(
    file,
    // With something in the log, SQLite asks that for the size of the store.
    `store.recordUsage([{ partner: 'demo', day: '2026-01-01', endpoint: 'a', requests: 1, errors: 0 }], 'a')
    store.listPlans()
    process.getBuiltinModule('fs').truncateSync(${JSON.stringify(file)}, 8192)
    tell(() => [...store.exportContent('profiles')])`,
  )
  t.equal(signal, null)
  t.same(said, ['unreachable'])
})

await t.test('health looks at the file, and not at what was read of it before', async (t) => {
  const file = newFile()
  const { ask, store } = await serveStore(await openSqliteStore(file))
  checkpoint(file)
  t.equal((await ask('/health')).status, 200)
  const open = openSync(file, 'r+')
  writeSync(open, new Uint8Array(statSync(file).size).fill(7))
  closeSync(open)
  t.equal((await ask('/health')).status, 503)
  await store.close()
})

await t.test('what SQLite cannot do with a file is a sentence about the store', (t) => {
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
  t.throws(() => readOnly.exec('DELETE FROM nothing'), { code: 'ERR_SQLITE_ERROR' }, 'a mistake stays one')
  readOnly.close()
  t.end()
})

await t.test('commands exit 3 for a store that is damaged', async (t) => {
  const file = newFile()
  const store = await openSqliteStore(file)
  await createKeys(store, 'acme')
  await store.close()
  const database = new DatabaseSync(file)
  const [{ rootpage }] = database.prepare(`SELECT rootpage FROM sqlite_schema WHERE name = 'partner'`)
    .all() as [
      { rootpage: number },
    ]
  database.close()
  const open = openSync(file, 'r+')
  writeSync(open, new Uint8Array(4096).fill(7), 0, 4096, (rootpage - 1) * 4096)
  closeSync(open)
  for (const args of [['partners', 'list'], ['partners', 'create', 'globex', '--name', 'Globex']]) {
    const { status, stdout } = spawnSync(process.execPath, [
      cli,
      '--json',
      '--store',
      `sqlite:${file}`,
      ...args,
    ], {
      encoding: 'utf8',
    })
    t.equal(status, 3)
    t.match(JSON.parse(stdout), {
      error: {
        code: 'store_unavailable',
        detail: /cannot be (read|changed): database disk image is malformed\.$/,
      },
    })
  }
})
