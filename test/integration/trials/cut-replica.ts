/**
 * Cuts one of two replicas off from PostgreSQL under load, and revokes a key meanwhile:
 * `node test/integration/trials/cut-replica.ts [TIMES EACH, 3]`. Packets vanish; the server itself hangs; the replica does; packets
 * vanish for a replica that may go on for five seconds. Nothing that is revoked may pass later than the bound allows.
 */
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { awaitReceipt } from '../../../core/replicas.ts'
import { startGate } from '../../postgres/network.ts'
import { startServer } from '../../postgres/server.ts'
import { until } from '../../postgres/until.ts'
import { createPartner } from '../../support/partner.ts'
import { type Load, startLoad } from './load.ts'
import {
  check,
  checkFailures,
  countAt,
  endWithin,
  ms,
  NO_LIMITS,
  openStore,
  READ,
  type Replica,
  type Reply,
  startReplica,
} from './setup.ts'

const times = countAt(0, 3)
const maxStalenessMs = 1000
const lookUpTimeoutMs = 1000
const staleSeconds = 5
/** Allowance for a busy machine with two cores. */
const slackMs = 150

type Scene = Awaited<ReturnType<typeof openScene>>

endWithin(60 + times * 90)
const server = await startServer()
for (let time = 0; time < times; time++) {
  await inScene('Packets vanish', [], (scene) => dropPackets(scene, maxStalenessMs))
  await inScene('The server hangs', [], hangServer)
  await inScene('The replica hangs', [], suspendReplica)
  const stale = ['--stale-if-error', `${staleSeconds}`]
  const title = `Packets vanish for a replica that may use known keys for ${staleSeconds} s`
  await inScene(title, stale, (scene) => dropPackets(scene, maxStalenessMs + staleSeconds * 1000))
}
await server.close()
process.exit()

/** @param args Options of `serve`. */
async function openScene(args: readonly string[]) {
  const url = await server.createDatabase()
  const gate = await startGate(server.port)
  const store = await openStore(url)
  const [cut, other] = await Promise.all([
    startReplica('cut', gate.url(url), [...NO_LIMITS, ...args]),
    startReplica('other', url, [...NO_LIMITS, ...args]),
  ])
  const { keys, issue } = await createPartner(store)
  /** @returns A load on a replica that knows the key and the response: to read data, a request may wait for longer. */
  async function use({ client }: Replica, key: string): Promise<Load> {
    for (let sent = 0; sent < 20; sent++) await client.send(READ, { key })
    return startLoad(() => client.send(READ, { key }), 2, 2)
  }
  return { gate, store, keys, issue, cut, other, use }
}

async function inScene(
  title: string,
  args: readonly string[],
  run: (scene: Scene) => Promise<void>,
): Promise<void> {
  console.log(`${title}:`)
  const scene = await openScene(args)
  const { gate, store, cut, other } = scene
  await run(scene)
  checkFailures([cut.client, other.client])
  await gate.restore()
  await Promise.all([cut.stop(), other.stop()])
  await store.close()
  await gate.close()
}

/** @param leaseMs How long the replica that is cut off may accept known keys. */
async function dropPackets(
  { gate, store, keys, issue, cut, other, use }: Scene,
  leaseMs: number,
): Promise<void> {
  const doomed = await issue()
  const kept = await issue()
  const [doomedHere, keptHere, keptThere] = await Promise.all([
    use(cut, doomed.text),
    use(cut, kept.text),
    use(other, kept.text),
  ])
  const cutAt = performance.now()
  gate.cut()
  await keys.revoke(doomed.key.id)
  const revokedAt = performance.now()
  const receipt = await awaitReceipt(store)
  const receivedAt = performance.now()
  await until(() => isRefused(keptHere), 'the first 503', 30_000)
  // Long enough for every replica to notice the cut.
  await sleep(leaseMs + lookUpTimeoutMs)
  const restoredAt = performance.now()
  await gate.restore()
  await until(() => isServed(keptHere, restoredAt), 'the replica to recover', 30_000)
  const longest = await checkOutage(keptHere, { cutAt, restoredAt, leaseMs })
  const doomedReplies = await doomedHere.stop()
  const others = await keptThere.stop()
  const doomedLast = lastAccepted(doomedReplies)
  const names = receipt.replicas.map(({ name, applied }) =>
    `${name} ${applied ? 'applied' : 'not confirmed'}`
  )
  console.log(
    `  receipt after ${ms(receivedAt - revokedAt)}: ${names}; the revoked key was accepted for ${
      ms(doomedLast - revokedAt)
    }`,
  )
  const isCutNamed = receipt.replicas.some(({ name, applied }) => name === 'cut' && !applied)
  check(
    `accepts the revoked key no later than ${ms(leaseMs)} after its revocation`,
    doomedLast - revokedAt <= leaseMs,
  )
  checkWaits(longest, longestWait(doomedReplies))
  check('never accepts the revoked key after the receipt', doomedLast <= receivedAt)
  check('the receipt names the replica that is cut off', isCutNamed === true)
  check(
    `the receipt waits no longer than its lease of ${ms(leaseMs)}`,
    receivedAt - revokedAt <= leaseMs + slackMs,
  )
  check('the other replica answered every request', others.every(({ status }) => status === 200))
}

/** The same for both replicas, when the server hangs. */
async function hangServer({ issue, cut, other, use }: Scene): Promise<void> {
  const { text: key } = await issue()
  const loads = await Promise.all([use(cut, key), use(other, key)])
  await server.pause()
  const cutAt = performance.now()
  await until(() => loads.every(isRefused), 'the first 503')
  await sleep(2 * lookUpTimeoutMs)
  const restoredAt = performance.now()
  await server.resume()
  await until(() => loads.every((load) => isServed(load, restoredAt)), 'the replicas to recover', 30_000)
  for (const load of loads) {
    checkWaits(await checkOutage(load, { cutAt, restoredAt, leaseMs: maxStalenessMs }))
  }
}

/** Stops a load, and checks how its replica went through an outage and back. @returns The longest wait. */
async function checkOutage(
  load: Load,
  { cutAt, restoredAt, leaseMs }: {
    readonly cutAt: number
    readonly restoredAt: number
    readonly leaseMs: number
  },
): Promise<number> {
  const replies = await load.stop()
  // Requests that still wait when the connection is back get the current state.
  const last = lastAccepted(replies.filter(({ answeredAt }) => answeredAt < restoredAt)) - cutAt
  const refused = replies.find(({ status }) => status === 503)!.answeredAt - cutAt
  const longest = longestWait(replies)
  const back = replies.find((reply) => isServed({ replies: [reply] }, restoredAt))!.answeredAt - restoredAt
  console.log(
    `  accepts what was asked up to ${ms(last)} after the cut, first 503 after ${ms(refused)}, longest wait ${
      ms(longest)
    }, back ${ms(back)} after the restoration`,
  )
  const boundMs = leaseMs + lookUpTimeoutMs + slackMs
  check(`accepts nothing later than ${ms(leaseMs)} after the cut`, last <= leaseMs)
  check(`first 503 within ${ms(boundMs)}`, refused <= boundMs)
  check('recovers without intervention within 2 s', back <= 2000)
  return longest
}

/** Requests to a suspended replica get the state at the time it resumes. */
async function suspendReplica({ store, keys, issue, cut, use }: Scene): Promise<void> {
  const doomed = await issue()
  const kept = await issue()
  const sendBoth = () => Promise.all([doomed, kept].map(({ text: key }) => cut.client.send(READ, { key })))
  for (const { text } of [doomed, kept]) await (await use(cut, text)).stop()
  cut.child.kill('SIGSTOP')
  await keys.revoke(doomed.key.id)
  const receipt = await awaitReceipt(store)
  const asked = Array.from({ length: 50 }, sendBoth)
  await sleep(200)
  cut.child.kill('SIGCONT')
  const replies = await Promise.all(asked)
  check(
    'the receipt names the replica that is suspended',
    receipt.replicas.find(({ name }) => name === 'cut')?.applied === false,
  )
  check('the revoked key is refused', replies.every(([refused]) => refused!.status === 401))
  check('the other key is accepted', replies.every(([, accepted]) => accepted!.status === 200))
}

function isRefused({ replies }: Load): boolean {
  return replies.some(({ status }) => status === 503)
}

/** Whether a request sent after an instant was accepted. */
function isServed({ replies }: Pick<Load, 'replies'>, since: number): boolean {
  return replies.some(({ status, askedAt }) => status === 200 && askedAt > since)
}

function checkWaits(...waits: readonly number[]): void {
  const longest = Math.max(...waits)
  check(
    `no request waits longer than ${ms(lookUpTimeoutMs + slackMs)} (${ms(longest)})`,
    longest <= lookUpTimeoutMs + slackMs,
  )
}

function longestWait(replies: readonly Reply[]): number {
  return Math.max(...replies.map(({ askedAt, answeredAt }) => answeredAt - askedAt))
}

/** When the last accepted request was sent. */
function lastAccepted(replies: readonly Reply[]): number {
  return Math.max(-Infinity, ...replies.filter(({ status }) => status === 200).map(({ askedAt }) => askedAt))
}
