/** Spends a quota at several replicas, for trials and benchmarks. */
import type { Sql } from 'postgres'
import type { ReplicaProcess } from './replicas.ts'
import { READ } from './tenant.ts'

/** The index of the replica that gets the nth request. */
export type Spread = (number: number) => number

/** How a quota is spent. */
export interface Plan {
  readonly key: string
  readonly spread: Spread
  readonly requests: number
  /** The number of concurrent clients. */
  readonly atOnce: number
}

/** The outcome. */
export interface Spent {
  readonly accepted: number
  readonly refused: number
  readonly ms: number
  /** How many leases the replicas requested from PostgreSQL. */
  readonly leases: number
}

/** Distributions of `requests` over four replicas. */
export function spreadsFor(requests: number): Readonly<Record<string, Spread>> {
  return {
    'evenly': (number) => number % 4,
    '90, 5, 3 and 2 of a hundred': (number) => {
      // A permutation, because 37 and 100 are coprime.
      const place = number * 37 % 100
      return place < 90 ? 0 : place < 95 ? 1 : place < 98 ? 2 : 3
    },
    'all at one': () => 0,
    'at one after the other': (number) => Math.floor(number * 4 / requests),
  }
}

/** Sends the planned requests. Needs pg_stat_statements. */
export async function spendQuota(
  replicas: readonly ReplicaProcess[],
  admin: Sql,
  { key, spread, requests, atOnce }: Plan,
): Promise<Spent> {
  const statuses = new Map<number, number>()
  const leasesBefore = await countLeases(admin)
  const startedAt = performance.now()
  let next = 0
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (next < requests) {
      const { status } = await replicas[spread(next++)]!.client.send(READ, { key })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }))
  return {
    accepted: statuses.get(200) ?? 0,
    refused: statuses.get(429) ?? 0,
    ms: performance.now() - startedAt,
    leases: await countLeases(admin) - leasesBefore,
  }
}

/** The number of leases requested so far. */
async function countLeases(admin: Sql): Promise<number> {
  const [row] = await admin`
    select coalesce(sum(calls), 0)::int as calls from pg_stat_statements
    where query like '%quota_window%' and query like '%taken%' and query not like '%pg_stat_statements%'`
  return row!['calls']
}
