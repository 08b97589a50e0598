/**
 * Revokes keys while they are used continuously on four replicas, and counts accepted requests that were sent after the
 * receipt: `node test/integration/trials/revoke-everywhere.ts [TRIALS, 200] [OF THEM BY COMMAND, 10]`. Once
 * with notifications, once through a pooler, where replicas poll.
 */
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import { median, quantile } from '../../bench/report.ts'
import { startPooler } from '../../postgres/pooler.ts'
import { startServer } from '../../postgres/server.ts'
import { startReplicas } from './replicas.ts'
import { type Revocation, revokeByCommand, revokeHere, watchRevocation } from './revocations.ts'
import { createTenant, NO_LIMITS } from './tenant.ts'
import { check, countAt, endWithin, ms } from './verdict.ts'

const trials = countAt(0, 200)
const byCommand = Math.min(countAt(1, 10), trials)
const replicaCount = 4
const maxStalenessMs = 1000

endWithin(120 + trials * 4)
const server = await startServer()
try {
  const pooler = await startPooler(server)
  try {
    console.log(`${trials} revocations at ${replicaCount} replicas that are notified:`)
    const response = await revokeAll(await server.createDatabase())
    check('half of the receipts come within 50 ms', median(response.map(({ receiptMs }) => receiptMs)) <= 50)
    console.log(`${trials} revocations at ${replicaCount} replicas behind a pooler, without notifications:`)
    await revokeAll(`${pooler.url(await server.createDatabase())}?pooler=transaction`)
  } finally {
    await pooler.close()
  }
} finally {
  await server.close()
}

async function revokeAll(url: string): Promise<readonly Revocation[]> {
  const store = await openPostgresStore(url)
  const replicas = await startReplicas(replicaCount, url, NO_LIMITS)
  const found: Revocation[] = []
  try {
    const tenant = await createTenant(store)
    const [here, command] = [revokeHere(store, tenant), revokeByCommand(url)]
    const everySoOften = Math.ceil(trials / byCommand)
    for (let trial = 0; trial < trials; trial++) {
      found.push(await watchRevocation(replicas, tenant, trial % everySoOften === 0 ? command : here))
    }
  } finally {
    await Promise.all(replicas.map((replica) => replica.stop()))
    await store.close()
  }
  report(found)
  return found
}

function report(found: readonly Revocation[]): void {
  const sum = (of: (one: Revocation) => number): number => found.reduce((total, one) => total + of(one), 0)
  const receipts = found.map(({ receiptMs }) => receiptMs)
  const lasts = found.map(({ lastAcceptedMs }) => lastAcceptedMs)
  console.log(`  receipts: ${spread(receipts)}`)
  console.log(`  the last accepted request was sent after the change: ${spread(lasts)}`)
  console.log(`  ${sum(({ asked }) => asked).toLocaleString('en')} requests`)
  const late = sum(({ acceptedAfterwards }) => acceptedAfterwards)
  check(`no request sent after a receipt is accepted (${late})`, late === 0)
  check(`every receipt comes within ${maxStalenessMs} ms`, Math.max(...receipts) <= maxStalenessMs)
  const wrong = sum(({ unanswered }) => unanswered)
  check(`every request gets 200 or 401 (${wrong} do not)`, wrong === 0)
}

function spread(values: readonly number[]): string {
  return `p50 ${ms(median(values))}, p99 ${ms(quantile(values, 0.99))}, last ${ms(Math.max(...values))}`
}
