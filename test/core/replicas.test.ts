/**
 * Replicas of the service on one Postgres: what a receipt promises, how a quota holds across them, what one does that
 * can't reach its store, and what becomes of schemas of other versions. `test/integration/trials` has the long forms.
 */
import postgres from 'postgres'
import { type Test, test } from 'tap'
import { LATEST } from '../../adapters/stores/postgres/migrate.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { LogEvent } from '../../core/log.ts'
import type { Store } from '../../core/ports/store.ts'
import { awaitReceipt } from '../../core/replicas/receipt.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { startReplica } from '../integration/trials/replicas.ts'
import { createTenant, NO_LIMITS, PARTNER, READ } from '../integration/trials/tenant.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startGate } from '../postgres/network.ts'
import { type PostgresServer, startServer } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'

const skip = hasServer() ?? false
const noLimits = Object.fromEntries(
  ['key', 'signup', 'verify', 'authfail'].map((name) => [name, { quota: 0, windowSeconds: 1 }]),
)

/** A replica in this process, with connections of its own. */
interface Replica {
  readonly store: Store
  readonly events: readonly LogEvent[]
  /** @returns The status. */
  ask(key: string, path?: string): Promise<number>
  /** @returns What the answer says. */
  // deno-lint-ignore no-explicit-any -- a test reads whatever members it expects
  read(key: string, path: string, body?: unknown): Promise<any>
  close(): Promise<void>
}

async function startHere(
  t: Test,
  url: string,
  name: string,
  options: PartnerApiOptions = {},
): Promise<Replica> {
  const store = await openPostgresStore(url)
  const events: LogEvent[] = []
  const log = (event: LogEvent): void => void events.push(event)
  const api = createPartnerApi({ store }, { limits: noLimits, replicaName: name, log, ...options })
  const send = (key: string, path: string, body?: unknown): Promise<Response> =>
    api.fetch(
      new Request(`http://replica.example/service${path}`, {
        headers: { 'x-service-partner-key': key, 'content-type': 'application/json' },
        ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
      }),
    )
  let isClosed = false
  async function close(): Promise<void> {
    if (isClosed) return
    isClosed = true
    await api.close()
    await store.close()
  }
  t.teardown(close)
  return {
    store,
    events,
    ask: async (key, path = READ) => (await send(key, path)).status,
    read: async (key, path, body) => (await send(key, path, body)).json(),
    close,
  }
}

/** A database with a partner in it, and its operator. */
async function createDeployment(t: Test, server: PostgresServer) {
  const url = await server.createDatabase()
  const store = await openPostgresStore(url)
  t.teardown(() => store.close())
  return { url, store, ...await createTenant(store) }
}

test('replicas on one Postgres', { skip }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())

  await t.test('a receipt says that a change binds at each of them', async (t) => {
    const { url, store, keys, issue } = await createDeployment(t, server)
    // Longer than this test takes: nobody finds out by asking in time, but for being told to.
    const [one, two] = await Promise.all([
      startHere(t, url, 'one', { maxStalenessMs: 10_000 }),
      startHere(t, url, 'two', { maxStalenessMs: 10_000 }),
    ])
    for (let round = 0; round < 5; round++) {
      const { key, text } = await issue()
      t.same(await Promise.all([one.ask(text), two.ask(text)]), [200, 200])
      await keys.revoke(key.id)
      const receipt = await awaitReceipt(store)
      t.same(receipt?.replicas.map(({ name, applied }) => ({ name, applied })).sort(byName), [
        { name: 'one', applied: true },
        { name: 'two', applied: true },
      ])
      t.same(await Promise.all([one.ask(text), two.ask(text)]), [401, 401])
    }
  })

  await t.test('one that asks for every request has applied what was changed', async (t) => {
    const { url, store, keys, issue } = await createDeployment(t, server)
    const asking = await startHere(t, url, 'asking', { maxStalenessMs: 0 })
    const { key, text } = await issue()
    t.equal(await asking.ask(text), 200)
    await keys.revoke(key.id)
    t.match(await awaitReceipt(store), { replicas: [{ name: 'asking', applied: true }] })
    t.equal(await asking.ask(text), 401)
  })

  await t.test('a receipt does not wait for one that took leave', async (t) => {
    const { url, store, issue } = await createDeployment(t, server)
    const [leaving, staying] = await Promise.all([
      startHere(t, url, 'leaving'),
      startHere(t, url, 'staying'),
    ])
    const { text } = await issue()
    t.same(await Promise.all([leaving.ask(text), staying.ask(text)]), [200, 200])
    t.equal((await awaitReceipt(store))?.replicas.length, 2)
    await leaving.close()
    await issue()
    t.same((await awaitReceipt(store))?.replicas.map(({ name }) => name), ['staying'])
  })

  await t.test('one that took leave accepts nothing any more by what it knew', async (t) => {
    const { url, issue } = await createDeployment(t, server)
    const store = await openPostgresStore(url)
    t.teardown(() => store.close())
    const api = createPartnerApi({ store }, {
      limits: noLimits,
      maxStalenessMs: 10_000,
      staleIfErrorSeconds: 60,
    })
    const { text } = await issue()
    const ask = async () =>
      (await api.fetch(
        new Request(`http://replica.example/service${READ}`, { headers: { 'x-service-partner-key': text } }),
      )).status
    t.equal(await ask(), 200)
    const closed = api.close()
    t.equal(await ask(), 503)
    await closed
    t.equal(await ask(), 503)
  })

  await t.test('a receipt names one that has stopped, once its lease is over', async (t) => {
    const { url, store, keys, issue } = await createDeployment(t, server)
    const leaseMs = 600
    const here = await startHere(t, url, 'here', { maxStalenessMs: leaseMs })
    const stopped = await startReplica('stopped', url, [...NO_LIMITS, '--max-staleness', String(leaseMs)])
    t.teardown(() => stopped.stop())
    const { key, text } = await issue()
    t.equal(await here.ask(text), 200)
    t.equal((await stopped.client.ask(READ, { key: text })).status, 200)
    stopped.freeze()
    try {
      await keys.revoke(key.id)
      const receipt = await awaitReceipt(store)
      const [quick, last] = receipt?.replicas ?? []
      t.match(quick, { name: 'here', applied: true })
      t.match(last, { name: 'stopped', applied: false })
      t.ok(last!.ms >= leaseMs, 'until then it may be answering by what it knew')
      t.ok(last!.ms < 10 * leaseMs, 'and no longer')
      t.ok(quick!.ms <= last!.ms)
    } finally {
      stopped.thaw()
    }
    t.equal((await stopped.client.ask(READ, { key: text })).status, 401, 'it has not missed it')
  })

  await t.test('a quota holds across them', async (t) => {
    const { url, issue } = await createDeployment(t, server)
    const limits = { ...noLimits, key: { quota: 600, windowSeconds: 3600 } }
    const replicas = await Promise.all(
      ['one', 'two', 'three', 'four'].map((name) => startHere(t, url, name, { limits })),
    )
    /** @returns How many were accepted of so many. */
    const spend = async (key: string, count: number, pick: (index: number) => number): Promise<number> => {
      const asked = Array.from({ length: count }, (_, index) => replicas[pick(index)]!.ask(key))
      return (await Promise.all(asked)).filter((status) => status === 200).length
    }
    const even = await issue()
    let accepted = 0
    for (let round = 0; round < 10; round++) accepted += await spend(even.text, 80, (index) => index % 4)
    t.equal(accepted, 600, 'exactly, when all of them use what they took')
    t.equal(await spend(even.text, 4, (index) => index), 0)

    const skewed = await issue()
    const first = await spend(skewed.text, 4, (index) => index)
    t.equal(first, 4)
    const rest = await spend(skewed.text, 700, () => 0)
    t.ok(first + rest <= 600, 'never more')
    t.ok(first + rest >= 588, 'the others hold 2 % of it at most')
  })

  await t.test('one that is cut off refuses, accepts nothing that is revoked, and recovers', async (t) => {
    const { url, store, keys, issue } = await createDeployment(t, server)
    const gate = await startGate(server.port)
    t.teardown(() => gate.close())
    const bounds = { maxStalenessMs: 1_500, lookUpTimeoutMs: 1_000 }
    const [cut, other] = await Promise.all([
      startHere(t, gate.url(url), 'cut', bounds),
      startHere(t, url, 'other', bounds),
    ])
    const [doomed, kept] = [await issue(), await issue()]
    t.same(await Promise.all([cut.ask(doomed.text), cut.ask(kept.text), other.ask(kept.text)]), [
      200,
      200,
      200,
    ])

    gate.cut()
    await keys.revoke(doomed.key.id)
    const receipt = await awaitReceipt(store)
    t.match(receipt?.replicas.find(({ name }) => name === 'cut'), { applied: false })
    t.match(receipt?.replicas.find(({ name }) => name === 'other'), { applied: true })
    t.equal(await cut.ask(doomed.text), 503, 'what is revoked is not accepted any more')
    t.equal(await cut.ask(kept.text), 503, 'and nothing else is')
    t.equal(await other.ask(kept.text), 200)
    t.equal(cut.events.filter(({ event }) => event === 'store_unavailable').length, 1)

    await gate.restore()
    await until(async () => await cut.ask(kept.text) === 200, 'the replica to recover')
    t.equal(await cut.ask(doomed.text), 401)
    t.equal(cut.events.filter(({ event }) => event === 'store_recovered').length, 1)
  })

  await t.test('one that may go on goes on with keys that it knows, and says so', async (t) => {
    const { url, store, keys, issue } = await createDeployment(t, server)
    const gate = await startGate(server.port)
    t.teardown(() => gate.close())
    const bounds = { maxStalenessMs: 1_000, lookUpTimeoutMs: 1_000, staleIfErrorSeconds: 5 }
    const cut = await startHere(t, gate.url(url), 'cut', bounds)
    const [known, unknown] = [await issue(), await issue()]
    const verify = async () =>
      (await cut.read(known.text, '/developer/verify-key', { partner: PARTNER })).data.stale_if_error
    const health = async () => (await cut.read('', '/health')).data?.status
    // What it has not read before it can't answer with, whoever asks; an answer that is asked for again is kept.
    for (let count = 0; count < 3; count++) t.equal(await cut.ask(known.text), 200)
    t.same(await verify(), { seconds: 5, since: null })
    t.equal(await health(), 'ok')

    gate.cut()
    const statuses = new Set<number>()
    await until(async () => {
      statuses.add(await cut.ask(known.text))
      return cut.events.some(({ event }) => event === 'store_unavailable')
    }, 'it to notice')
    t.same([...statuses], [200])
    t.equal(await cut.ask(unknown.text), 503)
    t.type((await verify()).since, 'string')
    t.equal(await health(), 'stale')

    await keys.revoke(known.key.id)
    t.match((await awaitReceipt(store))?.replicas, [{ name: 'cut', applied: false }])
    t.equal(await cut.ask(known.text), 503, 'the receipt comes when it may no longer go on')
    t.equal(await health(), undefined)
    await gate.restore()
    await until(async () => await cut.ask(unknown.text) === 200, 'the replica to recover')
    t.equal(await cut.ask(known.text), 401)
  })

  await t.test('two make one schema of an empty database', async (t) => {
    for (let time = 0; time < 5; time++) {
      const url = await server.createDatabase()
      const stores = await Promise.all([openPostgresStore(url), openPostgresStore(url)])
      t.same(stores[0].settings, stores[1].settings)
      t.same(await stores[0].revision(), await stores[1].revision())
      await Promise.all(stores.map((store) => store.close()))
      const sql = postgres(url, { max: 1 })
      t.equal((await sql`select version from partner_api.migration`).length, LATEST)
      await sql.end()
    }
  })

  await t.test('a newer schema is served for as long as it may be', async (t) => {
    const { url, issue } = await createDeployment(t, server)
    const running = await startHere(t, url, 'running', { maxStalenessMs: 100 })
    const { text } = await issue()
    t.equal(await running.ask(text), 200)
    const sql = postgres(url, { max: 1 })
    t.teardown(() => sql.end())
    await sql`insert into partner_api.migration (version, name, applied_at)
      values (${LATEST + 1}, 'of a newer program', 0)`
    const started = await openPostgresStore(url)
    t.ok(await started.revision(), 'who starts may serve it')
    await started.close()

    await sql`update partner_api.store set served_from = ${LATEST + 1}`
    await until(async () => await running.ask(text) === 503, 'the replica to refuse')
    t.match(running.events.find(({ event }) => event === 'store_unavailable'), { error: /schema version/ })
    await t.rejects(openPostgresStore(url), { code: 'newer_schema', message: /newer program/ })

    await sql`update partner_api.store set served_from = ${LATEST}`
    await until(async () => await running.ask(text) === 200, 'the replica to serve again')
  })

  await t.test('who may not migrate an empty database is refused, and leaves it empty', async (t) => {
    const url = await server.createDatabase()
    await t.rejects(openPostgresStore(url, { migrate: false }), { message: /There is no store/ })
    const sql = postgres(url, { max: 1 })
    t.teardown(() => sql.end())
    t.same(await sql`select 1 from pg_namespace where nspname = 'partner_api'`, [])
  })
})

function byName(one: { readonly name: string }, other: { readonly name: string }): number {
  return one.name < other.name ? -1 : 1
}
