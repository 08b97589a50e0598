/** Which server is asked, and how the way to it is protected. */
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import type { Test } from 'tap'
import { connect, type ConnectOptions } from '../../adapters/stores/postgres/database.ts'
import type { Database } from '../../adapters/stores/postgres/database.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'
import { askOnAndOn } from '../postgres/asking.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startGate } from '../postgres/network.ts'
import { createPrivateFolder } from '../postgres/private-folder.ts'
import { startServer } from '../postgres/server.ts'
import { startStandby } from '../postgres/standby.ts'
import { giveAway } from '../postgres/unprivileged.ts'
import { until } from '../postgres/until.ts'
import { makeCertificate, noOpenssl } from '../support/certificate.ts'

const reason = hasServer()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

/** Connects for as long as the test runs. */
function open(t: Test, address: string, options?: ConnectOptions): Database {
  const database = connect(address, options)
  t.teardown(() => database.close())
  return database
}

/** The address of a database on several servers, in this order. */
function onAll(url: string, ...servers: readonly { readonly port: number }[]): string {
  return url.replace(/@[^/]+/, `@${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`)
}

const outcomeOf = (promise: MaybePromise<unknown>) =>
  Promise.resolve(promise).then((value) => value, (error: unknown) => error)

const isStandby = async (query: Database['read']) => (await query('SELECT pg_is_in_recovery()'))[0]![0]

await t.test('of a primary and its standby, the one that takes writes is asked', async (t) => {
  const primary = await startServer()
  t.teardown(() => primary.close())
  const url = await primary.createDatabase()
  const standby = await startStandby(primary)
  t.teardown(() => standby.close())
  await standby.caughtUp()

  const both = open(t, onAll(url, standby, primary))
  for (const query of [both.lookUp, both.asyncCommit, both.read]) t.equal(await isStandby(query), false)
  const alone = open(t, onAll(url, standby))
  await t.rejects(alone.lookUp('SELECT 1'), {
    code: 'unreachable',
    message: /reached: the server is a standby\./,
  })
  await t.rejects(alone.read('SELECT 1'), { code: 'unreachable', message: /the server is a standby/ })
  const any = open(t, `${onAll(url, standby)}?target_session_attrs=any`)
  t.equal(await isStandby(any.lookUp), true)

  await t.test('and when it dies, the one that takes its place', async (t) => {
    const database = open(t, onAll(url, primary, standby))
    let heard = 0
    database.listen(() => heard++)
    await until(() => heard === 1, 'listening to begin')
    await database.write('CREATE TABLE kept (id integer PRIMARY KEY)')
    await standby.caughtUp()
    const asking = askOnAndOn(() => database.lookUp('SELECT count(*) FROM kept'))
    await until(() => asking.answered() > 10, 'look-ups to be answered')
    await primary.kill()
    await until(() => asking.failed() > 0, 'a look-up to fail')
    await standby.promote()
    await until(() => asking.answeredInARow() >= 100, 'look-ups to go on')
    const all = await asking.stop()
    // A second, and far less than what has no such bound.
    t.same(all.filter(({ tookMs }) => tookMs > 8_000), [])
    await database.write('INSERT INTO kept VALUES (1)')
    t.equal(await database.transaction(isStandby), false)
    await until(() => heard === 2, 'listening to begin anew')
  })
})

await t.test('a server that takes no writes any more is left, although it answers', async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  const url = await server.createDatabase()
  const store = await openPostgresStore(url)
  t.teardown(async () => await store.close())
  const any = await openPostgresStore(`${url}?target_session_attrs=any`)
  t.teardown(async () => await any.close())
  const database = open(t, url)
  const pids = () =>
    Promise.all(
      [database.lookUp, database.read].map(async (query) => String(await query('SELECT pg_backend_pid()'))),
    )
  let heard = 0
  database.listen(() => heard++)
  await until(() => heard === 1, 'listening to begin')
  const before = await pids()
  const revision = await store.revision()

  const takeWrites = async (does: boolean) => {
    await server.admin.unsafe(`alter system set default_transaction_read_only = ${does ? 'off' : 'on'}`)
    await server.admin`select pg_reload_conf()`
  }
  await takeWrites(false)
  // As somebody does who is about to promote another one.
  const said = async () => await outcomeOf(store.revision())
  await until(async () => (await said()) instanceof Error, 'the server to be doubted')
  t.match(await said(), { code: 'unreachable', message: /takes no writes/ })
  t.strictSame(await any.revision(), revision, 'where any server will do, it does')
  const busy = database.transaction(async (query) => {
    t.throws(() => database.reportReadOnly(), { code: 'unreachable' })
    return String(await query('SELECT pg_backend_pid()'))
  }, { readOnly: true })
  t.equal(await busy, before[1], 'what is under way may end')

  await takeWrites(true)
  await until(async () => !((await said()) instanceof Error), 'it to be found again')
  t.strictSame(await store.revision(), revision)
  const after = await pids()
  t.ok(after.every((pid) => !before.includes(pid)), 'no connection to it is used again')
  await until(() => heard === 2, 'listening to begin anew')
})

await t.test('a server that is silent costs no look-up more than its time', async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  const url = await server.createDatabase()
  const silent = await startGate(server.port)
  t.teardown(() => silent.close())
  silent.cut()
  const database = open(t, onAll(url, silent, server), { lookUpTimeoutMs: 3_000 })
  const start = performance.now()
  t.equal(String(await database.lookUp('SELECT 1')), '1')
  const found = performance.now()
  t.equal(String(await database.read('SELECT 1')), '1')
  t.equal(String(await database.asyncCommit('SELECT 1')), '1')
  t.ok(performance.now() - found < found - start, 'and the others are spared')
  await silent.restore()
})

await t.test('a server that breaks off at any step of a handshake ends no process', async (t) => {
  const folder = await createPrivateFolder('certificates', false)
  t.teardown(() => folder.remove())
  const authority = join(folder.path, 'authority.pem')
  // Large: to read it takes a while.
  await writeFile(authority, Buffer.alloc(64 * 2 ** 20))
  for (const afterMs of [0, 1, 5]) {
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

await t.test('a server is reached by a file of its machine', async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  const { pathname } = new URL(await server.createDatabase())
  const folder = dirname(server.dataFolder)
  const database = open(t, `postgres://${pathname}?host=${folder}&port=${server.port}&user=${server.user}`)
  t.equal(database.place, `${join(folder, `.s.PGSQL.${server.port}`)}${pathname}`)
  t.equal(String(await database.lookUp('SELECT $1::integer', [1])), '1')
  t.equal(String(await database.transaction((query) => query('SELECT 2'))), '2')
  const nowhere = open(t, `postgres:///x?host=${folder}&port=1`)
  await t.rejects(nowhere.read('SELECT 1'), { code: 'unreachable', message: /ENOENT/ })
})

await t.test('the way is protected as far as the address says', { skip: noOpenssl }, async (t) => {
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
  const server = await startServer({ settings: { ssl: 'on', ssl_cert_file: cert, ssl_key_file: key } })
  t.teardown(() => server.close())
  const plain = await startServer()
  t.teardown(() => plain.close())
  const named = (await server.createDatabase()).replace('127.0.0.1', 'localhost')
  const numbered = await server.createDatabase()
  const unprotected = await plain.createDatabase()

  const isEncrypted = async (address: string) =>
    (await open(t, address).lookUp('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'))[0]![0]
  const cases: readonly (readonly [address: string, encrypted: boolean | RegExp])[] = [
    [named, true],
    [`${named}?sslmode=disable`, false],
    [`${named}?sslmode=require`, true],
    [`${named}?sslmode=verify-full&sslrootcert=${cert}`, true],
    [`${numbered}?sslmode=verify-ca&sslrootcert=${cert}`, true],
    [`${numbered}?sslmode=verify-full&sslrootcert=${cert}`, /altname|IP|identity|name/i],
    [`${named}?sslmode=verify-full&sslrootcert=${other}`, /self-signed|certificate/i],
    [`${named}?sslmode=verify-full`, /self-signed|certificate/i],
    [`${named}?sslmode=verify-full&sslrootcert=${cert}.gone`, /a file named in its URL cannot be read/],
    [unprotected, false],
    [`${unprotected}?sslmode=prefer`, false],
    [`${unprotected}?sslmode=require`, /the server takes no encrypted connections/],
    [`${unprotected}?sslmode=verify-full&sslrootcert=${cert}`, /the server takes no encrypted connections/],
  ]
  for (const [address, expected] of cases) {
    if (typeof expected === 'boolean') t.equal(await isEncrypted(address), expected, address)
    else await t.rejects(isEncrypted(address), { code: 'unreachable', message: expected }, address)
  }
  const many = open(t, `${named}?sslmode=verify-full&sslrootcert=${cert}`)
  const long = 'x'.repeat(100_000)
  const rows = await Promise.all(Array.from({ length: 20 }, () => many.lookUp('SELECT $1::text', [long])))
  t.ok(rows.every(([row]) => row![0] === long))
})
