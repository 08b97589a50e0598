/** Several processes on one file: they start at once, are killed, and wait for each other. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { backup, DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { MIGRATIONS } from '../../adapters/stores/sqlite/migrate.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { NO_PARTNER_DETAILS } from '../../core/model.ts'
import type { SignupOutcome } from '../../core/ports/signups.ts'
import type { Store } from '../../core/ports/store.ts'
import {
  actor,
  apply,
  createPartners,
  DAY,
  exported,
  key,
  profile,
  publish,
  query,
  reservation,
  signup,
  T0,
  usageCount,
} from '../contract/store/samples.ts'
import { newFile } from '../support/cli-program.ts'

/** A store with a key, and its file. */
async function openWithKey(): Promise<{ store: Store; file: string }> {
  const file = newFile()
  const store = await openSqliteStore(file)
  await createPartners(store, 'acme')
  await apply(store, { type: 'key.issued', key: key() })
  return { store, file }
}

/** Reads the file past the store. */
function read(file: string, sql: string): unknown[][] {
  const database = new DatabaseSync(file, { readOnly: true })
  const statement = database.prepare(sql)
  statement.setReturnArrays(true)
  const rows = statement.all() as unknown as unknown[][]
  database.close()
  return rows
}

const child = fileURLToPath(new URL('sqlite-child.ts', import.meta.url))

/** Starts a process on a file and waits until it is ready. */
async function start(...parameters: string[]) {
  const started = spawn(process.execPath, [child, ...parameters], { stdio: ['pipe', 'pipe', 'inherit'] })
  const closed = once(started, 'close')
  const lines = createInterface(started.stdout)[Symbol.asyncIterator]()
  /** The next line that it prints; undefined at its end. */
  const line = async (): Promise<string | undefined> => (await lines.next()).value
  t.equal(await line(), 'ready')
  return { line, go: () => started.stdin.end('\n'), kill: () => started.kill('SIGKILL'), closed }
}

await t.test('processes that start at once on a missing file create one store', async (t) => {
  const file = newFile()
  const children = await Promise.all(Array.from({ length: 4 }, () => start('open', file)))
  for (const { go } of children) go()
  const secrets = await Promise.all(children.map(({ line }) => line()))
  await Promise.all(children.map(({ closed }) => closed))
  t.match(secrets[0], /^[0-9a-f]{64}$/)
  t.equal(new Set(secrets).size, 1)
  t.strictSame(read(file, 'SELECT count(*) FROM migration'), [[MIGRATIONS.length]])
})

await t.test('an import whose process is killed leaves nothing', async (t) => {
  for (const steps of ['1', '4', '8']) {
    const file = newFile()
    const store = await openSqliteStore(file)
    await publish(store, [profile('before')])
    const before = await store.revision()
    const importing = await start('import', file, steps)
    importing.go()
    t.equal(await importing.line(), undefined)
    await importing.closed
    t.strictSame(await store.revision(), before)
    t.strictSame(await exported(store, 'profiles'), [profile('before')])
    const importAfter = () => store.importContent('profiles', [profile('after')], { now: T0, actor })
    t.throws(importAfter, { code: 'refused' }, 'it may still be running')
    const database = new DatabaseSync(file)
    database.exec('UPDATE store SET import_at = import_at - 60000')
    database.close()
    await (await openSqliteStore(file)).close()
    t.strictSame(read(file, "SELECT name FROM sqlite_schema WHERE name LIKE 'next%'"), [])
    await importAfter()
    t.equal((await store.listProfiles('acme', query(), T0)).length, 2)
    await store.close()
  }
})

await t.test('200 attempts of four processes with one idempotency key create one signup', async (t) => {
  const { store, file } = await openWithKey()
  const children = await Promise.all(
    Array.from({ length: 4 }, (_, index) => start('same-key', file, `p${index}`, '50')),
  )
  for (const { go } of children) go()
  const outcomes = (await Promise.all(children.map(({ line }) => line())))
    .flatMap((printed): SignupOutcome[] => JSON.parse(printed!))
  await Promise.all(children.map(({ closed }) => closed))
  const [stored, ...others] = await store.listSignups(undefined, undefined, 10)
  t.same(others, [])
  const repeated = outcomes.filter(({ outcome }) => outcome !== 'created')
  t.equal(outcomes.length, 200)
  t.strictSame(repeated, Array(199).fill({ outcome: 'replayed', id: stored?.id, createdAt: T0 }))
  t.strictSame(read(file, 'SELECT dimension, signups FROM signup_tally'), [['country', 1], ['plan', 1]])
  await store.close()
})

await t.test('acknowledged signups of killed processes are stored, each once', async (t) => {
  const { store, file } = await openWithKey()
  const rounds = 3
  let acknowledged = 0
  for (let round = 0; round < rounds; round++) {
    const working = await start('until-killed', file, `r${round}`)
    working.go()
    const wanted = 1 + Math.floor(Math.random() * 60)
    const printed: string[] = []
    for (let line = await working.line(); line !== undefined; line = await working.line()) {
      // Lines may arrive after the kill, too.
      if (printed.push(line) === wanted) working.kill()
    }
    await working.closed
    acknowledged += printed.length

    const stored = new Set(read(file, 'SELECT id FROM signup').map(([id]) => id))
    t.same(printed.filter((id) => !stored.has(id)), [], `${printed.length} acknowledged in round ${round}`)
    // All of them again, and the next one, which may have been stored without an acknowledgement.
    const replayed: string[] = []
    for (let attempt = 0; attempt <= printed.length; attempt++) {
      const again = signup(`again-${round}-${attempt}`, { plan: 'pro' })
      const outcome = await store.createSignup(again, reservation({ key: `r${round}-${attempt}` }))
      if (attempt < printed.length) {
        replayed.push(outcome.outcome === 'replayed' ? outcome.id : outcome.outcome)
      }
    }
    t.strictSame(replayed, printed)
  }
  const total = acknowledged + rounds
  t.same(read(file, 'SELECT count(*), count(DISTINCT id) FROM signup'), [[total, total]])
  t.same(read(file, `SELECT signups FROM signup_tally WHERE value = 'pro'`), [[total]])
  t.same(read(file, 'SELECT count(*) FROM idempotency'), [[total]])
  t.same(read(file, 'PRAGMA integrity_check'), [['ok']])
  await store.close()
})

await t.test('while another process writes, signups and counts wait, and reads are answered', async (t) => {
  const { store, file } = await openWithKey()
  await publish(store, [profile('a')])
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  const waiting = store.createSignup(signup('1'), reservation())
  const counting = store.recordUsage([usageCount({ day: '2026-01-01' })], 'a')
  t.ok(waiting instanceof Promise && counting instanceof Promise)
  t.equal((await store.findKey(key().id))?.key.id, key().id)
  t.equal((await store.listProfiles('acme', query(), T0)).length, 1)
  t.same(await store.listSignups(undefined, undefined, 10), [])
  const recording = store.recordKeyUses(new Map([[key().id, T0]]))
  other.exec('COMMIT')
  t.strictSame(await waiting, { outcome: 'created' })
  await counting
  t.equal((await store.listSignups(undefined, undefined, 10)).length, 1)
  t.equal((await store.summarise('acme', '2026-01-01', '2026-01-01')).requestsByDay[0]?.requests, 1)
  t.strictSame(await store.createSignup(signup('2'), undefined), { outcome: 'created' })
  await recording
  t.equal((await store.findKey(key().id))?.key.lastUsedAt, T0)

  other.exec('BEGIN IMMEDIATE')
  const { now } = Date
  t.teardown(() => void (Date.now = now))
  const hopeless = store.createSignup(signup('3'), reservation({ key: 'third' }))
  Date.now = () => now() + 60_000
  await t.rejects(Promise.resolve(hopeless), {
    code: 'unreachable',
    message: /another process is writing to it/,
  })
  Date.now = now
  other.exec('COMMIT')
  other.close()
  t.strictSame(await store.createSignup(signup('4'), reservation({ key: 'third' })), { outcome: 'created' })
  await store.close()
})

await t.test('a change after an older file was put back is a revision that no server knows', async (t) => {
  const { store, file } = await openWithKey()
  const older = newFile()
  const copy = async (from: string, to: string) => {
    const database = new DatabaseSync(from)
    await backup(database, to)
    database.close()
  }
  const change = (at: number) =>
    apply(store, { type: 'partner.updated', slug: 'acme', name: `A${at}`, limits: {}, ...NO_PARTNER_DETAILS })
  await copy(file, older)
  await change(1)
  const known = await store.revision()
  await copy(older, file)
  await change(2)
  t.not((await store.revision()).facts, known.facts)
  await store.close()
})

await t.test('a signup of several that cannot be stored fails alone', async (t) => {
  const { store } = await openWithKey()
  const wrong = 7
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, async (_, index) => {
    // The file takes no fraction of a millisecond.
    const createdAt = index === wrong ? T0 + 0.5 : T0
    return await store.createSignup(signup(`${index}`, { createdAt }), reservation({ key: `${index}` }))
  }))
  const failed = outcomes.flatMap(({ status }, index) => status === 'rejected' ? [index] : [])
  t.same(failed, [wrong])
  t.equal((await store.listSignups(undefined, undefined, 100)).length, 19)
  await store.close()
})

await t.test('a signup that comes while another waits for the lock does not fail that one', async (t) => {
  const { store, file } = await openWithKey()
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  const waiting = store.createSignup(signup('1'), undefined)
  // The first has been tried then.
  await new Promise(setImmediate)
  const wrong = store.createSignup(signup('2', { createdAt: T0 + 0.5 }), undefined)
  other.exec('COMMIT')
  other.close()
  const outcomes = await Promise.allSettled([waiting, wrong])
  t.strictSame(outcomes.map(({ status }) => status), ['fulfilled', 'rejected'])
  await store.close()
})

await t.test('a signup removes two expired reservations at most, so that they never accumulate', async (t) => {
  const { store, file } = await openWithKey()
  const reservations = () => read(file, 'SELECT count(*) FROM idempotency')[0]![0]
  for (let index = 0; index < 6; index++) {
    await store.createSignup(signup(`a${index}`), reservation({ key: `a${index}`, expiresAt: T0 + 10 }))
  }
  await store.createSignup(signup('early', { createdAt: T0 + 9 }), undefined)
  t.equal(reservations(), 6)
  const counts: unknown[] = []
  for (let index = 0; index < 4; index++) {
    const sent = signup(`b${index}`, { createdAt: T0 + 10 })
    await store.createSignup(sent, reservation({ key: `b${index}`, expiresAt: T0 + 1000 }))
    counts.push(reservations())
  }
  t.strictSame(counts, [5, 4, 3, 4])
  await store.close()
})

await t.test('batches of counts are remembered for a day, and each removes two older ones at most', async (t) => {
  const { store: first, file } = await openWithKey()
  await first.close()
  const batches = () => read(file, 'SELECT count(*) FROM usage_batch')[0]![0]
  const counts = [usageCount({ day: '2026-01-01' })]
  const { now } = Date
  t.teardown(() => void (Date.now = now))
  const startedAt = now()
  // Its own clock from the start: a store does not believe one that jumps, or that stands still while it waits.
  const openAt = (time: number) => {
    Date.now = () => now() - startedAt + time
    return openSqliteStore(file)
  }
  for (const time of [T0, T0 + DAY / 2]) {
    const store = await openAt(time)
    for (let index = 0; index < 6; index++) await store.recordUsage(counts, `a${index}`)
    await store.close()
  }
  t.equal(batches(), 6)
  const store = await openAt(T0 + DAY + DAY / 4)
  const remaining: unknown[] = []
  for (let index = 0; index < 4; index++) {
    await store.recordUsage(counts, `b${index}`)
    remaining.push(batches())
  }
  t.strictSame(remaining, [5, 4, 3, 4])
  t.equal((await store.summarise('acme', '2026-01-01', '2026-01-01')).requestsByDay[0]?.requests, 10)
  await store.close()
})
