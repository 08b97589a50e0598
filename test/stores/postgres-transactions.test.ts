/** Transactions that are retried or aborted, or whose outcome is unknown, and their changes. */
import t from 'tap'
import type { Test } from 'tap'
import { connect } from '../../adapters/stores/postgres/database.ts'
import type { PostgresQuery } from '../../adapters/stores/postgres/connection.ts'
import type { PostgresDatabase } from '../../adapters/stores/postgres/database.ts'
import { CommitUnknownError, SqlError } from '../../adapters/stores/postgres/errors.ts'
import { migrate } from '../../adapters/stores/postgres/migrate.ts'
import { createRevisions } from '../../adapters/stores/postgres/revisions.ts'
import { createSqlDatabase } from '../../adapters/stores/postgres/sql-database.ts'
import { createAdministration } from '../../adapters/stores/sql/partners-and-keys.ts'
import { StoreError } from '../../core/ports/store-error.ts'
import { partner, stamp } from '../contract/store/samples.ts'
import { openDatabase, openSql, outcomeOf, serverFor, waitsForLock } from '../postgres/fixtures.ts'
import { startGate } from '../postgres/network.ts'
import { until } from '../postgres/until.ts'

const server = await serverFor(t, { settings: { deadlock_timeout: '50ms' } })
const url = await server.createDatabase()
const gate = await startGate(server.port)
t.teardown(() => gate.close())
const setup = connect(url)
t.teardown(() => setup.close())
await setup.read(
  'CREATE TABLE kept (id text PRIMARY KEY DEFERRABLE INITIALLY IMMEDIATE, times integer NOT NULL)',
)

const storeUrl = await server.createDatabase()
const storeDatabase = connect(storeUrl)
t.teardown(() => storeDatabase.close())
await migrate(storeDatabase, undefined)
const sql = openSql(t, storeUrl)

const open = (t: Test, address = url): PostgresDatabase => openDatabase(t, address)
const keep = (query: PostgresQuery, id: string) => query('INSERT INTO kept VALUES ($1, 1)', [id])
const kept = async (id: string) => (await setup.read('SELECT times FROM kept WHERE id = $1', [id]))[0]?.[0]

/** @returns A barrier for `count` callers. */
function barrier(many: number): () => Promise<void> {
  const all = Promise.withResolvers<void>()
  return () => {
    if (--many === 0) all.resolve()
    return all.promise
  }
}

await t.test('a transaction is committed or rolled back completely', async (t) => {
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

await t.test('a failed statement rolls the transaction back, even if it was caught', async (t) => {
  const { transaction } = open(t)
  const twice = async (query: PostgresQuery) => {
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
  t.type(await seen, SqlError, 'a rolled back transaction may go on')
  const late = transaction(async (query) => {
    await query('SET CONSTRAINTS kept_pkey DEFERRED')
    await keep(query, 'd')
    await keep(query, 'd')
  })
  t.match(await outcomeOf(late), { name: 'SqlError', code: '23505' }, 'at the end of the transaction')
  t.equal(await kept('d'), undefined)
})

await t.test('concurrent statements run in order', async (t) => {
  const { transaction } = open(t)
  const asked = (query: PostgresQuery) =>
    Promise.all([
      keep(query, 'e'),
      query(`UPDATE kept SET times = 2 WHERE id = 'e'`),
      query(`SELECT times FROM kept WHERE id = $1`, ['e']),
    ])
  t.equal(String((await transaction(asked))[2]), '2')
})

await t.test('a transaction cannot be used after its end', async (t) => {
  const { transaction } = open(t, `${url}?connections=1`)
  let leaked: PostgresQuery | undefined
  await transaction((query) => Promise.resolve(leaked = query))
  await t.rejects(leaked!('SELECT 1'), { message: 'The transaction is over.' })
  const settings = (query: PostgresQuery) => query('SHOW idle_in_transaction_session_timeout')
  t.equal(String(await transaction(settings)), '30s')
  t.equal(String(await transaction(settings, { readOnly: true })), '0')
})

await t.test('a read-only transaction sees one snapshot and cannot write', async (t) => {
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

await t.test('serialization failures and deadlocks are repeated', async (t) => {
  // For new connections: each transaction has run a statement before its work begins.
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
  t.same([await kept('h'), await kept('i')].sort(), [3, 5], 'the result of a serial execution')

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
  t.equal(runs, 3, 'a deadlock is retried')
})

await t.test('after ten attempts, a transaction fails', async (t) => {
  const { transaction, read } = open(t)
  const fail = `DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$`
  let runs = 0
  const failing = transaction((query) => {
    runs++
    return query(fail)
  })
  for (const error of await Promise.all([outcomeOf(failing), outcomeOf(read(fail))])) {
    t.match(error, { name: 'SqlError', code: '40001' })
  }
  t.equal(runs, 10)
})

await t.test('a transaction whose connection is lost before the commit is repeated', async (t) => {
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

await t.test('a connection to a server that has become read-only is replaced', async (t) => {
  const { transaction, read, write } = open(t, `${url}?connections=1`)
  const demote = 'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY'
  await read(demote)
  await transaction((query) => keep(query, 'k'))
  await read(demote)
  await write(`UPDATE kept SET times = 2 WHERE id = 'k'`)
  t.equal(await kept('k'), 2)
})

await t.test('a connection that is lost during the commit leaves the outcome unknown', async (t) => {
  const { transaction, location } = open(t, gate.url(url))
  let runs = 0
  const cut = transaction(async (query) => {
    runs++
    await keep(query, 'l')
    gate.cut()
  })
  const error = await outcomeOf(cut)
  t.type(error, StoreError)
  t.match(error, { code: 'unreachable' })
  t.ok((error as Error).message.includes(location))
  t.type((error as Error).cause, CommitUnknownError)
  t.equal(runs, 1)
  await gate.restore()
  const looked = transaction((query) => query('SELECT 1'), { readOnly: true })
  t.equal(String(await looked), '1')
})

await t.test('a read-only transaction does not wait for its commit', async (t) => {
  const { transaction } = open(t, gate.url(url))
  const looked = transaction(async (query) => {
    const rows = await query('SELECT 1')
    gate.cut()
    return rows
  }, { readOnly: true })
  t.equal(String(await looked), '1')
  await gate.restore()
})

await t.test('a transaction fails if the server stays down', async (t) => {
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

type Fate = 'fine' | 'committed' | 'rolled back' | 'in flight' | 'down'

const { now } = performance
t.teardown(() => void (performance.now = now))

/** Creates a partner in transactions with these outcomes; the last one repeats. */
async function change(slug: string, ...fates: Fate[]) {
  const released = Promise.withResolvers<void>()
  let notified = 0
  const lost = () => new StoreError('unreachable', 'lost', { cause: new CommitUnknownError('lost') })

  const faulty: PostgresDatabase = {
    ...storeDatabase,
    notify() {
      notified++
      return storeDatabase.notify()
    },
    async transaction(work, options) {
      const fate = fates.length > 1 ? fates.shift()! : fates[0]!
      if (fate === 'down') {
        const { now } = performance
        performance.now = () => now.call(performance) + 4_000
        throw new StoreError('unreachable', 'down')
      }
      if (fate === 'in flight') {
        const done = Promise.withResolvers<void>()
        void storeDatabase.transaction(async (query, rollback) => {
          await work(query, rollback)
          done.resolve()
          await released.promise
        }, options)
        await done.promise
        throw lost()
      }
      const result = await storeDatabase.transaction(async (query, rollback) => {
        // Waits for a lock, with a shorter timeout.
        const impatient: PostgresQuery = (sql, parameters) => query(sql.replace("'5s'", "'50ms'"), parameters)
        const result = await work(impatient, rollback)
        if (fate === 'rolled back') rollback()
        return result
      }, options)
      if (fate !== 'fine') throw lost()
      return result
    },
  }
  const revisions = createRevisions(faulty)
  const administration = createAdministration(createSqlDatabase(faulty, revisions))
  const { facts } = await revisions.current()
  const apply = async () =>
    await administration.apply([{ type: 'partner.created', partner: partner({ slug }) }], facts, stamp)
  return {
    apply,
    applied: apply().catch((error: Error) => error.message),
    isCommitted: async () => await administration.findPartner(slug) !== undefined,
    isMoved: async () => (await revisions.current()).facts !== facts,
    release: released.resolve,
    notified: () => notified,
  }
}

await t.test('a change whose commit got no response is looked up', async (t) => {
  const nothing = /which was not saved: try again\.$/
  const unknown = /which may have been saved\. Check before trying again\.$/
  const cases:
    readonly (readonly [fates: Fate[], applied: unknown, isCommitted: boolean, notified: number])[] = [
      [['committed', 'fine'], true, true, 1],
      [['committed', 'down', 'down', 'fine'], true, true, 1],
      [['rolled back', 'fine'], nothing, false, 0],
      [['committed', 'down'], unknown, true, 0],
      [['down'], 'down', false, 0],
    ]
  for (const [index, [fates, expected, isCommitted, notified]] of cases.entries()) {
    const label = fates.join(', ')
    const outcome = await change(`p${index}`, ...fates)
    t.match(await outcome.applied, expected, label)
    t.strictSame(
      [await outcome.isCommitted(), await outcome.isMoved(), outcome.notified()],
      [isCommitted, isCommitted, notified],
      label,
    )
  }
})

await t.test('a look-up waits for a pending change', async (t) => {
  const { applied, isCommitted, release } = await change('late', 'in flight', 'fine')
  await until(() => waitsForLock(sql), 'the look-up to wait for the change')
  t.equal(await isCommitted(), false)
  release()
  t.equal(await applied, true)
  t.equal(await isCommitted(), true)
})

await t.test('a change of facts waits for a lock until a timeout', async (t) => {
  await sql.begin(async (transaction) => {
    await transaction`select from partner_api.revision for update`
    const { applied, isCommitted, isMoved, apply } = await change('locked', 'fine')
    t.match(await applied, /locked for 5 s\. Nothing was changed\.$/)
    t.strictSame([await isCommitted(), await isMoved()], [false, false])
    await transaction`rollback`
    t.equal(await apply(), true)
  })
})
