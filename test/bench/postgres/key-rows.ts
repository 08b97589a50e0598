import postgres from 'postgres'
import { KEYS } from '../../../adapters/stores/tables.ts'
import { listText } from '../../../adapters/stores/postgres/sql.ts'
import type { Key } from '../../../core/model.ts'
import { PARTNER } from '../data/profiles.ts'

const chunk = 10_000

/** Gives the partner of the bench so many keys, without a word in the audit trail. @returns Their ids. */
export async function addKeys(url: string, count: number): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, (_, number) => `bench${number.toString(36).padStart(7, '0')}`)
  const sql = postgres(url, { max: 1 })
  const integers = new Set(['scopes', 'created_at', 'expires_at', 'retires_at', 'last_used_at', 'retired'])
  const columns = KEYS.columns.map((column, index) =>
    `$${index + 1}::${integers.has(column) ? 'bigint' : 'text'}[]`
  )
  try {
    for (let start = 0; start < count; start += chunk) {
      const rows = ids.slice(start, start + chunk).map((id) => KEYS.values(keyFor(id)))
      await sql.unsafe(
        `INSERT INTO partner_api.partner_key (${KEYS.columns}) SELECT * FROM unnest(${columns})`,
        KEYS.columns.map((_, column) => listText(rows.map((row) => row[column]!))),
      )
    }
    await sql`ANALYZE partner_api.partner_key`
  } finally {
    await sql.end()
  }
  return ids
}

function keyFor(id: string): Key {
  return {
    id,
    partner: PARTNER,
    name: 'WordPress plugin',
    environment: 'live',
    digest: '0'.repeat(64),
    hint: id.slice(-4),
    state: 'active',
    scopes: ['read:profiles'],
    allow: [],
    limits: {},
    createdAt: 0,
    expiresAt: undefined,
    retiresAt: undefined,
    successorId: undefined,
    lastUsedAt: undefined,
  }
}
