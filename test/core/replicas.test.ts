/**
 * Replicas on one PostgreSQL: receipts, and replicas that are cut off from the store.
 * `test/integration/trials` has longer versions.
 */
import { type Test, test } from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { LogEvent } from '../../core/log.ts'
import type { ReplicaProgress } from '../../core/ports/replicas.ts'
import { awaitReceipt } from '../../core/replicas.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { createPartner, PARTNER } from '../support/partner.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startGate } from '../postgres/network.ts'
import { type Databases, useServer } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'

test('a receipt lists which replicas have applied the change', async (t) => {
  const revision = { facts: '2', content: '1' }
  /** The receipt for replicas with these successive states. */
  const receiptOf = async (...lists: readonly (readonly Partial<ReplicaProgress>[])[]) => {
    let reads = 0
    const progress = () =>
      lists[Math.min(reads++, lists.length - 1)]!.map((replica) => ({
        id: replica.name!,
        name: '',
        applied: false,
        leaseMs: 60_000,
        skewMs: 0,
        ...replica,
      }))
    const register = () => t.fail('registered') as never
    const receipt = await awaitReceipt({ revision: () => revision, replicas: { progress, register } })
    return receipt.replicas.map(({ name, applied }) => [name, applied])
  }
  const slow = { name: 'slow', applied: true }
  t.same(await receiptOf([{ name: 'killed' }, { name: 'slow' }], [{ name: 'slow' }], [slow]), [
    ['killed', false],
    ['slow', true],
  ], 'it does not wait for a deregistered replica')
  t.same(
    await receiptOf([{ name: 'slow' }], [{ name: 'new' }, slow]),
    [['slow', true]],
    'it does not wait for a new replica',
  )
  t.same(await receiptOf([{ name: 'asking', leaseMs: 0 }]), [['asking', true]])
  const empty = { progress: () => [], register: () => t.fail('registered') as never }
  const { ms } = await awaitReceipt({ revision: () => revision, replicas: empty }, performance.now() - 5_000)
  t.ok(ms >= 5_000, `${ms} ms since the commit`)
})

const off = { quota: 0, windowSeconds: 1 }
const noLimits = { key: off, signup: off, verify: off, authfail: off }

/** A replica in this process, with its own connections. */
interface Replica {
  readonly events: readonly LogEvent[]
  /** @returns The status. */
  statusFor(key: string): Promise<number>
  // deno-lint-ignore no-explicit-any -- a test reads whatever members it expects
  read(key: string, path: string, body?: unknown): Promise<any>
  close(): Promise<void>
}

async function startReplica(
  t: Test,
  url: string,
  name: string,
  options: PartnerApiOptions = {},
): Promise<Replica> {
  const store = await openPostgresStore(url)
  t.teardown(() => store.close())
  const events: LogEvent[] = []
  const log = (event: LogEvent): void => void events.push(event)
  const api = createPartnerApi({ store }, { limits: noLimits, replicaName: name, log, ...options })
  t.teardown(() => api.close())
  const send = (key: string, path: string, body?: unknown): Promise<Response> =>
    api.fetch(
      new Request(`http://replica.example/service${path}`, {
        headers: { 'x-service-partner-key': key, 'content-type': 'application/json' },
        ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
      }),
    )
  return {
    events,
    statusFor: async (key) => (await send(key, `/public/plans?partner=${PARTNER}`)).status,
    read: async (key, path, body) => (await send(key, path, body)).json(),
    close: () => api.close(),
  }
}

/** A database with a partner, and its operator. */
async function createDeployment(t: Test, server: Databases) {
  const url = await server.createDatabase()
  const store = await openPostgresStore(url)
  t.teardown(() => store.close())
  const receipt = async () =>
    (await awaitReceipt(store)).replicas.map(({ name, applied }) => [name, applied]).sort()
  return { url, store, receipt, ...await createPartner(store) }
}

test('replicas on one Postgres', { skip: hasServer() ?? false }, async (t) => {
  const server = await useServer()
  t.teardown(() => server.close())
  await t.test('every replica has applied a change when its receipt arrives', (t) => receipts(t, server))
  await t.test('replicas that are cut off refuse keys, or use known ones with stale-if-error', (t) =>
    cutOff(t, server))
})

async function receipts(t: Test, server: Databases): Promise<void> {
  const { url, receipt, keys, issue } = await createDeployment(t, server)
  // Longer than this test takes: only notifications can apply a change.
  const slow = { maxStalenessMs: 10_000 }
  const replicas = await Promise.all([
    startReplica(t, url, 'asking', { maxStalenessMs: 0 }),
    startReplica(t, url, 'leaving', { ...slow, staleIfErrorSeconds: 60 }),
    startReplica(t, url, 'staying', slow),
  ])
  const statusFor = (key: string) => Promise.all(replicas.map((replica) => replica.statusFor(key)))
  for (let round = 0; round < 2; round++) {
    const { key, text } = await issue()
    t.same(await statusFor(text), [200, 200, 200])
    await keys.revoke(key.id)
    t.same(await receipt(), [['asking', true], ['leaving', true], ['staying', true]])
    t.same(await statusFor(text), [401, 401, 401])
  }
  const { text } = await issue()
  t.same(await statusFor(text), [200, 200, 200])
  const closed = replicas[1]!.close()
  t.equal(await replicas[1]!.statusFor(text), 503, 'a closed replica accepts no key')
  await closed
  t.equal(await replicas[1]!.statusFor(text), 503)
  await issue()
  t.same(await receipt(), [['asking', true], ['staying', true]])
}

/** One of the replicas has stale-if-error. */
async function cutOff(t: Test, server: Databases): Promise<void> {
  const { url, store, keys, issue } = await createDeployment(t, server)
  const gate = await startGate(server.port)
  t.teardown(() => gate.close())
  const bounds = { maxStalenessMs: 1_000, storeTimeoutMs: 5_000 }
  const [strict, lenient, connected] = await Promise.all([
    startReplica(t, gate.url(url), 'strict', bounds),
    startReplica(t, gate.url(url), 'lenient', { ...bounds, staleIfErrorSeconds: 4 }),
    startReplica(t, url, 'connected', bounds),
  ])
  const all = [strict, lenient, connected]
  const count = (replica: Replica, wanted: string) =>
    replica.events.filter(({ event }) => event === wanted).length
  const doomed = await issue()
  const kept = await issue()
  const unknown = await issue()
  const verify = async () =>
    (await lenient.read(doomed.text, '/developer/verify-key', { partner: PARTNER })).data.stale_if_error
  const health = async () => (await lenient.read('', '/health')).data?.status
  for (const { text } of [doomed, kept]) {
    // The second request caches a response, the only source of `lenient` while it is cut off.
    for (let time = 0; time < 3; time++) {
      t.same(await Promise.all(all.map(({ statusFor }) => statusFor(text))), [200, 200, 200])
    }
  }
  t.same([await verify(), await health()], [{ seconds: 4, since: null }, 'ok'])

  gate.cut()
  const statuses = new Set<number>()
  await until(async () => {
    statuses.add(await lenient.statusFor(doomed.text))
    return count(lenient, 'store_unavailable') > 0
  }, 'the outage to be detected')
  t.same([...statuses], [200])
  const [{ since }, state, status] = await Promise.all([verify(), health(), lenient.statusFor(unknown.text)])
  t.same([typeof since, state, status], ['string', 'stale', 503])

  await keys.revoke(doomed.key.id)
  const { replicas } = await awaitReceipt(store)
  const applied = new Map(replicas.map(({ name, applied }) => [name, applied]))
  t.same(applied, new Map([['connected', true], ['strict', false], ['lenient', false]]))
  const outcomes = [strict, lenient].flatMap((
    { statusFor },
  ) => [statusFor(doomed.text), statusFor(kept.text)])
  t.same(await Promise.all(outcomes), [503, 503, 503, 503], 'no key is accepted after the receipt')
  for (const replica of [strict, lenient]) t.equal(count(replica, 'store_unavailable'), 1)
  t.same([await connected.statusFor(doomed.text), await connected.statusFor(kept.text)], [401, 200])
  t.equal(await health(), undefined)

  await gate.restore()
  for (const replica of [strict, lenient]) {
    await until(async () => await replica.statusFor(kept.text) === 200, 'the replica to recover')
    t.equal(await replica.statusFor(doomed.text), 401)
    t.equal(count(replica, 'store_recovered'), 1)
  }
}
