/**
 * Spends a shared quota at four replicas in different ways, and counts the accepted requests:
 * `node test/integration/trials/quota.ts [QUOTA, 600]`. What passes may be 2 % less than the quota, and nothing more; and as much
 * again in the next window.
 */
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import { createKeyAdministration } from '../../../core/admin/keys.ts'
import type { Store } from '../../../core/ports/store.ts'
import { startServer } from '../../postgres/server.ts'
import { startLoad } from './client.ts'
import { spendQuota, type Spent, spreadsFor } from './quotas.ts'
import { type ReplicaProcess, startReplicas } from './replicas.ts'
import { createTenant, PARTNER, READ } from './tenant.ts'
import { check, countAt, endWithin, ms } from './verdict.ts'

const quota = countAt(0, 600)
const windowSeconds = 60
/** Enough for every replica to use up its lease. */
const requests = 2 * quota
const least = Math.ceil(quota * 0.98)
/** For consecutive windows: quota, seconds, and number of windows. */
const short = { quota: 200, windowSeconds: 2, windows: 5 }

endWithin(240)
const server = await startServer({ settings: { shared_preload_libraries: 'pg_stat_statements' } })
try {
  await server.admin`create extension pg_stat_statements`
  const url = await server.createDatabase()
  const store = await openPostgresStore(url)
  const limits = ['--limit', `key=${quota}/${windowSeconds}`, '--limit', 'authfail=0']
  const replicas = await startReplicas(4, url, limits)
  try {
    const { issue } = await createTenant(store)
    for (const [name, spread] of Object.entries(spreadsFor(requests))) {
      for (const atOnce of [1, 32]) {
        const { text: key } = await issue()
        const spent = await spendQuota(replicas, server.admin, { key, spread, requests, atOnce })
        report(`${name}, ${atOnce === 1 ? 'one after the other' : `${atOnce} at once`}`, spent)
      }
    }
    await requestContinuously(replicas, await issueShort(store))
  } finally {
    await Promise.all(replicas.map((replica) => replica.stop()))
    await store.close()
  }
} finally {
  await server.close()
}

function report(name: string, { accepted, refused, ms: taken, leases }: Spent): void {
  const free = 100 * (1 - leases / requests)
  console.log(
    `${name}: ${accepted} of ${requests} accepted in ${ms(taken)}, ${leases} questions to Postgres, ${
      free.toFixed(1)
    } % of the requests cost none`,
  )
  check(`${least} to ${quota} requests pass`, accepted >= least && accepted <= quota)
  check('all other requests are refused with 429', accepted + refused === requests)
  check(`all requests are in one window of ${windowSeconds} s`, taken < windowSeconds * 1000)
}

/** Issues a key with its own quota. */
async function issueShort(store: Store): Promise<string> {
  const keys = createKeyAdministration(store, { actor: 'trial' })
  const { quota, windowSeconds } = short
  const limits = { key: { quota, windowSeconds } }
  return (await keys.issue({ partner: PARTNER, name: 'short', environment: 'live', limits })).text
}

/** Starts with a new window and ends within a later one. */
async function requestContinuously(replicas: readonly ReplicaProcess[], key: string): Promise<void> {
  const { quota, windowSeconds, windows } = short
  const send = ({ client }: ReplicaProcess) => () => client.send(READ, { key })
  const loads = replicas.map((replica) => startLoad(send(replica), 4, 2))
  await new Promise((resolve) => setTimeout(resolve, (windows - 0.5) * windowSeconds * 1000))
  const replies = (await Promise.all(loads.map((load) => load.stop()))).flat()
  const accepted = replies.filter(({ status }) => status === 200).length
  const refused = replies.filter(({ status }) => status === 429).length
  console.log(
    `continuously, through ${windows} windows of ${quota} in ${windowSeconds} s: ${accepted} of ${replies.length} accepted`,
  )
  check(
    `from ${Math.ceil(windows * quota * 0.98)} to ${windows * quota} pass`,
    accepted >= windows * quota * 0.98 && accepted <= windows * quota,
  )
  check('all other requests are refused with 429', accepted + refused === replies.length)
}
