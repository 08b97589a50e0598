/** Spending a quota at several replicas, as it is tried and measured. */
import type { Sql } from 'postgres'
import type { ReplicaProcess } from './replicas.ts'
import { READ } from './tenant.ts'

/** Which replica gets the request of this number. */
export type Spread = (number: number) => number

/** How a quota is spent. */
export interface Plan {
  readonly key: string
  readonly spread: Spread
  readonly requests: number
  /** How many ask at once. */
  readonly atOnce: number
}

/** What came of it. */
export interface Spent {
  readonly accepted: number
  readonly refused: number
  readonly ms: number
  /** How often a replica asked Postgres for a part of the quota. */
  readonly leases: number
}

/** Ways for so many requests to reach four replicas. */
export function spreadsFor(requests: number): Readonly<Record<string, Spread>> {
  return {
    'evenly': (number) => number % 4,
    '90, 5, 3 and 2 of a hundred': (number) => {
      // As in a shuffled pack: 37 and 100 have no common divisor.
      const place = number * 37 % 100
      return place < 90 ? 0 : place < 95 ? 1 : place < 98 ? 2 : 3
    },
    'all at one': () => 0,
    'at one after the other': (number) => Math.floor(number * 4 / requests),
  }
}

/** Asks as planned. The server has pg_stat_statements. */
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
      const { status } = await replicas[spread(next++)]!.client.ask(READ, { key })
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

/** How often anybody has asked for a part of a quota so far. */
async function countLeases(admin: Sql): Promise<number> {
  const [row] = await admin`
    select coalesce(sum(calls), 0)::int as calls from pg_stat_statements
    where query like '%quota_window%' and query like '%taken%' and query not like '%pg_stat_statements%'`
  return row!['calls']
}
