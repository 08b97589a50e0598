/**
 * Spends a shared quota at four replicas in different ways, and counts the accepted requests:
 * `node test/integration/trials/quota.ts [QUOTA, 600]`. What passes may be 2 % less than the quota, and nothing more; and as much
 * again in the next window.
 */
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer } from '../../postgres/server.ts'
import { startLoad } from './load.ts'
import { check, countAt, endWithin, ms, READ, startScene } from './setup.ts'

const quota = countAt(0, 600)
const windowSeconds = 60
/** Enough for every replica to use up its lease. */
const requests = 2 * quota
const least = Math.ceil(quota * 0.98)
/** The index of the replica that gets the nth request. */
const spreads: Readonly<Record<string, (number: number) => number>> = {
  'evenly': (number) => number % 4,
  '90, 5, 3 and 2 of a hundred': (number) => {
    // A permutation, because 37 and 100 are coprime.
    const place = number * 37 % 100
    return place < 90 ? 0 : place < 95 ? 1 : place < 98 ? 2 : 3
  },
  'all at one': () => 0,
  'at one after the other': (number) => Math.floor(number * 4 / requests),
}

endWithin(240)
const server = await startServer({ settings: { shared_preload_libraries: 'pg_stat_statements' } })
await server.admin`create extension pg_stat_statements`
const limits = ['--limit', `key=${quota}/${windowSeconds}`, '--limit', 'authfail=0']
const { clients, issue, close } = await startScene(await server.createDatabase(), 4, limits)
for (const [name, spread] of Object.entries(spreads)) {
  for (const atOnce of [1, 32]) {
    console.log(`${name}, ${atOnce === 1 ? 'one after the other' : `${atOnce} at once`}:`)
    await spendOnce(spread, atOnce)
  }
}
await spendContinuously({ quota: 200, windowSeconds: 2 }, 5)
await close()
await server.close()
process.exit()

async function spendOnce(spread: (number: number) => number, atOnce: number): Promise<void> {
  const { text: key } = await issue()
  const statuses: number[] = []
  const leasesBefore = await countLeases()
  const startedAt = performance.now()
  let next = 0
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (next < requests) statuses.push((await clients[spread(next++)]!.send(READ, { key })).status)
  }))
  const taken = performance.now() - startedAt
  const leases = await countLeases() - leasesBefore
  console.log(`  ${ms(taken)}, ${leases} leases requested from PostgreSQL for ${requests} requests`)
  checkStatuses(statuses, least, quota)
  check(`all requests are in one window of ${windowSeconds} s`, taken < windowSeconds * 1000)
}

/** Starts with a new window and ends within a later one. */
async function spendContinuously(
  limit: { readonly quota: number; readonly windowSeconds: number },
  windows: number,
): Promise<void> {
  const { text: key } = await issue({ limits: { key: limit } })
  const loads = clients.map((client) => startLoad(() => client.send(READ, { key }), 4, 2))
  await sleep((windows - 0.5) * limit.windowSeconds * 1000)
  const replies = (await Promise.all(loads.map((load) => load.stop()))).flat()
  const most = windows * limit.quota
  console.log(`continuously, through ${windows} windows of ${limit.quota} in ${limit.windowSeconds} s:`)
  checkStatuses(replies.map(({ status }) => status), Math.ceil(most * 0.98), most)
}

function checkStatuses(statuses: readonly number[], least: number, most: number): void {
  const [accepted, refused] = [200, 429].map((code) => statuses.filter((status) => status === code).length)
  check(`${least} to ${most} requests pass (${accepted})`, accepted! >= least && accepted! <= most)
  check('all other requests are refused with 429', accepted! + refused! === statuses.length)
}

/** The number of leases that replicas have requested so far. */
async function countLeases(): Promise<number> {
  const [row] = await server.admin`
    select coalesce(sum(calls), 0)::int as calls from pg_stat_statements
    where query like '%quota_window%' and query like '%taken%' and query not like '%pg_stat_statements%'`
  return row!['calls']
}
