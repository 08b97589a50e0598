import postgres, { type Options, type Sql } from 'postgres'
import { type Test, test } from 'tap'
import { hasServer } from './binaries.ts'
import { startServer } from './server.ts'

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
