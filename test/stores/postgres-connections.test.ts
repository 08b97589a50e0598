/** Statements, and failures of connections, servers and runtimes. */
import process from 'node:process'
import { inspect } from 'node:util'
import t from 'tap'
import { connect } from '../../adapters/stores/postgres/database.ts'
import { createConnection } from '../../adapters/stores/postgres/connection.ts'
import { parseUrl } from '../../adapters/stores/postgres/url.ts'
import type { PostgresDatabase } from '../../adapters/stores/postgres/database.ts'
import { listText } from '../../adapters/stores/postgres/sql.ts'
import { CommitUnknownError, SqlError } from '../../adapters/stores/postgres/errors.ts'
import { StoreError } from '../../core/ports/store-error.ts'
import { queryContinuously } from '../postgres/continuous-queries.ts'
import { openDatabase as open, outcomeOf, serverFor } from '../postgres/fixtures.ts'
import { startGate } from '../postgres/network.ts'
import { until } from '../postgres/until.ts'

const server = await serverFor(t)
const url = await server.createDatabase()
const gate = await startGate(server.port)
t.teardown(() => gate.close())
const setup = connect(url)
t.teardown(() => setup.close())
await setup.transaction(async (query) => {
  await query('CREATE TABLE seen (id text PRIMARY KEY, times bigint NOT NULL CHECK (times < 9))')
  await query(`INSERT INTO seen VALUES ('a', 1)`)
})

const pidOf = async (query: PostgresDatabase['lookUp']) =>
  Number((await query('SELECT pg_backend_pid()'))[0]![0])
const isUnreachable = (error: unknown) => error instanceof StoreError && error.code === 'unreachable'

await t.test('values keep their types', async (t) => {
  const { lookUp, read, asyncCommit: note, location } = open(t, url)
  t.equal(location, `127.0.0.1:${server.port}/${new URL(url).pathname.slice(1)}`)
  const sql = `SELECT $1::text, $2::bigint, $3::integer, $4::boolean, $5::text, $6::float8, $7::text[]`
  const list = listText(['a"b', 'c\\d', 'NULL', 'e,f'])
  const row = ['€ \' "', 2 ** 53 - 1, -7, true, null, 0.5, list]
  for (const query of [lookUp, note, read]) {
    // The first is prepared and the second reuses it; the others are sent during the preparation.
    const rows = await Promise.all(Array.from({ length: 5 }, () => query(sql, row)))
    rows.push(await query(sql, row))
    for (const found of rows) {
      t.strictSame([...found], [[...row.slice(0, 6), '{"a\\"b","c\\\\d","NULL","e,f"}']])
    }
  }
  const [texts] = await read(
    `SELECT '2026-01-02'::date, now()::timestamptz, '{"a":1}'::jsonb, 1.50, '\\x00'::bytea`,
  )
  t.ok(texts!.every((value) => typeof value === 'string'), 'other types are text')
  t.strictSame([...await lookUp('SELECT false WHERE $1::boolean', [false])], [])
  t.equal(String(await lookUp('SELECT count(*) FROM seen')), '1')
})

await t.test('an integer beyond 2^53 fails only its statement', async (t) => {
  const { lookUp } = open(t, url)
  const [before, wrong, after] = await Promise.allSettled([
    lookUp('SELECT 1'),
    lookUp('SELECT $1::bigint', ['9007199254740992']),
    lookUp('SELECT 2'),
  ])
  t.match([before, after], [{ value: [[1]] }, { value: [[2]] }])
  t.match(wrong, { reason: { name: 'StoreError', message: /cannot be read: an integer is beyond/ } })
})

await t.test('a prepared statement survives a change of its tables', async (t) => {
  const { lookUp, write } = open(t, url)
  await write('CREATE TABLE changing (id integer)')
  await write('INSERT INTO changing VALUES ($1)', [1])
  const look = () => lookUp('SELECT * FROM changing WHERE id = $1', [1])
  t.strictSame([...await look()], [[1]])
  t.strictSame([...await look()], [[1]])
  await write(`ALTER TABLE changing ADD COLUMN more text DEFAULT 'x'`)
  const found = await Promise.all([look(), lookUp('SELECT 2'), look()])
  t.strictSame(found.map((rows) => [...rows]), [[[1, 'x']], [[2]], [[1, 'x']]])
})

await t.test('errors quote no values', async (t) => {
  const { read, write, lookUp } = open(t, url)
  const secret = 'hunter2'
  const cases: readonly (readonly [() => Promise<unknown>, object])[] = [
    [() => write('INSERT INTO seen VALUES ($1, 1), ($1, 2)', [secret]), {
      code: '23505',
      message: /constraint seen_pkey/,
    }],
    [() => write('INSERT INTO seen VALUES ($1, 9)', [secret]), {
      code: '23514',
      message: /constraint seen_times_check/,
    }],
    [() => read('SELECT $1::text::bigint', [secret]), { code: '22P02' }],
    [() => lookUp('SELECT $1::text::date', [secret]), { code: '22007' }],
    [() => read('SELECT * FROM nothing WHERE id = $1', [secret]), {
      code: '42P01',
      message: /relation "nothing"/,
    }],
    [() => read('SELECT $1::bigint', ['9007199254740993hunter2']), { code: '22P02' }],
  ]
  for (const [ask, expected] of cases) {
    const error = await outcomeOf(ask())
    t.type(error, SqlError)
    t.match(error, expected)
    t.notOk(inspect(error, { showHidden: true, depth: null }).includes(secret))
  }
  await t.rejects(read('SELECT $1::text', [undefined as never]), TypeError)
  t.strictSame([...await read('SELECT 1')], [[1]])
})

await t.test('a rejected login fails at once, without the password', async (t) => {
  const wrong = new URL(url)
  wrong.password = 'hunter2'
  const missing = new URL(url)
  missing.pathname = '/elsewhere'
  for (
    const [address, says] of [[wrong, /28P01: password/], [missing, /3D000: database "elsewhere"/]] as const
  ) {
    const database = open(t, address.href, { lookUpTimeoutMs: 60_000, timeoutMs: 60_000 })
    const start = performance.now()
    const results = [database.lookUp, database.asyncCommit, database.read].map((query) =>
      outcomeOf(query('SELECT 1'))
    )
    for (
      const error of [...await Promise.all(results), await outcomeOf(database.transaction(async () => {}))]
    ) {
      t.ok(isUnreachable(error))
      t.match(error, { message: says })
      t.notOk(inspect(error, { showHidden: true, depth: null }).includes('hunter2'))
    }
    t.ok(performance.now() - start < 30_000, 'a rejected login is not retried')
  }
})

for (
  const [calamity, strike, mend] of [
    ['the server is killed', () => server.kill(), () => server.restart()],
    ['the server hangs', () => server.pause(), () => server.resume()],
    ['packets are dropped', () => Promise.resolve(gate.cut()), () => gate.restore()],
    ['connections are reset', () => gate.reset(), () => gate.restore()],
  ] as const
) {
  await t.test(`while ${calamity}, every look-up settles within its timeout, and later ones succeed`, async (t) => {
    const database = open(t, gate.url(url))
    const queries = queryContinuously(() => database.lookUp('SELECT times FROM seen WHERE id = $1', ['a']))
    await until(() => queries.answered() > 20, 'look-ups to succeed')
    await strike()
    await until(() => queries.failed() > 0, 'a look-up to fail')
    await mend()
    await until(() => queries.answeredInARow() >= 30, 'look-ups to succeed again')
    const all = await queries.stop()
    // The timeout of a second, and much less than other statements wait.
    t.same(all.filter(({ tookMs }) => tookMs > 8_000), [])
    t.same(all.filter(({ error }) => error !== undefined && !isUnreachable(error)), [])
    t.equal(String(await database.read('SELECT 1')), '1')
    t.equal(await database.transaction(async (query) => String(await query('SELECT 2'))), '2')
  })
}

await t.test('a look-up on a dead connection is retried on another', async (t) => {
  const { lookUp } = open(t, url)
  const pid = await pidOf(lookUp)
  process.kill(pid, 'SIGSTOP')
  t.teardown(() => process.kill(pid, 'SIGCONT'))
  const pids = await Promise.all([pidOf(lookUp), pidOf(lookUp)])
  t.equal(pids[0], pids[1])
  t.not(pids[0], pid)
})

await t.test('a look-up that waits for a lock is cancelled by the server', async (t) => {
  const { lookUp } = open(t, url)
  await setup.transaction(async (query) => {
    await query('LOCK TABLE seen')
    t.ok(isUnreachable(await outcomeOf(lookUp('SELECT times FROM seen'))))
    const waiting =
      `SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT times FROM seen' AND state = 'active'`
    await until(async () => String(await setup.read(waiting)) === '0', 'the server to cancel the statement')
  })
})

await t.test('a slow look-up after a fast one sets no timer to the past', async (t) => {
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => void warnings.push(name)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const parsed = parseUrl(url, { environment: {} })
  const connection = createConnection(parsed.hosts[0]!, parsed, { connectTimeoutMs: 300, silenceMs: 100 })
  // The first makes it ready: the time of connecting, at the end of which it is checked, is longer than that of silence.
  await Promise.allSettled([connection.query('SELECT 1'), connection.query('SELECT pg_sleep(1)')])
  await connection.end(0)
  t.strictSame(warnings, [])
})

await t.test('an asynchronous commit is not repeated', async (t) => {
  const { asyncCommit: note, lookUp } = open(t, gate.url(url))
  t.equal(String(await note('SHOW synchronous_commit')), 'off')
  t.equal(String(await lookUp('SHOW synchronous_commit')), 'on')
  const pid = await pidOf(note)
  process.kill(pid, 'SIGSTOP')
  const lost = outcomeOf(note(`UPDATE seen SET times = times + 1 WHERE id = 'a'`))
  t.ok(isUnreachable(await lost))
  process.kill(pid, 'SIGCONT')
  await until(
    async () => String(await setup.read('SELECT times FROM seen')) === '2',
    'the sent commit to be applied',
  )
  // On the same connection if the server responded before the timeout.
  t.ok(await pidOf(note))
  t.equal(String(await setup.read('SELECT times FROM seen')), '2')
})

await t.test('a write whose commit is unknown is reported as such', async (t) => {
  const { write } = open(t, url, { timeoutMs: 500 })
  await setup.transaction(async (query) => {
    await query(`SELECT 1 FROM seen WHERE id = 'a' FOR UPDATE`)
    const error = await outcomeOf(write(`UPDATE seen SET times = 3 WHERE id = 'a'`))
    t.ok(isUnreachable(error))
    t.type((error as StoreError).cause, CommitUnknownError)
  })
  await until(async () => String(await setup.read('SELECT times FROM seen')) === '3', 'it to be done')
})

await t.test('a long transaction may continue while the server responds, a read only until its timeout', async (t) => {
  const { read, transaction } = open(t, url, { timeoutMs: 2_500 })
  const start = performance.now()
  const [rows, error] = await Promise.all([
    transaction((query) => query('SELECT 1 FROM pg_sleep(3)')),
    outcomeOf(read('SELECT 1 FROM pg_sleep(600)')),
  ])
  t.equal(String(rows), '1')
  t.match(error, { code: 'unreachable', message: /within 2500 ms/ })
  t.ok(performance.now() - start < 60_000)
})

await t.test('the URL limits the number of connections', async (t) => {
  const { read, transaction } = open(t, `${url}?connections=2&application_name=few`)
  const few = `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'few'`
  const results = Array.from(
    { length: 20 },
    (_, index) =>
      index % 2 ? read('SELECT pg_sleep(0.01)') : transaction((query) => query('SELECT pg_sleep(0.01)')),
  )
  await Promise.all(results)
  t.equal(String(await read(few)), '2')
})

await t.test('writes that wait leave a connection to reads', async (t) => {
  const { read, write, transaction } = open(t, url)
  const update = `UPDATE seen SET times = 4 WHERE id = 'a'`
  const writes: Promise<unknown>[] = []
  await setup.transaction(async (query) => {
    await query(`SELECT 1 FROM seen WHERE id = 'a' FOR UPDATE`)
    for (let count = 0; count < 4; count++) {
      writes.push(write(update), transaction((query) => query(update)))
    }
    const waiting = `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`
    await until(async () => Number(await setup.read(waiting)) >= 3, 'writes to wait')
    t.equal(String(await read('SELECT 1')), '1')
    t.equal(await transaction(async (query) => String(await query('SELECT 2')), { readOnly: true }), '2')
  })
  await Promise.all(writes)
  t.equal(String(await read('SELECT times FROM seen')), '4')
})
