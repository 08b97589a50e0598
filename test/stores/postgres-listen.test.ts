/** What replicas tell each other through the server, and connections that keep nobody awake. */
import { type AddressInfo, connect as connectSocket, createServer } from 'node:net'
import process from 'node:process'
import t from 'tap'
import type { Test } from 'tap'
import { connect } from '../../adapters/stores/postgres/database.ts'
import type { Database } from '../../adapters/stores/postgres/database.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startGate } from '../postgres/network.ts'
import { hasPooler, startPooler } from '../postgres/pooler.ts'
import { atPort, startServer } from '../postgres/server.ts'
import { until, within } from '../postgres/until.ts'

const reason = hasServer()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

const server = await startServer()
t.teardown(() => server.close())
const url = await server.createDatabase()
const teller = connect(url)
t.teardown(() => teller.close())

/** Connects for as long as the test runs. */
function open(t: Test, address: string): Database {
  const database = connect(address)
  t.teardown(() => database.close())
  return database
}

/** Listens. @returns How often something was heard up to now. */
function listen(database: Database): () => number {
  let times = 0
  database.listen(() => times++)
  return () => times
}

const listening = `SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND application_name = $1`

await t.test('who listens hears when it begins, and what others tell', async (t) => {
  const database = open(t, url)
  const first = listen(database)
  const second = listen(database)
  await until(() => first() === 1 && second() === 1, 'listening to begin')
  await teller.notify()
  await until(() => first() === 2 && second() === 2, 'it to be heard')
  await database.notify()
  await until(() => first() === 3, 'their own to be heard')
})

await t.test('a connection that was lost is replaced, and what was missed is made up for', async (t) => {
  const database = open(t, `${url}?application_name=lost`)
  const heard = listen(database)
  await until(() => heard() === 1, 'listening to begin')
  await teller.read(`SELECT pg_terminate_backend(pid) FROM (${listening}) AS listening`, ['lost'])
  await until(() => heard() === 2, 'listening to begin anew')
  await teller.notify()
  await until(() => heard() === 3, 'it to be heard')
})

await t.test('a connection that died unnoticed is replaced, too, with a look-up at the latest', async (t) => {
  const database = open(t, `${url}?application_name=silent`)
  const heard = listen(database)
  await until(() => heard() === 1, 'listening to begin')
  const pids = [
    ...await teller.read(listening, ['silent']),
    ...await database.lookUp('SELECT pg_backend_pid()'),
  ].map(([pid]) => Number(pid))
  t.teardown(() => pids.forEach((pid) => process.kill(pid, 'SIGCONT')))
  pids.forEach((pid) => process.kill(pid, 'SIGSTOP'))
  t.equal(String(await database.lookUp('SELECT 1')), '1')
  await until(() => heard() === 2, 'listening to begin anew')
  await teller.notify()
  await until(() => heard() === 3, 'it to be heard')
})

await t.test('behind a pooler nobody listens, and what is told arrives all the same', {
  skip: hasPooler() ?? false,
}, async (t) => {
  const pooler = await startPooler(server)
  t.teardown(() => pooler.close())
  const direct = listen(open(t, url))
  const pooled = open(t, `${pooler.url(url)}?pooler=transaction&application_name=pooled`)
  const nothing = listen(pooled)
  await until(() => direct() === 1, 'listening to begin')
  await pooled.notify()
  await until(() => direct() === 2, 'it to be heard')
  t.equal(nothing(), 0)
  t.same([...await teller.read(listening, ['pooled'])], [])
})

await t.test('a server that knows no notices is left in peace with them', async (t) => {
  const other = await startStranger(server.port)
  t.teardown(other.close)
  const database = open(t, atPort(url, other.port))
  const heard = listen(database)
  await until(() => other.refused() === 1, 'listening to be refused')
  await database.notify()
  await database.notify()
  t.equal(other.refused(), 2, 'each is tried once')
  t.equal(String(await database.lookUp('SELECT 1')), '1')
  t.equal(String(await database.asyncCommit('SELECT 2')), '2')
  t.equal(heard(), 0)
})

await t.test('telling fails quietly', async (t) => {
  const gate = await startGate(server.port)
  await gate.close()
  await open(t, gate.url(url)).notify()
})

await t.test('closing ends what a silent server keeps waiting', async (t) => {
  const gate = await startGate(server.port)
  t.teardown(() => gate.close())
  const database = connect(gate.url(url))
  const heard = listen(database)
  await until(() => heard() === 1, 'listening to begin')
  await Promise.all([
    database.lookUp('SELECT 1'),
    database.asyncCommit('SELECT 1'),
    database.read('SELECT 1'),
  ])
  gate.cut()
  const asked = [
    database.read('SELECT 1'),
    database.write('SELECT 1'),
    database.transaction((query) => query('SELECT 1')),
    database.lookUp('SELECT 1'),
    database.asyncCommit('SELECT 1'),
  ].map((promise) => promise.then(() => undefined, (error) => error))
  await within(database.close(), 'it to close')
  for (const error of await Promise.all(asked)) t.match(error, { code: 'unreachable' })
  const late = [
    database.lookUp('SELECT 1'),
    database.asyncCommit('SELECT 1'),
    database.read('SELECT 1'),
    database.write('SELECT 1'),
    database.transaction((query) => query('SELECT 1')),
  ]
  for (const promise of late) await t.rejects(promise, { code: 'unreachable', message: /it was closed/ })
  await database.notify()
  await database.close()
  await gate.restore()
})

await t.test('closing in order waits for what is under way', async (t) => {
  const database = connect(url)
  const asked = [
    database.lookUp('SELECT pg_sleep(0.2)'),
    database.read('SELECT pg_sleep(0.2)'),
    database.transaction((query) => query('SELECT pg_sleep(0.2)')),
  ]
  await until(async () => {
    const asleep = `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`
    return String(await teller.read(asleep)) === '3'
  }, 'all to be under way')
  await database.close()
  t.equal((await Promise.all(asked)).length, 3)
})

/** A way to the server on which LISTEN and NOTIFY are words that it does not know. */
async function startStranger(port: number) {
  let refused = 0
  const stranger = createServer((near) => {
    const far = connectSocket(port, '127.0.0.1')
    near.on('data', (bytes) => {
      const text = bytes.toString('latin1')
      if (/LISTEN|NOTIFY/.test(text)) refused++
      far.write(Buffer.from(text.replace(/LISTEN|NOTIFY/, 'GOSSIP'), 'latin1'))
    })
    far.pipe(near)
    near.on('error', () => far.destroy()).on('close', () => far.destroy())
    far.on('error', () => near.destroy())
  })
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
  return {
    port: (stranger.address() as AddressInfo).port,
    refused: () => refused,
    close: () => void stranger.close(),
  }
}
