/** What replicas owe each other: that a change binds everywhere, and that they do not exceed a quota together. */
import type { Sql } from 'postgres'
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import { spendQuota, spreadsFor } from '../../integration/trials/quotas.ts'
import { startReplicas } from '../../integration/trials/replicas.ts'
import { revokeHere, watchRevocation } from '../../integration/trials/revocations.ts'
import { createTenant, NO_LIMITS } from '../../integration/trials/tenant.ts'
import { figure, median } from '../figures.ts'
import type { Row } from '../report.ts'

const replicaCount = 4
const revocations = 30
const quota = 600
const requests = 2 * quota

/** @param url Of an empty database. */
export async function receiptRow(url: string): Promise<Row> {
  const store = await openPostgresStore(url)
  const replicas = await startReplicas(replicaCount, url, NO_LIMITS)
  const receipts: number[] = []
  let late = 0
  try {
    const tenant = await createTenant(store)
    const revoke = revokeHere(store, tenant)
    for (let count = 0; count < revocations; count++) {
      const { receiptMs, acceptedAfterwards } = await watchRevocation(replicas, tenant, revoke)
      receipts.push(receiptMs)
      late += acceptedAfterwards
    }
  } finally {
    await Promise.all(replicas.map((replica) => replica.stop()))
    await store.close()
  }
  return {
    part: 'postgres',
    what: `receipt of a revocation at ${replicaCount} replicas, ${revocations} times`,
    ours: `p50 ${figure(median(receipts), 'ms')}, last ${figure(Math.max(...receipts), 'ms')}`,
    against: `accepted afterwards: ${late}`,
    target: 'p50 ≤ 50 ms, 0',
    met: median(receipts) <= 50 && late === 0,
  }
}

/** @param url Of an empty database. @param admin Of a server with pg_stat_statements. */
export async function quotaRows(url: string, admin: Sql): Promise<Row[]> {
  const store = await openPostgresStore(url)
  const limits = ['--limit', `key=${quota}/60`, '--limit', 'authfail=0']
  const replicas = await startReplicas(replicaCount, url, limits)
  const rows: Row[] = []
  try {
    const { issue } = await createTenant(store)
    for (const [name, spread] of Object.entries(spreadsFor(requests))) {
      const { text: key } = await issue()
      const plan = { key, spread, requests, atOnce: 16 }
      const { accepted, leases } = await spendQuota(replicas, admin, plan)
      rows.push({
        part: 'postgres',
        what: `quota of ${quota} at ${replicaCount} replicas, asked ${name}`,
        ours: `${accepted} accepted`,
        against: `${leases} leases for ${requests} requests`,
        target: '588–600',
        met: accepted >= quota * 0.98 && accepted <= quota,
      })
    }
  } finally {
    await Promise.all(replicas.map((replica) => replica.stop()))
    await store.close()
  }
  return rows
}
