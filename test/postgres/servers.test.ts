/** What the fixtures promise and a test could not notice: fewer rights, shared connections, silence. */
import { test } from 'tap'
import { hasServer } from './binaries.ts'
import { openSql } from './fixtures.ts'
import { startGate } from './network.ts'
import { hasPooler, startPooler } from './pooler.ts'
import { startServer } from './server.ts'

/** @returns Whether it is still pending after that long. */
async function hangs(promise: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const late = Symbol()
  const timer = new Promise((resolve) => setTimeout(resolve, milliseconds, late))
  return await Promise.race([promise, timer]) === late
}

test('fixtures', { skip: hasServer() ?? false }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  const url = await server.createDatabase()
  const sql = openSql(t, url)

  await t.test('databases belong to a role with few rights, and sort by bytes', async (t) => {
    const [role] = await sql`select rolsuper, rolcreatedb, rolreplication from pg_roles where rolname = user`
    t.same(role, { rolsuper: false, rolcreatedb: false, rolreplication: false })
    const [text] = await sql`select pg_encoding_to_char(encoding) as encoding, datcollate
      from pg_database where datname = current_database()`
    t.same(text, { encoding: 'UTF8', datcollate: 'C' })
    const guessed = new URL(url)
    guessed.password = 'guessed'
    await t.rejects(openSql(t, guessed.href)`select 1`, { code: '28P01' })
  })

  await t.test(
    'a pooler lends its connections for a transaction',
    { skip: hasPooler() ?? false },
    async (t) => {
      const pooler = await startPooler(server, { mode: 'transaction', poolSize: 1 })
      t.teardown(() => pooler.close())
      const clients = [1, 2, 3].map(() => openSql(t, pooler.url(url)))
      const pids = await Promise.all(
        clients.map(async (sql) => String((await sql`select pg_backend_pid() as pid`)[0]!['pid'])),
      )
      t.equal(new Set(pids).size, 1)
      let other: Promise<unknown> | undefined
      await clients[0]!.begin(async (transaction) => {
        await transaction`select 1`
        other = clients[1]!.unsafe('select 1').execute()
        t.ok(await hangs(other, 50))
      })
      await other
    },
  )

  await t.test('a gate that is cut forwards nothing, and then what has waited', async (t) => {
    const gate = await startGate(server.port)
    t.teardown(() => gate.close())
    const gated = openSql(t, gate.url(url), 1)
    const [session] = await gated`select pg_backend_pid() as pid`
    gate.cut()
    const pending = gated`select pg_backend_pid() as pid`.execute()
    t.ok(await hangs(pending, 50))
    const ended = gated.end({ timeout: 5 })
    t.equal((await sql`select 1 from pg_stat_activity where pid = ${session!['pid']}`).length, 1)
    await gate.restore()
    t.same(await pending, [session], 'on the same connection')
    await ended
  })
})
