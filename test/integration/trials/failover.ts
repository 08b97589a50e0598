/**
 * Kills a primary under load and promotes its synchronous standby: `node test/integration/trials/failover.ts [TIMES, 3]`. Two
 * replicas know of both servers, and find the one that takes writes by themselves. No signup that was acknowledged may
 * be lost or doubled, and no key may be accepted later than the bound after its revocation was acknowledged.
 *
 * The promoted standby must not wait for a standby of its own, or its first commit would never end; an operator's script
 * has to configure that. The killed primary stays down: restarted, it would accept writes that the new primary does not
 * have.
 */
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer } from '../../postgres/server.ts'
import { startStandby } from '../../postgres/standby.ts'
import { until } from '../../postgres/until.ts'
import { checkRevoked, checkSignups, startLoad, startRevoking, startSigning } from './load.ts'
import {
  check,
  checkFailures,
  countAt,
  endWithin,
  ms,
  READ,
  type Replica,
  type Reply,
  startScene,
} from './setup.ts'

const times = countAt(0, 3)
const maxStalenessMs = 1000
/** How long the load runs before the kill and after the recovery. */
const loadMs = 3000
/**
 * The delays before the promotion: shorter and longer than replicas use their cache, and longer than any request waits.
 */
const promotionDelays = [500, 3000, 8000]

endWithin(30 + times * 90)
for (let time = 0; time < times; time++) {
  console.log(`A primary is killed under load (${time + 1} of ${times}):`)
  await failOver(promotionDelays[time % promotionDelays.length]!)
}
process.exit()

async function failOver(delayMs: number): Promise<void> {
  const primary = await startServer({ durable: true })
  const url = await primary.createDatabase()
  const standby = await startStandby(primary, { synchronous: true })
  const scene = await startScene(url.replace(/:(\d+)\//, `:$1,${standby.host}:${standby.port}/`), 2)
  const { store, clients, key } = scene
  const signing = startSigning(clients, key, 12)
  const revoking = startRevoking(clients, store)
  const reading = clients.map((client) => startLoad(() => client.send(READ, { key }), 2, 3))
  await sleep(loadMs)

  const killedAt = performance.now()
  await primary.kill()
  await sleep(delayMs)
  await standby.promote()
  const promotedAt = performance.now()
  const isBack = ({ status, askedAt }: Reply): boolean => status === 200 && askedAt > promotedAt
  const isNew = ({ askedAt }: Pick<Reply, 'askedAt'>): boolean => askedAt > promotedAt
  await until(() => reading.every(({ replies }) => replies.some(isBack)), 'the replicas to be back', 30_000)
  await until(() => signing.acknowledged.some(isNew), 'a signup to be taken', 30_000)
  const revokedBefore = revoking.revoked.length
  await until(() => revoking.revoked.length > revokedBefore, 'a key to be revoked', 30_000)
  await sleep(loadMs)

  const reads = await Promise.all(reading.map((load) => load.stop()))
  await Promise.all([signing.stop(), revoking.stop()])
  const refusals = reads.map((replies) => replies.find(({ status }) => status === 503)?.askedAt ?? Infinity)
  const returns = reads.map((replies) => replies.find(isBack)!.answeredAt - promotedAt)
  const signedAt = Math.min(...signing.acknowledged.filter(isNew).map(({ answeredAt }) => answeredAt))
  console.log(
    `  first 503 ${ms(Math.min(...refusals) - killedAt)} and promotion ${
      ms(promotedAt - killedAt)
    } after the kill`,
  )
  console.log(
    `  after the promotion: first 200 of each replica ${returns.map(ms).join(' and ')}, first signup ${
      ms(signedAt - promotedAt)
    }`,
  )
  await checkSignups(store, signing.acknowledged.map(({ id }) => id), signing.retries())
  await checkRevoked(store, revoking)
  const last = Math.max(-Infinity, ...revoking.accepted.map(({ afterMs }) => afterMs))
  console.log(`  ${revoking.revoked.length} keys revoked, accepted up to ${ms(last)} after that`)
  check(`no key is accepted later than ${ms(maxStalenessMs)} after its revocation`, last <= maxStalenessMs)
  checkFailures(clients)
  // After an early promotion, no replica has to refuse requests.
  if (delayMs > maxStalenessMs) scene.replicas.forEach(checkLog)
  check('every replica is back within 5 s of the promotion', Math.max(...returns) <= 5000)
  await scene.close()
  await standby.close()
  await primary.close()
}

function checkLog({ name, events }: Replica): void {
  const kinds = events().map(({ event }) => event)
  check(
    `the log of ${name} reports that the store was unavailable and recovered`,
    kinds.includes('store_unavailable') &&
      kinds.lastIndexOf('store_recovered') > kinds.lastIndexOf('store_unavailable'),
  )
}
