/** Selection of servers, TLS, and LISTEN. */
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, connect as connectSocket, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import { connect, type PostgresDatabase } from '../../adapters/stores/postgres/database.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { queryContinuously } from '../postgres/continuous-queries.ts'
import { openDatabase as open, outcomeOf, serverFor } from '../postgres/fixtures.ts'
import { startGate } from '../postgres/network.ts'
import { hasPooler, startPooler } from '../postgres/pooler.ts'
import { createPrivateFolder } from '../postgres/private-folder.ts'
import { atPort } from '../postgres/server.ts'
import { startStandby } from '../postgres/standby.ts'
import { giveAway } from '../postgres/unprivileged.ts'
import { until, within } from '../postgres/until.ts'
import { makeCertificate, noOpenssl } from '../support/certificate.ts'

const server = await serverFor(t)
const url = await server.createDatabase()
const other = connect(url)
t.teardown(() => other.close())

/** The URL of a database on several servers, in this order. */
function onAll(url: string, ...servers: readonly { readonly port: number }[]): string {
  return url.replace(/@[^/]+/, `@${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`)
}

/** Changes a setting of the server while it runs. */
async function set(name: string, value: string): Promise<void> {
  await server.admin.unsafe(`alter system set ${name} = '${value}'`)
  await server.admin`select pg_reload_conf()`
}

/** Listens. @returns The number of notifications so far. */
function listen(database: PostgresDatabase): () => number {
  let times = 0
  database.listen(() => times++)
  return () => times
}

const listening = `SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND application_name = $1`

await t.test('a listener is called when LISTEN begins and on each notification', async (t) => {
  const database = open(t, url)
  const first = listen(database)
  const second = listen(database)
  await until(() => first() === 1 && second() === 1, 'listening to begin')
  await other.notify()
  await until(() => first() === 2 && second() === 2, 'the notification')
  await database.notify()
  await until(() => first() === 3, 'its own notification')
})

await t.test('a lost connection is replaced, and the listener is called for missed notifications', async (t) => {
  const database = open(t, `${url}?application_name=lost`)
  const notifications = listen(database)
  await until(() => notifications() === 1, 'listening to begin')
  await other.read(`SELECT pg_terminate_backend(pid) FROM (${listening}) AS listening`, ['lost'])
  await until(() => notifications() === 2, 'LISTEN to begin again')
  await other.notify()
  await until(() => notifications() === 3, 'the notification')
})

await t.test('a dead connection is replaced after a look-up fails on it', async (t) => {
  const database = open(t, `${url}?application_name=silent`)
  const notifications = listen(database)
  await until(() => notifications() === 1, 'listening to begin')
  const pids = [
    ...await other.read(listening, ['silent']),
    ...await database.lookUp('SELECT pg_backend_pid()'),
  ].map(([pid]) => Number(pid))
  t.teardown(() => pids.forEach((pid) => process.kill(pid, 'SIGCONT')))
  pids.forEach((pid) => process.kill(pid, 'SIGSTOP'))
  t.equal(String(await database.lookUp('SELECT 1')), '1')
  await until(() => notifications() === 2, 'LISTEN to begin again')
  await other.notify()
  await until(() => notifications() === 3, 'the notification')
})

await t.test('a pooler is used for NOTIFY, but not for LISTEN', {
  skip: hasPooler() ?? false,
}, async (t) => {
  const pooler = await startPooler(server)
  t.teardown(() => pooler.close())
  const direct = listen(open(t, url))
  const pooled = open(t, `${pooler.url(url)}?pooler=transaction&application_name=pooled`)
  const nothing = listen(pooled)
  await until(() => direct() === 1, 'listening to begin')
  await pooled.notify()
  await until(() => direct() === 2, 'the notification')
  t.equal(nothing(), 0)
  t.same([...await other.read(listening, ['pooled'])], [])
})

await t.test('a server that lacks LISTEN and NOTIFY can be used', async (t) => {
  const stranger = await startStranger(server.port)
  t.teardown(stranger.close)
  const database = open(t, atPort(url, stranger.port))
  const notifications = listen(database)
  await until(() => stranger.refused() === 1, 'listening to be refused')
  await database.notify()
  await database.notify()
  t.equal(stranger.refused(), 2, 'each command is tried once')
  t.equal(String(await database.lookUp('SELECT 1')), '1')
  t.equal(String(await database.asyncCommit('SELECT 2')), '2')
  t.equal(notifications(), 0)
})

await t.test('a failed notification is ignored', async (t) => {
  const gate = await startGate(server.port)
  await gate.close()
  await open(t, gate.url(url)).notify()
})

await t.test('closing ends statements on an unresponsive server', async (t) => {
  const gate = await startGate(server.port)
  t.teardown(() => gate.close())
  const database = connect(gate.url(url))
  const notifications = listen(database)
  await until(() => notifications() === 1, 'listening to begin')
  await Promise.all([
    database.lookUp('SELECT 1'),
    database.asyncCommit('SELECT 1'),
    database.read('SELECT 1'),
  ])
  gate.cut()
  const pending = [
    database.read('SELECT 1'),
    database.write('SELECT 1'),
    database.transaction((query) => query('SELECT 1')),
    database.lookUp('SELECT 1'),
    database.asyncCommit('SELECT 1'),
  ].map((promise) => promise.then(() => undefined, (error) => error))
  await within(database.close(), 'the database to close')
  for (const error of await Promise.all(pending)) t.match(error, { code: 'unreachable' })
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

await t.test('closing waits for pending statements', async (t) => {
  const database = connect(url)
  const pending = [
    database.lookUp('SELECT pg_sleep(0.2)'),
    database.read('SELECT pg_sleep(0.2)'),
    database.transaction((query) => query('SELECT pg_sleep(0.2)')),
  ]
  await until(async () => {
    const asleep = `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`
    return String(await other.read(asleep)) === '3'
  }, 'all statements to be pending')
  await database.close()
  t.equal((await Promise.all(pending)).length, 3)
})

await t.test('a server that has become read-only is not used', async (t) => {
  const store = await openPostgresStore(url)
  const any = await openPostgresStore(`${url}?target_session_attrs=any`)
  t.teardown(() => Promise.all([store.close(), any.close()]))
  const database = open(t, url)
  const pids = () =>
    Promise.all(
      [database.lookUp, database.read].map(async (query) => String(await query('SELECT pg_backend_pid()'))),
    )
  let notifications = 0
  database.listen(() => notifications++)
  await until(() => notifications === 1, 'listening to begin')
  const before = await pids()
  const revision = await store.revision()

  await set('default_transaction_read_only', 'on')
  const outcome = () => outcomeOf(Promise.resolve(store.revision()))
  await until(async () => (await outcome()) instanceof Error, 'the server to be found read-only')
  t.match(await outcome(), { code: 'unreachable', message: /takes no writes/ })
  t.strictSame(await any.revision(), revision, 'with target_session_attrs=any it is used')
  const busy = database.transaction(async (query) => {
    t.throws(() => database.reportReadOnly(), { code: 'unreachable' })
    return String(await query('SELECT pg_backend_pid()'))
  }, { readOnly: true })
  t.equal(await busy, before[1], 'a pending statement may finish')

  await set('default_transaction_read_only', 'off')
  await until(async () => !((await outcome()) instanceof Error), 'the server to be used again')
  t.strictSame(await store.revision(), revision)
  const after = await pids()
  t.ok(after.every((pid) => !before.includes(pid)), 'all connections are replaced')
  await until(() => notifications === 2, 'LISTEN to begin again')
})

await t.test('an unresponsive host delays a look-up by its timeout at most, and is then skipped', async (t) => {
  const silent = await startGate(server.port)
  t.teardown(() => silent.close())
  silent.cut()
  const database = open(t, onAll(url, silent, server), { lookUpTimeoutMs: 3_000 })
  const start = performance.now()
  t.equal(String(await database.lookUp('SELECT 1')), '1')
  const found = performance.now()
  t.equal(String(await database.read('SELECT 1')), '1')
  t.equal(String(await database.asyncCommit('SELECT 1')), '1')
  t.ok(performance.now() - found < found - start, 'later statements skip it')
  await silent.restore()
})

await t.test('a server may close the connection at any step of a handshake', async (t) => {
  const folder = await createPrivateFolder('certificates', false)
  t.teardown(() => folder.remove())
  const authority = join(folder.path, 'authority.pem')
  // Large, so that reading it takes a while.
  await writeFile(authority, Buffer.alloc(16 * 2 ** 20))
  for (const afterMs of [0, 5]) {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.write('S', () => setTimeout(() => socket.resetAndDestroy(), afterMs)))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const address = `postgres://a@127.0.0.1:${port}/b?sslmode=verify-full&sslrootcert=${authority}`
    const database = connect(address, { lookUpTimeoutMs: 200 })
    await t.rejects(database.lookUp('SELECT 1'), { code: 'unreachable' })
    await database.close()
    await new Promise((resolve) => server.close(resolve))
  }
})

await t.test('a server is reached by a Unix socket', async (t) => {
  const { pathname } = new URL(url)
  const folder = dirname(server.dataFolder)
  const database = open(t, `postgres://${pathname}?host=${folder}&port=${server.port}&user=${server.user}`)
  t.equal(database.location, `${join(folder, `.s.PGSQL.${server.port}`)}${pathname}`)
  t.equal(String(await database.lookUp('SELECT $1::integer', [1])), '1')
  t.equal(String(await database.transaction((query) => query('SELECT 2'))), '2')
  const nowhere = open(t, `postgres:///x?host=${folder}&port=1`)
  await t.rejects(nowhere.lookUp('SELECT 1'), { code: 'unreachable', message: /ENOENT/ })
})

await t.test('the URL determines encryption and verification', { skip: noOpenssl }, async (t) => {
  const folder = await createPrivateFolder('certificates', false)
  t.teardown(() => folder.remove())
  const [cert, key, other] = ['cert.pem', 'key.pem', 'other.pem'].map((name) => join(folder.path, name)) as [
    string,
    string,
    string,
  ]
  makeCertificate('localhost', cert, key)
  makeCertificate('localhost', other, `${other}.key`)
  await giveAway(folder.path)
  const named = url.replace('127.0.0.1', 'localhost')

  const isEncrypted = async (url: string) =>
    (await open(t, url).read<[boolean]>('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'))[0]![0]
  type Cases = readonly (readonly [url: string, encrypted: boolean | RegExp])[]
  // Refused connections are retried for a second.
  const check = (cases: Cases) =>
    Promise.all(cases.map(async ([url, expected]) => {
      if (typeof expected === 'boolean') t.equal(await isEncrypted(url), expected, url)
      else await t.rejects(isEncrypted(url), { code: 'unreachable', message: expected }, url)
    }))
  await check([
    [named, false],
    [`${named}?sslmode=prefer`, false],
    [`${named}?sslmode=require`, /the server takes no encrypted connections/],
    [`${named}?sslmode=verify-full&sslrootcert=${cert}`, /the server takes no encrypted connections/],
  ])
  await set('ssl_cert_file', cert)
  await set('ssl_key_file', key)
  await set('ssl', 'on')
  t.teardown(async () => {
    await server.admin`alter system reset all`
    await server.admin`select pg_reload_conf()`
  })
  await until(() => isEncrypted(named), 'the server to encrypt')
  await check([
    [named, true],
    [`${named}?sslmode=disable`, false],
    [`${named}?sslmode=require`, true],
    [`${named}?sslmode=verify-full&sslrootcert=${cert}`, true],
    [`${url}?sslmode=verify-ca&sslrootcert=${cert}`, true],
    [`${url}?sslmode=verify-full&sslrootcert=${cert}`, /altname|IP|identity|name/i],
    [`${named}?sslmode=verify-full&sslrootcert=${other}`, /self-signed|certificate/i],
    [`${named}?sslmode=verify-full`, /self-signed|certificate/i],
    [`${named}?sslmode=verify-full&sslrootcert=${cert}.gone`, /a file named in its URL cannot be read/],
  ])
  const many = open(t, `${named}?sslmode=verify-full&sslrootcert=${cert}`, { lookUpTimeoutMs: 60_000 })
  const long = 'x'.repeat(100_000)
  const rows = await Promise.all(Array.from({ length: 20 }, () => many.lookUp('SELECT $1::text', [long])))
  t.ok(rows.every(([row]) => row![0] === long))
})

// Last: the server is killed.
const isStandby = async (query: PostgresDatabase['read']) =>
  (await query('SELECT pg_is_in_recovery()'))[0]![0]

await t.test('of a primary and its standby, the primary is used', async (t) => {
  const standby = await startStandby(server)
  t.teardown(() => standby.close())
  await standby.caughtUp()

  const both = open(t, onAll(url, standby, server))
  for (const query of [both.lookUp, both.asyncCommit, both.read]) t.equal(await isStandby(query), false)
  const alone = open(t, onAll(url, standby))
  await t.rejects(alone.lookUp('SELECT 1'), {
    code: 'unreachable',
    message: /reached: the server is a standby\./,
  })
  await t.rejects(alone.read('SELECT 1'), { code: 'unreachable', message: /the server is a standby/ })
  const any = open(t, `${onAll(url, standby)}?target_session_attrs=any`)
  t.equal(await isStandby(any.lookUp), true)

  await t.test('when the primary is killed, the promoted standby is used', async (t) => {
    const database = open(t, onAll(url, server, standby))
    let notifications = 0
    database.listen(() => notifications++)
    await until(() => notifications === 1, 'listening to begin')
    await database.write('CREATE TABLE kept (id integer PRIMARY KEY)')
    await standby.caughtUp()
    const queries = queryContinuously(() => database.lookUp('SELECT count(*) FROM kept'))
    await until(() => queries.answered() > 10, 'look-ups to succeed')
    await server.kill()
    await until(() => queries.failed() > 0, 'a look-up to fail')
    await standby.promote()
    await until(() => queries.answeredInARow() >= 30, 'look-ups to succeed again')
    const all = await queries.stop()
    // The timeout of a second, and much less than other statements wait.
    t.same(all.filter(({ tookMs }) => tookMs > 8_000), [])
    await database.write('INSERT INTO kept VALUES (1)')
    t.equal(await database.transaction(isStandby), false)
    await until(() => notifications === 2, 'LISTEN to begin again')
  })
})

/** A proxy that rejects LISTEN and NOTIFY as unknown commands. */
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
