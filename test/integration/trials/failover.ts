/**
 * Kills a primary under load and promotes its synchronous standby: `node test/integration/trials/failover.ts [TIMES, 3]`. Two
 * replicas know of both servers, and find the one that takes writes by themselves. No signup that was acknowledged may
 * be lost or doubled, and no key may be accepted later than the bound after its revocation was acknowledged.
 *
 * The promoted standby must not wait for a standby of its own, or its first commit would never end; an operator's script
 * has to configure that. The killed primary stays down: restarted, it would accept writes that the new primary does not
 * have.
 */
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import type { Store } from '../../../core/ports/store.ts'
import { startServer } from '../../postgres/server.ts'
import { startStandby } from '../../postgres/standby.ts'
import { until } from '../../postgres/until.ts'
import { startLoad } from './client.ts'
import { type ReplicaProcess, startReplicas } from './replicas.ts'
import { startRevoking } from './revoking.ts'
import { checkSignups, startSigning } from './signing.ts'
import { createTenant, NO_LIMITS, PARTNER, READ } from './tenant.ts'
import { check, checkFailures, countAt, endWithin, ms } from './verdict.ts'

const times = countAt(0, 3)
const maxStalenessMs = 1000
const replicaCount = 2
/** How long the load runs before the kill and after the recovery. */
const loadMs = 3000
/**
 * The delays before the promotion: shorter and longer than replicas use their cache, and longer than any request waits.
 */
const noticeMs = [500, 3000, 8000]

endWithin(30 + times * 90)
for (let time = 1; time <= times; time++) {
  console.log(`A primary is killed under load (${time} of ${times}):`)
  await failOver(noticeMs[(time - 1) % noticeMs.length]!)
}

async function failOver(noticeMs: number): Promise<void> {
  const primary = await startServer({ durable: true })
  const url = await primary.createDatabase()
  const first = await openPostgresStore(url)
  const tenant = await createTenant(first)
  const { text: key } = await tenant.issue()
  await first.close()
  const standby = await startStandby(primary, { synchronous: true })
  await standby.caughtUp()
  const both = url.replace(/:(\d+)\//, `:$1,${standby.host}:${standby.port}/`)
  const store = await openPostgresStore(both)
  const replicas = await startReplicas(replicaCount, both, NO_LIMITS)
  try {
    const clients = replicas.map(({ client }) => client)
    const signing = startSigning(clients, key, 12)
    const revoking = startRevoking(clients, store)
    const reading = clients.map((client) => startLoad(() => client.send(READ, { key }), 2, 3))
    await pause(loadMs)

    const killedAt = performance.now()
    await primary.kill()
    await pause(noticeMs)
    await standby.promote()
    const promotedAt = performance.now()
    const isBack = ({ status, askedAt }: { status: number; askedAt: number }): boolean =>
      status === 200 && askedAt > promotedAt
    await until(() => reading.every(({ replies }) => replies.some(isBack)), 'the replicas to be back', 30_000)
    await until(
      () => signing.acknowledged.some(({ askedAt }) => askedAt > promotedAt),
      'a signup to be taken',
      30_000,
    )
    const revokedBefore = revoking.revoked.length
    await until(() => revoking.revoked.length > revokedBefore, 'a key to be revoked', 30_000)
    await pause(loadMs)

    const reads = await Promise.all(reading.map((load) => load.stop()))
    await Promise.all([signing.stop(), revoking.stop()])
    const refusals = reads.map((replies) => replies.find(({ status }) => status === 503)?.askedAt ?? Infinity)
    const returns = reads.map((replies) => replies.find(isBack)!.answeredAt - promotedAt)
    const signedAt = Math.min(
      ...signing.acknowledged.filter(({ answeredAt }) => answeredAt > promotedAt).map((one) =>
        one.answeredAt
      ),
    )
    console.log(
      `  after the kill: first 503 ${ms(Math.min(...refusals) - killedAt)}, promotion ${
        ms(promotedAt - killedAt)
      }`,
    )
    console.log(
      `  after the promotion: first 200 of each replica ${returns.map(ms).join(' and ')}, first signup ${
        ms(signedAt - promotedAt)
      }`,
    )
    await checkSignups(store, signing.acknowledged.map(({ id }) => id), signing.retries())
    await checkKeys(store, revoking)
    checkFailures(clients)
    // After an early promotion, no replica has to refuse requests.
    if (noticeMs > maxStalenessMs) checkReplicas(replicas)
    check('every replica is back within 5 s of the promotion', Math.max(...returns) <= 5000)
  } finally {
    await Promise.all(replicas.map((replica) => replica.stop()))
    await store.close()
    await standby.close()
    await primary.close()
  }
}

async function checkKeys(store: Store, revoking: ReturnType<typeof startRevoking>): Promise<void> {
  const { revoked, accepted } = revoking
  const keys = new Map(
    (await store.listKeys({ partner: PARTNER }, undefined, 1000)).map((key) => [key.id, key]),
  )
  const alive = revoked.filter(({ id }) => keys.get(id)?.state !== 'revoked').length
  const late = accepted.filter(({ afterMs }) => afterMs > maxStalenessMs).length
  const last = Math.max(-Infinity, ...accepted.map(({ afterMs }) => afterMs))
  console.log(
    `  ${revoked.length} keys revoked; the last request that one of them was accepted with had been asked ${
      ms(last)
    } after`,
  )
  check(`revoked keys stay revoked (${alive} are not)`, alive === 0)
  check(`no key is accepted later than ${maxStalenessMs} ms after (${late})`, late === 0)
}

function checkReplicas(replicas: readonly ReplicaProcess[]): void {
  for (const replica of replicas) {
    const kinds = replica.events().map(({ event }) => event)
    check(
      `the log of ${replica.name} reports that the store was unavailable and recovered`,
      kinds.includes('store_unavailable') &&
        kinds.lastIndexOf('store_recovered') > kinds.lastIndexOf('store_unavailable'),
    )
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
