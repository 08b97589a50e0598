/**
 * Cuts one of two replicas off from PostgreSQL under load, and revokes a key meanwhile:
 * `node test/integration/trials/cut-replica.ts [TIMES EACH, 3]`. Packets vanish; the server itself hangs; the replica does; packets
 * vanish for a replica that may go on for five seconds. Nothing that is revoked may pass later than the bound allows.
 */
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import type { Store } from '../../../core/ports/store.ts'
import { awaitReceipt, type ReplicaReceipt } from '../../../core/replicas.ts'
import { type Gate, startGate } from '../../postgres/network.ts'
import { type PostgresServer, startServer } from '../../postgres/server.ts'
import { until } from '../../postgres/until.ts'
import { type Load, type Reply, startLoad } from './client.ts'
import { type ReplicaProcess, startReplica } from './replicas.ts'
import { createTenant, NO_LIMITS, READ, type Tenant } from './tenant.ts'
import { check, checkFailures, countAt, endWithin, ms } from './verdict.ts'

const times = countAt(0, 3)
const maxStalenessMs = 1000
const lookUpTimeoutMs = 1000
const staleSeconds = 5
/** Allowance for a busy machine with two cores. */
const slackMs = 150

interface Scene {
  readonly server: PostgresServer
  readonly gate: Gate
  readonly store: Store
  readonly tenant: Tenant
  /** Connects to PostgreSQL through the gate. */
  readonly cut: ReplicaProcess
  readonly other: ReplicaProcess
}

endWithin(60 + times * 90)
const server = await startServer()
try {
  for (let time = 1; time <= times; time++) {
    console.log(`Packets vanish (${time} of ${times}):`)
    await withScene([], (scene) => dropPackets(scene, maxStalenessMs))
    console.log(`The server hangs (${time} of ${times}):`)
    await withScene([], hangServer)
    console.log(`The replica hangs (${time} of ${times}):`)
    await withScene([], suspendReplica)
    console.log(
      `Packets vanish for a replica that may use known keys for ${staleSeconds} s (${time} of ${times}):`,
    )
    await withScene(['--stale-if-error', String(staleSeconds)], serveStale)
  }
} finally {
  await server.close()
}

async function withScene(args: readonly string[], run: (scene: Scene) => Promise<void>): Promise<void> {
  const url = await server.createDatabase()
  const gate = await startGate(server.port)
  const store = await openPostgresStore(url)
  const settings = [...NO_LIMITS, ...args]
  const [cut, other] = await Promise.all([
    startReplica('cut', gate.url(url), settings),
    startReplica('other', url, settings),
  ])
  try {
    await run({ server, gate, store, tenant: await createTenant(store), cut, other })
    checkFailures([cut.client, other.client])
  } finally {
    await gate.restore()
    await Promise.all([cut.stop(), other.stop()])
    await store.close()
    await gate.close()
  }
}

/** @param leaseMs How long the replica that is cut off may accept known keys. */
async function dropPackets({ gate, store, tenant, cut, other }: Scene, leaseMs: number): Promise<void> {
  const [doomed, kept] = [await tenant.issue(), await tenant.issue()]
  const send = ({ client }: ReplicaProcess, key: string) => () => client.send(READ, { key })
  const loads = {
    doomedHere: startLoad(send(cut, doomed.text), 2, 2),
    keptHere: startLoad(send(cut, kept.text), 2, 2),
    keptThere: startLoad(send(other, kept.text), 2, 2),
  }
  await allWarm(Object.values(loads))
  const cutAt = performance.now()
  gate.cut()
  await tenant.keys.revoke(doomed.key.id)
  const revokedAt = performance.now()
  const receipt = await awaitReceipt(store)
  const receivedAt = performance.now()
  await until(() => loads.keptHere.replies.some(({ status }) => status === 503), 'the first 503', 30_000)
  // Long enough for every replica to notice the cut.
  await new Promise((resolve) => setTimeout(resolve, leaseMs + lookUpTimeoutMs))
  const restoredAt = performance.now()
  await gate.restore()
  await until(() => isServed(loads.keptHere, restoredAt), 'the replica to recover', 30_000)
  const backAt =
    loads.keptHere.replies.find((reply) => isServed({ replies: [reply] }, restoredAt))!.answeredAt
  const [doomedHere, keptHere, keptThere] = await Promise.all(Object.values(loads).map((load) => load.stop()))

  const accepted = (replies: readonly Reply[]) => replies.filter(({ status }) => status === 200)
  // Requests that still wait when the connection is back get the current state.
  const last = lastOf(accepted(keptHere!).filter(({ answeredAt }) => answeredAt < restoredAt))
  const doomedLast = lastOf(accepted(doomedHere!))
  const refusal = keptHere!.find(({ status }) => status === 503)!
  const waits = [...doomedHere!, ...keptHere!].map(({ askedAt, answeredAt }) => answeredAt - askedAt)
  const named = receipt?.replicas.find(({ name }) => name === 'cut')
  console.log(
    `  accepts what was asked up to ${ms(last - cutAt)} after the cut, first 503 after ${
      ms(refusal.answeredAt - cutAt)
    }, longest wait ${ms(Math.max(...waits))}, back ${ms(backAt - restoredAt)} after the restoration`,
  )
  console.log(
    `  receipt after ${ms(receivedAt - revokedAt)}: ${receipt?.replicas.map(describeReceipt).join(', ')}`,
  )
  check(`accepts nothing later than ${ms(leaseMs)} after the cut`, last - cutAt <= leaseMs)
  check(
    `accepts the revoked key no later than ${ms(leaseMs)} after its revocation (${
      ms(doomedLast - revokedAt)
    })`,
    doomedLast - revokedAt <= leaseMs,
  )
  check('never accepts the revoked key after the receipt', doomedLast <= receivedAt)
  const boundMs = leaseMs + lookUpTimeoutMs + slackMs
  check(`first 503 within ${ms(boundMs)}`, refusal.answeredAt - cutAt <= boundMs)
  check(
    `no request waits longer than ${ms(lookUpTimeoutMs + slackMs)}`,
    Math.max(...waits) <= lookUpTimeoutMs + slackMs,
  )
  check('the receipt names the replica that is cut off', named?.applied === false)
  check(
    `the receipt waits no longer than its lease of ${ms(leaseMs)}`,
    receivedAt - revokedAt <= leaseMs + slackMs,
  )
  check('recovers without intervention within 2 s', backAt - restoredAt <= 2000)
  check('the other replica answered every request', keptThere!.every(({ status }) => status === 200))
}

/** The same for both replicas, when the server hangs. */
async function hangServer({ server, tenant, cut, other }: Scene): Promise<void> {
  const { text: key } = await tenant.issue()
  const loads = [cut, other].map(({ client }) => startLoad(() => client.send(READ, { key }), 2, 2))
  await allWarm(loads)
  await server.pause()
  const cutAt = performance.now()
  await until(
    () => loads.every(({ replies }) => replies.some(({ status }) => status === 503)),
    'the first 503',
  )
  await new Promise((resolve) => setTimeout(resolve, 2 * lookUpTimeoutMs))
  const restoredAt = performance.now()
  await server.resume()
  await until(() => loads.every((load) => isServed(load, restoredAt)), 'the replicas to recover', 30_000)
  for (const load of loads) {
    const replies = await load.stop()
    const back = replies.find((reply) => isServed({ replies: [reply] }, restoredAt))!
    const last = lastOf(replies.filter(({ status, answeredAt }) => status === 200 && answeredAt < restoredAt))
    const refusal = replies.find(({ status }) => status === 503)!
    const longest = Math.max(...replies.map(({ askedAt, answeredAt }) => answeredAt - askedAt))
    console.log(
      `  accepts what was asked up to ${ms(last - cutAt)} after the pause, first 503 after ${
        ms(refusal.answeredAt - cutAt)
      }, longest wait ${ms(longest)}, back ${ms(back.answeredAt - restoredAt)} after the server is`,
    )
    check(`accepts nothing later than ${ms(maxStalenessMs)}`, last - cutAt <= maxStalenessMs)
    const boundMs = maxStalenessMs + lookUpTimeoutMs + slackMs
    check(`first 503 within ${ms(boundMs)}`, refusal.answeredAt - cutAt <= boundMs)
    check('recovers without intervention within 2 s', back.answeredAt - restoredAt <= 2000)
  }
}

/** Requests to a suspended replica get the state at the time it resumes. */
async function suspendReplica({ store, tenant, cut, other }: Scene): Promise<void> {
  const [doomed, kept] = [await tenant.issue(), await tenant.issue()]
  const sendBoth = ({ client }: ReplicaProcess) =>
    Promise.all([doomed, kept].map(({ text: key }) => client.send(READ, { key })))
  for (let count = 0; count < 10; count++) await Promise.all([sendBoth(cut), sendBoth(other)])
  cut.freeze()
  await tenant.keys.revoke(doomed.key.id)
  const receipt = await awaitReceipt(store)
  const asked = Array.from({ length: 50 }, () => sendBoth(cut))
  await new Promise((resolve) => setTimeout(resolve, 200))
  const thawedAt = performance.now()
  cut.thaw()
  const replies = await Promise.all(asked)
  const backMs = Math.max(...replies.flat().map(({ answeredAt }) => answeredAt)) - thawedAt
  console.log(
    `  receipt: ${receipt?.replicas.map(describeReceipt).join(', ')}; all answered ${
      ms(backMs)
    } after it resumes`,
  )
  check(
    'the receipt names the replica that is cut off',
    receipt?.replicas.find(({ name }) => name === 'cut')?.applied === false,
  )
  check('the revoked key is refused', replies.every(([refused]) => refused!.status === 401))
  check('the other key is accepted', replies.every(([, accepted]) => accepted!.status === 200))
}

/** With stale-if-error, the bound is longer, and responses report it. */
async function serveStale(scene: Scene): Promise<void> {
  const { gate, tenant, cut } = scene
  const [known, unknown] = [await tenant.issue(), await tenant.issue()]
  // A repeated request caches its response, and only cached responses are available during the outage.
  for (let count = 0; count < 3; count++) await cut.client.send(READ, { key: known.text })
  const [health, verified] = await Promise.all([
    cut.client.send('/health'),
    cut.client.send('/developer/verify-key', { key: known.text, body: { partner: 'acme' } }),
  ])
  check('health is ok before', JSON.parse(health.body).data.status === 'ok')
  check('verify-key reports no outage before', JSON.parse(verified.body).data.stale_if_error?.since === null)

  gate.cut()
  const cutAt = performance.now()
  await new Promise((resolve) => setTimeout(resolve, maxStalenessMs + lookUpTimeoutMs))
  const [sick, meanwhile, read, stranger] = await Promise.all([
    cut.client.send('/health'),
    cut.client.send('/developer/verify-key', { key: known.text, body: { partner: 'acme' } }),
    cut.client.send(READ, { key: known.text }),
    cut.client.send(READ, { key: unknown.text }),
  ])
  check('a known key is accepted', read.status === 200)
  check('health reports stale', JSON.parse(sick.body).data?.status === 'stale')
  check(
    'verify-key reports the start of the outage',
    typeof JSON.parse(meanwhile.body).data?.stale_if_error?.since === 'string',
  )
  check('an unknown key gets 503', stranger.status === 503)
  await until(
    async () => (await cut.client.send(READ, { key: known.text })).status === 503,
    'the end of the bound',
    2 * staleSeconds * 1000,
  )
  console.log(`  a known key is accepted for ${ms(performance.now() - cutAt)} after the cut`)
  check('health is 503 then', (await cut.client.send('/health')).status === 503)
  await gate.restore()
  await until(
    async () => (await cut.client.send(READ, { key: unknown.text })).status === 200,
    'the replica to recover',
  )
  await dropPackets(scene, maxStalenessMs + staleSeconds * 1000)
}

async function allWarm(loads: readonly Load[]): Promise<void> {
  const isWarm = ({ replies }: Load): boolean => replies.filter(({ status }) => status === 200).length >= 20
  await until(() => loads.every(isWarm), 'all replicas to know the keys')
}

/** Whether a request sent after an instant was accepted. */
function isServed({ replies }: Pick<Load, 'replies'>, since: number): boolean {
  return replies.some(({ status, askedAt }) => status === 200 && askedAt > since)
}

/** When the last of these was sent. */
function lastOf(replies: readonly Reply[]): number {
  return Math.max(-Infinity, ...replies.map(({ askedAt }) => askedAt))
}

function describeReceipt({ name, applied, ms: after }: ReplicaReceipt): string {
  return `${name} ${applied ? 'applied' : 'not confirmed'} after ${ms(after)}`
}
