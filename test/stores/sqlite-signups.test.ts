/** Signups in one file that several processes write to, are killed over, or keep from each other. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import type { SignupOutcome } from '../../core/ports/signups.ts'
import type { Store } from '../../core/ports/store.ts'
import { apply, claim, createPartners, DAY, key, signup, T0 } from '../contract/store/samples.ts'

const folder = mkdtempSync(join(tmpdir(), 'partner-api-signups-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
async function open(): Promise<{ store: Store; file: string }> {
  const file = join(folder, `${++files}.db`)
  const store = await openSqliteStore(file)
  await createPartners(store, 'acme')
  await apply(store, { type: 'key.issued', key: key() })
  return { store, file }
}

/** Asks the file itself, past the store. */
function ask(file: string, sql: string): unknown[][] {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const statement = database.prepare(sql)
    statement.setReturnArrays(true)
    return statement.all() as unknown as unknown[][]
  } finally {
    database.close()
  }
}

const child = fileURLToPath(new URL('sqlite-signups-child.ts', import.meta.url))

/** Starts a process on a file. `said` resolves with each line that it prints, in turn, and with '' at the end. */
function start(...parameters: string[]) {
  const started = spawn(process.execPath, [child, ...parameters], { stdio: ['pipe', 'pipe', 'inherit'] })
  started.stdout.setEncoding('utf8')
  const closed = once(started, 'close')
  async function* linesOf() {
    let rest = ''
    for await (const text of started.stdout) {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      yield* lines
    }
  }
  const lines = linesOf()
  return {
    said: async (): Promise<string> => String((await lines.next()).value ?? ''),
    go: () => started.stdin.end('\n'),
    kill: () => started.kill('SIGKILL'),
    closed,
  }
}

await t.test('200 attempts of eight processes with one key make one signup', async (t) => {
  const { store, file } = await open()
  const children = Array.from({ length: 8 }, (_, index) => start('same-key', file, `p${index}`, '25'))
  for (const { said } of children) t.equal(await said(), 'ready')
  for (const { go } of children) go()
  const answers = await Promise.all(children.map(({ said }) => said()))
  await Promise.all(children.map(({ closed }) => closed))
  const outcomes = answers.flatMap((answer): SignupOutcome[] => JSON.parse(answer))
  const [kept, ...others] = await store.listSignups(undefined, undefined, 10)
  t.same(others, [])
  t.equal(outcomes.length, 200)
  t.equal(outcomes.filter(({ outcome }) => outcome === 'created').length, 1)
  const replay = { outcome: 'replayed', id: kept?.id, createdAt: T0 }
  t.strictSame(outcomes.filter(({ outcome }) => outcome !== 'created'), Array(199).fill(replay))
  t.strictSame(ask(file, 'SELECT dimension, signups FROM signup_tally'), [['country', 1], ['plan', 1]])
  await store.close()
})

await t.test('whenever a process is killed, what it acknowledged is kept, once', async (t) => {
  const { store, file } = await open()
  let acknowledged = 0
  for (let round = 0; round < 10; round++) {
    const name = `r${round}`
    const working = start('until-killed', file, name, '')
    t.equal(await working.said(), 'ready')
    working.go()
    const acknowledgements = 1 + Math.floor(Math.random() * 60)
    const heard: string[] = []
    while (heard.length < acknowledgements) heard.push(await working.said())
    working.kill()
    // What it said between the decision and its end counts, too.
    for (let line = await working.said(); line !== ''; line = await working.said()) heard.push(line)
    await working.closed
    acknowledged += heard.length

    const kept = new Set(ask(file, 'SELECT id FROM signup').map(([id]) => id))
    t.same(
      heard.filter((id) => !kept.has(id)),
      [],
      `${heard.length} acknowledged in round ${round} are there`,
    )
    // Repeats all of it and one more, under the same keys: what was cut off included.
    for (let attempt = 0; attempt <= heard.length; attempt++) {
      const again = signup(`again-${name}-${attempt}`, { plan: 'pro' })
      const outcome = await store.createSignup(again, claim({ key: `${name}-${attempt}` }))
      const id = heard[attempt]
      if (id !== undefined && !(outcome.outcome === 'replayed' && outcome.id === id)) {
        t.fail(
          `attempt ${attempt} of round ${round} was acknowledged as ${id}, and now is ${outcome.outcome}`,
        )
      }
    }
  }
  const rounds = 10
  t.same(
    ask(file, 'SELECT count(*), count(DISTINCT id) FROM signup'),
    [[acknowledged + rounds, acknowledged + rounds]],
    'each of them once, and once what was cut off',
  )
  t.same(ask(file, `SELECT signups FROM signup_tally WHERE value = 'pro'`), [[acknowledged + rounds]])
  t.same(ask(file, 'SELECT count(*) FROM idempotency'), [[acknowledged + rounds]])
  t.same(ask(file, 'PRAGMA integrity_check'), [['ok']])
  await store.close()
})

await t.test('while another process writes, a signup waits aside and everything else is answered', async (t) => {
  const { store, file } = await open()
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  const waiting = store.createSignup(signup('1'), claim())
  const counting = store.recordUsage([
    { partner: 'acme', day: '2026-01-01', endpoint: 'plans', requests: 1, errors: 0 },
  ], 'a')
  t.ok(waiting instanceof Promise && counting instanceof Promise)
  t.equal((await store.findKey(key().id))?.key.id, key().id)
  t.same(await store.listSignups(undefined, undefined, 10), [])
  other.exec('COMMIT')
  t.strictSame(await waiting, { outcome: 'created' })
  await counting
  t.equal((await store.listSignups(undefined, undefined, 10)).length, 1)
  t.equal((await store.summarise('acme', '2026-01-01', '2026-01-01')).requestsByDay[0]?.requests, 1)
  t.strictSame(
    store.createSignup(signup('2'), undefined),
    { outcome: 'created' },
    'at once when nobody writes',
  )

  other.exec('BEGIN IMMEDIATE')
  const { now } = Date
  t.teardown(() => void (Date.now = now))
  const hopeless = store.createSignup(signup('3'), claim({ key: 'third' }))
  Date.now = () => now() + 60_000
  await t.rejects(Promise.resolve(hopeless), {
    code: 'unreachable',
    message: /another process is writing to it/,
  })
  Date.now = now
  other.exec('COMMIT')
  other.close()
  t.strictSame(await store.createSignup(signup('4'), claim({ key: 'third' })), { outcome: 'created' })
  await store.close()
})

await t.test('a signup clears away two expired claims at most, so that they never pile up', async (t) => {
  const { store, file } = await open()
  const claims = () => ask(file, 'SELECT count(*) FROM idempotency')[0]![0]
  for (let index = 0; index < 20; index++) {
    await store.createSignup(signup(`a${index}`), claim({ key: `a${index}`, expiresAt: T0 + 10 }))
  }
  await store.createSignup(signup('early', { createdAt: T0 + 9 }), undefined)
  t.equal(claims(), 20)
  for (let index = 0; index < 10; index++) {
    const sent = signup(`b${index}`, { createdAt: T0 + 10 })
    await store.createSignup(sent, claim({ key: `b${index}`, expiresAt: T0 + 1000 }))
    t.equal(claims(), 20 - (index + 1))
  }
  await store.createSignup(signup('late', { createdAt: T0 + 10 }), undefined)
  t.equal(claims(), 10)
  await store.close()
})

await t.test('batches of counts are remembered for a day, and clear away two older ones at most', async (t) => {
  const { store, file } = await open()
  const batches = () => ask(file, 'SELECT count(*) FROM usage_batch')[0]![0]
  const counts = [{ partner: 'acme', day: '2026-01-01', endpoint: 'plans', requests: 1, errors: 0 }]
  const { now } = Date
  t.teardown(() => void (Date.now = now))
  Date.now = () => T0
  for (let index = 0; index < 6; index++) await store.recordUsage(counts, `a${index}`)
  Date.now = () => T0 + DAY - 1
  for (let index = 0; index < 6; index++) await store.recordUsage(counts, `a${index}`)
  t.equal(batches(), 6)
  Date.now = () => T0 + DAY
  for (const [index, left] of [5, 4, 3, 4].entries()) {
    await store.recordUsage(counts, `b${index}`)
    t.equal(batches(), left)
  }
  t.equal((await store.summarise('acme', '2026-01-01', '2026-01-01')).requestsByDay[0]?.requests, 10)
  await store.close()
})
