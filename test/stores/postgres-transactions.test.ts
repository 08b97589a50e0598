/** Transactions that are run again, given up, or of which nobody knows what became of them. */
import process from 'node:process'
import t from 'tap'
import type { Test } from 'tap'
import { connect } from '../../adapters/stores/postgres/database.ts'
import type { Query } from '../../adapters/stores/postgres/connection.ts'
import type { Database } from '../../adapters/stores/postgres/database.ts'
import { CommitUnknownError, SqlError } from '../../adapters/stores/postgres/errors.ts'
import { StoreError } from '../../adapters/stores/store-error.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startGate } from '../postgres/network.ts'
import { startServer } from '../postgres/server.ts'

const reason = hasServer()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

const server = await startServer({ settings: { deadlock_timeout: '50ms' } })
t.teardown(() => server.close())
const url = await server.createDatabase()
const gate = await startGate(server.port)
t.teardown(() => gate.close())
const setup = connect(url)
t.teardown(() => setup.close())
await setup.read(
  'CREATE TABLE kept (id text PRIMARY KEY DEFERRABLE INITIALLY IMMEDIATE, times integer NOT NULL)',
)

/** Connects for as long as the test runs. */
function open(t: Test, address = url): Database {
  const database = connect(address)
  t.teardown(() => database.close())
  return database
}

const outcomeOf = (promise: Promise<unknown>) => promise.then(() => undefined, (error: unknown) => error)
const keep = (query: Query, id: string) => query('INSERT INTO kept VALUES ($1, 1)', [id])
const kept = async (id: string) => (await setup.read('SELECT times FROM kept WHERE id = $1', [id]))[0]?.[0]

/** @returns What every one of so many waits for: that all have come this far. */
function barrier(many: number): () => Promise<void> {
  const all = Promise.withResolvers<void>()
  return () => {
    if (--many === 0) all.resolve()
    return all.promise
  }
}

await t.test('all is kept, or nothing', async (t) => {
  const { transaction } = open(t)
  t.equal(await transaction((query) => keep(query, 'a').then(() => 'done')), 'done')
  t.equal(await kept('a'), 1)

  const undone = transaction(async (query, rollback) => {
    await keep(query, 'b')
    rollback()
    return 'undone'
  })
  t.equal(await undone, 'undone')
  t.equal(await kept('b'), undefined)

  const thrown = new TypeError('of its own')
  const failed = transaction(async (query) => {
    await keep(query, 'c')
    throw thrown
  })
  t.equal(await outcomeOf(failed), thrown)
  t.equal(await kept('c'), undefined)
})

await t.test('nothing is kept of one in which a statement failed, whoever caught that', async (t) => {
  const { transaction } = open(t)
  const twice = async (query: Query) => {
    await keep(query, 'd')
    return await outcomeOf(keep(query, 'd'))
  }
  t.match(await outcomeOf(transaction(twice)), {
    name: 'SqlError',
    code: '23505',
    message: /constraint kept_pkey/,
  })
  t.equal(await kept('d'), undefined)
  const seen = transaction(async (query, rollback) => {
    rollback()
    return await twice(query)
  })
  t.type(await seen, SqlError, 'who rolls back may go on')
  const late = transaction(async (query) => {
    await query('SET CONSTRAINTS kept_pkey DEFERRED')
    await keep(query, 'd')
    await keep(query, 'd')
  })
  t.match(await outcomeOf(late), { name: 'SqlError', code: '23505' }, 'at its end')
  t.equal(await kept('d'), undefined)
})

await t.test('statements that are asked at once are done in this order', async (t) => {
  const { transaction } = open(t)
  const asked = (query: Query) =>
    Promise.all([
      keep(query, 'e'),
      query(`UPDATE kept SET times = 2 WHERE id = 'e'`),
      query(`SELECT times FROM kept WHERE id = $1`, ['e']),
    ])
  t.equal(String((await transaction(asked))[2]), '2')
})

await t.test('when it is over, it is over', async (t) => {
  const { transaction } = open(t, `${url}?connections=1`)
  let leaked: Query | undefined
  await transaction((query) => Promise.resolve(leaked = query))
  await t.rejects(leaked!('SELECT 1'), { message: 'The transaction is over.' })
  const settings = (query: Query) => query('SHOW idle_in_transaction_session_timeout')
  t.equal(String(await transaction(settings)), '30s', 'one that was forgotten holds its locks no longer')
  t.equal(String(await transaction(settings, { readOnly: true })), '0')
})

await t.test('one that only looks sees one state, and changes nothing', async (t) => {
  const { transaction } = open(t)
  const looked = transaction(async (query) => {
    const before = await query('SELECT count(*) FROM kept')
    await setup.write('INSERT INTO kept VALUES ($1, 1)', ['f'])
    return [String(before), String(await query('SELECT count(*) FROM kept'))]
  }, { readOnly: true })
  const [before, after] = await looked
  t.equal(before, after)
  const wrote = transaction((query) => keep(query, 'g'), { readOnly: true })
  t.match(await outcomeOf(wrote), { name: 'SqlError', code: '25006' })
})

await t.test('one that the server asks to be repeated is run again', async (t) => {
  // For the connections that begin now: each transaction has run a statement before its work begins.
  await setup.write('ALTER ROLE CURRENT_USER SET default_transaction_isolation = serializable')
  const { transaction } = open(t)
  await setup.write(`INSERT INTO kept VALUES ('h', 1), ('i', 1)`)

  let runs = 0
  const bothRead = barrier(2)
  const addSum = (id: string) =>
    transaction(async (query) => {
      const isFirst = ++runs <= 2
      const [[sum] = [0]] = await query<[number]>(
        `SELECT sum(times)::integer FROM kept WHERE id IN ('h', 'i')`,
      )
      if (isFirst) await bothRead()
      await query('UPDATE kept SET times = times + $1 WHERE id = $2', [sum, id])
    })
  await Promise.all([addSum('h'), addSum('i')])
  t.ok(runs > 2)
  t.same([await kept('h'), await kept('i')].sort(), [3, 5], 'as if one had been after the other')

  await setup.write('ALTER ROLE CURRENT_USER RESET default_transaction_isolation')
  const { transaction: locking } = open(t)
  runs = 0
  const bothHold = barrier(2)
  const lockBoth = (first: string, second: string) =>
    locking(async (query) => {
      const isFirst = ++runs <= 2
      await query('UPDATE kept SET times = 7 WHERE id = $1', [first])
      if (isFirst) await bothHold()
      await query('UPDATE kept SET times = 8 WHERE id = $1', [second])
    })
  await Promise.all([lockBoth('h', 'i'), lockBoth('i', 'h')])
  t.equal(runs, 3, 'out of a deadlock, too')
})

await t.test('one that can never be is given up', async (t) => {
  const { transaction, read } = open(t)
  const fail = `DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$`
  let runs = 0
  const failing = transaction((query) => {
    runs++
    return query(fail)
  })
  t.match(await outcomeOf(failing), { name: 'SqlError', code: '40001' })
  t.equal(runs, 10)
  t.match(await outcomeOf(read(fail)), { name: 'SqlError', code: '40001' })
})

await t.test('one whose connection is lost before its end is run again', async (t) => {
  const { transaction } = open(t)
  let runs = 0
  await transaction(async (query) => {
    await keep(query, 'j')
    const [[pid] = []] = await query('SELECT pg_backend_pid()')
    if (++runs === 1) await setup.read('SELECT pg_terminate_backend($1::integer)', [pid!])
    await query('SELECT 1')
  })
  t.equal(runs, 2)
  t.equal(await kept('j'), 1)
})

await t.test('a server that takes writes no longer is left for one that does', async (t) => {
  const { transaction, read, write } = open(t, `${url}?connections=1`)
  const demote = 'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY'
  await read(demote)
  await transaction((query) => keep(query, 'k'))
  await read(demote)
  await write(`UPDATE kept SET times = 2 WHERE id = 'k'`)
  t.equal(await kept('k'), 2)
})

await t.test('nobody knows what became of one that was lost while it ended', async (t) => {
  const { transaction, place } = open(t, gate.url(url))
  let runs = 0
  const cut = transaction(async (query) => {
    runs++
    await keep(query, 'l')
    gate.cut()
  })
  const error = await outcomeOf(cut)
  t.type(error, StoreError)
  t.match(error, { code: 'unreachable' })
  t.ok((error as Error).message.includes(place))
  t.type((error as Error).cause, CommitUnknownError)
  t.equal(runs, 1)
  await gate.restore()
  const looked = transaction((query) => query('SELECT 1'), { readOnly: true })
  t.equal(String(await looked), '1')
})

await t.test('one that only looks loses nothing with its end', async (t) => {
  const { transaction } = open(t, gate.url(url))
  const looked = transaction(async (query) => {
    const rows = await query('SELECT 1')
    gate.cut()
    return rows
  }, { readOnly: true })
  t.equal(String(await looked), '1')
  await gate.restore()
})

await t.test('none is begun on a server that is away for longer than somebody waits', async (t) => {
  await gate.reset()
  const { transaction } = open(t, gate.url(url))
  const start = performance.now()
  let runs = 0
  const error = await outcomeOf(transaction(() => Promise.resolve(runs++)))
  t.match(error, { name: 'StoreError', code: 'unreachable', message: /ECONNREFUSED/ })
  t.equal(runs, 0)
  t.ok(performance.now() - start < 60_000)
  await gate.restore()
})
