/** Undocumented behaviour of the driver that `connection.ts` relies on. */
import { spawnSync } from 'node:child_process'
import { connect } from 'node:net'
import process from 'node:process'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { databasesFor } from '../postgres/fixtures.ts'

const server = await databasesFor(t)
const url = await server.createDatabase()

/** Opens a driver with one connection. @param written Receives the message types of each write to the socket. */
function open(t: Test, options: object = {}, written: (types: string) => void = () => {}) {
  const socket = () => {
    const socket = connect(server.port, server.host)
    const write = socket.write.bind(socket)
    socket.write = ((bytes: Buffer, done?: () => void) => {
      if (bytes[0] !== 0) written(typesOf(bytes))
      return write(bytes, done)
    }) as typeof socket.write
    return socket
  }
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice() {}, ...options, socket } as object)
  t.teardown(() => sql.end({ timeout: 0 }))
  return sql
}

/** P parse, D describe, B bind, E execute, S sync, H flush, Q simple query. */
function typesOf(bytes: Buffer): string {
  let types = ''
  for (let at = 0; at < bytes.length; at += 1 + bytes.readUInt32BE(at + 1)) {
    types += String.fromCharCode(bytes[at]!)
  }
  return types
}

await t.test('a larger pool does not survive the end of a connection within a transaction', (t) => {
  const program = `
    import postgres from '${import.meta.resolve('postgres')}'
    const sql = postgres(process.argv[1], { max: 2, onnotice() {} })
    await sql.begin(async (query) => {
      const [{ pid }] = await query\`SELECT pg_backend_pid() AS pid\`
      await Promise.all([query\`SELECT pg_sleep(60)\`, sql\`SELECT pg_terminate_backend(\${pid}) FROM pg_sleep(0.2)\`])
    }).catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    await sql.end({ timeout: 0 })`
  const flags = ['--input-type=module', '-e', program, '--', url]
  const { status, stderr } = spawnSync(process.execPath, flags, { encoding: 'utf8', timeout: 60_000 })
  t.not(status, 0, 'otherwise a larger pool could be used')
  t.match(stderr, /reading 'write'/)
  t.end()
})

await t.test('parameters of a query are sent with it, in one round trip', async (t) => {
  const writes: string[] = []
  const sql = open(t, {}, (types) => writes.push(types))
  const ask = async (prepare: boolean) => {
    const query = sql.unsafe('SELECT $1::text, $2::integer', [], { prepare, simple: false } as object)
    return [...await Object.assign(query, { parameters: ['a', 7] }).values()]
  }
  await sql.unsafe('')
  writes.length = 0
  for (const prepare of [false, true, true]) {
    t.strictSame(await ask(prepare), [['a', 7]])
  }
  t.strictSame(writes, ['PDBES', 'PDBES', 'BES'])
  writes.length = 0
  await sql.unsafe('SELECT $1::text', ['a'], { prepare: false })
  t.strictSame(writes, ['PDH', 'BES'], 'arguments take two')
})

await t.test('statements are pipelined, with max_pipeline 0 one by one', async (t) => {
  for (const [max_pipeline, writes] of [[1000, 1], [0, 3]] as const) {
    let count = 0
    const sql = open(t, { max_pipeline }, () => count++)
    await sql.unsafe('')
    count = 0
    const rows = await Promise.all([1, 2, 3].map((number) => sql.unsafe(`SELECT ${number}`).values()))
    t.equal(String(rows), '1,2,3')
    t.equal(count, writes)
  }
})
