import postgres, { type Options, type Sql } from 'postgres'
import { type Test, test } from 'tap'
import { hasServer } from './binaries.ts'
import { startGate } from './network.ts'
import { hasPooler, startPooler } from './pooler.ts'
import { atPort, startServer } from './server.ts'
import { startStandby } from './standby.ts'
import { until } from './until.ts'

const skip = hasServer() ?? false

/** Connects for as long as the test runs. */
function connect(t: Test, url: string, options: Options<Record<string, never>> = {}): Sql {
  const sql = postgres(url, { max: 2, onnotice: () => {}, ...options })
  t.teardown(() => sql.end({ timeout: 0 }))
  return sql
}

async function rowsOf(sql: Sql): Promise<number[]> {
  return (await sql`select n from facts order by n`).map(({ n }) => n)
}

/** @returns Whether it is still going on after that long. */
async function hangs(promise: Promise<unknown>, milliseconds = 200): Promise<boolean> {
  const late = Symbol()
  const timer = new Promise((resolve) => setTimeout(resolve, milliseconds, late))
  return await Promise.race([promise, timer]) === late
}

test('a server', { skip }, async (t) => {
  const server = await startServer({
    maxConnections: 20,
    settings: { shared_preload_libraries: 'pg_stat_statements' },
  })
  t.teardown(() => server.close())
  const [first, second] = [await server.createDatabase(), await server.createDatabase()]
  const sql = connect(t, first)
  await sql`create table facts (n int primary key)`
  await sql`insert into facts values (1)`

  await t.test('creates databases of their own for a user with few rights', async (t) => {
    const other = connect(t, second)
    t.same(await other`select tablename from pg_tables where schemaname = 'public'`, [])
    const [role] = await sql`select rolsuper, rolcreatedb, rolreplication from pg_roles where rolname = user`
    t.same(role, { rolsuper: false, rolcreatedb: false, rolreplication: false })
    const [text] = await sql`select pg_encoding_to_char(encoding) as encoding, datcollate
      from pg_database where datname = current_database()`
    t.same(text, { encoding: 'UTF8', datcollate: 'C' })
    await server.dropDatabase(second)
    await t.rejects(other`select 1`)
  })

  await t.test('asks for its password', async (t) => {
    const url = new URL(first)
    url.password = 'guessed'
    await t.rejects(connect(t, url.href)`select 1`, { code: '28P01' })
  })

  await t.test('has the settings that were asked for', async (t) => {
    const admin = connect(t, server.adminUrl('postgres'))
    t.same(await admin`show max_connections`, [{ max_connections: '20' }])
    await admin`create extension pg_stat_statements`
    t.not((await admin`select query from pg_stat_statements`).length, 0)
  })

  await t.test('hangs and goes on', async (t) => {
    await server.pause()
    const [known, fresh] = [rowsOf(sql), rowsOf(connect(t, first))]
    t.ok(await hangs(known), 'a connection that stood')
    t.ok(await hangs(fresh, 0), 'a new one')
    await server.resume()
    t.same(await Promise.all([known, fresh]), [[1], [1]])
  })

  await t.test('is killed and started again on the same port, with what it had committed', async (t) => {
    const before = server.pid
    const asleep = sql`select pg_sleep(60)`.catch((error) => error)
    await sql`insert into facts values (2)`
    await server.kill()
    t.match(await asleep, { code: 'CONNECTION_CLOSED' })
    await t.rejects(connect(t, first)`select 1`, { code: 'ECONNREFUSED' })
    await server.restart()
    t.not(server.pid, before)
    t.match(server.log(), /not properly shut down/)
    t.same(await rowsOf(connect(t, first)), [1, 2])
  })

  await t.test('is stopped in order and started again', async (t) => {
    await server.stop()
    t.match(server.log(), /database system is shut down/)
    await server.restart()
    t.notMatch(server.log(), /not properly shut down/)
    t.same(await rowsOf(connect(t, first)), [1, 2])
  })

  await t.test('is killed while it hangs', async (t) => {
    await server.pause()
    await server.kill()
    await server.restart()
    t.same(await rowsOf(connect(t, first)), [1, 2])
  })
})

test('two servers start at once', { skip }, async (t) => {
  const servers = await Promise.all([startServer(), startServer({ durable: true })])
  t.teardown(() => Promise.all(servers.map((server) => server.close())))
  t.not(servers[0].port, servers[1].port)
  t.not(servers[0].password, servers[1].password)
  const syncs = servers.map(async ({ admin }) => (await admin`show fsync`)[0]?.['fsync'])
  t.same(await Promise.all(syncs), ['off', 'on'])
})

test('a pooler', { skip: skip || hasPooler() || false }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  const pooler = await startPooler(server, { mode: 'transaction', poolSize: 1 })
  t.teardown(() => pooler.close())
  const [first, second] = [await server.createDatabase(), await server.createDatabase()]
  const sql = connect(t, pooler.url(first), { prepare: false })
  await sql`create table facts (n int primary key)`
  await sql`insert into facts select unnest(${[1, 2]}::int[])`
  t.same(await rowsOf(connect(t, first)), [1, 2], 'is the same database')
  const elsewhere = connect(t, pooler.url(second), { prepare: false })
  t.same(await elsewhere`select current_database() as name`, [{ name: new URL(second).pathname.slice(1) }])

  await t.test('lends its one connection for a transaction', async (t) => {
    const pids = await Promise.all(Array.from({ length: 4 }, async () => {
      const [row] = await connect(t, pooler.url(first), { prepare: false })`select pg_backend_pid() as pid`
      return row?.['pid']
    }))
    t.equal(new Set(pids).size, 1)
    let second: Promise<number[]> | undefined
    await sql.begin(async (transaction) => {
      await transaction`select 1`
      second = rowsOf(connect(t, pooler.url(first), { prepare: false }))
      t.ok(await hangs(second, 50))
    })
    t.same(await second, [1, 2])
  })

  await t.test('asks for the password', async (t) => {
    const url = new URL(pooler.url(first))
    url.password = 'guessed'
    await t.rejects(connect(t, url.href, { prepare: false })`select 1`, /auth/)
  })

  await t.test('keeps its clients waiting for a server that is down', async (t) => {
    await server.kill()
    const early = rowsOf(sql)
    t.ok(await hangs(early))
    await server.restart()
    t.same(await early, [1, 2])
  })

  await pooler.kill()
  await t.rejects(connect(t, pooler.url(first))`select 1`, { code: 'ECONNREFUSED' })
})

test('a standby', { skip }, async (t) => {
  const primary = await startServer()
  t.teardown(() => primary.close())
  const url = await primary.createDatabase()
  const sql = connect(t, url)
  await sql`create table facts (n int primary key)`
  await sql`insert into facts values (1)`
  const standby = await startStandby(primary, { synchronous: true })
  t.teardown(() => standby.close())
  const there = connect(t, atPort(url, standby.port))
  await standby.caughtUp()
  t.same(await rowsOf(there), [1])
  await t.rejects(there`insert into facts values (9)`, { code: '25006' }, 'is read-only')

  await standby.pause()
  const two = sql`insert into facts values (2)`
  t.ok(await hangs(two), 'is waited for')
  await standby.resume()
  await two

  await primary.kill()
  await standby.promote()
  t.same(await rowsOf(there), [1, 2], 'has what was acknowledged')
  await there`insert into facts values (3)`
  t.equal(new URL(await standby.createDatabase()).port, String(standby.port))
})

test('a gate', { skip }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  const gate = await startGate(server.port)
  t.teardown(() => gate.close())
  const url = gate.url(await server.createDatabase())
  const sql = connect(t, url, { max: 1 })
  await sql`create table facts (n int primary key)`
  const [session] = await sql`select pg_backend_pid() as pid`

  await t.test('is cut, and lets through what has waited', async (t) => {
    gate.cut()
    const [known, fresh] = [sql`insert into facts values (1)`, rowsOf(connect(t, url))]
    t.ok(await hangs(Promise.race([known, fresh])))
    t.same(await server.admin`select state from pg_stat_activity where pid = ${session?.['pid']}`, [
      { state: 'idle' },
    ])
    await gate.restore()
    await Promise.all([known, fresh])
    t.same(await sql`select pg_backend_pid() as pid`, [session], 'over the same connection')
    t.same(await rowsOf(sql), [1])
  })

  await t.test('gives up who waits no longer only when it is restored', async (t) => {
    const impatient = connect(t, url)
    const [one] = await impatient`select pg_backend_pid() as pid`
    const lives = async () =>
      (await server.admin`select 1 from pg_stat_activity where pid = ${one?.['pid']}`).length === 1
    gate.cut()
    await impatient.end({ timeout: 0 })
    t.ok(await lives())
    await gate.restore()
    await until(async () => !await lives(), 'the session to end')
  })

  await t.test('breaks connections off and refuses new ones', async (t) => {
    const asleep = sql`select pg_sleep(60)`.catch((error) => error)
    t.ok(await hangs(asleep, 50))
    await gate.reset()
    t.match(await asleep, { code: 'ECONNRESET' })
    await t.rejects(connect(t, url)`select 1`, { code: 'ECONNREFUSED' })
    await gate.restore()
    t.same(await rowsOf(sql), [1])
  })
})
