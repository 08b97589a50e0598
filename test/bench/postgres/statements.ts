import type { Sql } from 'postgres'

/** A statement that was run, and how often. */
export interface Statement {
  readonly text: string
  readonly calls: number
}

/** Forgets what was run so far. The server has pg_stat_statements. */
export async function forgetStatements(admin: Sql): Promise<void> {
  await admin`select pg_stat_statements_reset()`
}

/** What was run in a database since then, the most frequent first. */
export async function listStatements(admin: Sql, database: string): Promise<readonly Statement[]> {
  const rows = await admin`
    select query, calls::int from pg_stat_statements s join pg_database d on d.oid = s.dbid
    where d.datname = ${database} order by calls desc, query`
  return rows.map((row) => ({ text: row['query'], calls: row['calls'] }))
}

/** What a replica asks although no request waits for it, and what each of these statements has in it. */
const kinds: readonly (readonly [string, RegExp])[] = [
  ['leases of quotas', /quota_window/],
  ['heartbeats', /partner_api\.replica\b/],
  ['polls of the revision', /partner_api\.revision\b/],
  ['flushes of usage', /partner_api\.(?:usage|signup_tally)/],
  ['notes of when keys were used', /last_used_at/],
  // Whether a server that was just connected to takes writes, for one.
  ['connections and transactions', /^(?:begin|commit|rollback|set|show|listen)\b|pg_is_in_recovery/i],
]

/** @returns What kind of statement it is; `undefined` for one that a request waits for. */
export function kindOf({ text }: Statement): string | undefined {
  return kinds.find(([, sign]) => sign.test(text))?.[0]
}
