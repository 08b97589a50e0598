import type { LeaseRequest, QuotaLease, QuotaStore } from '../../../core/ports/quotas.ts'
import type { Database } from './database.ts'
import { createPruner, SERVER_NOW } from './sql.ts'

/** Expired windows deleted for each one that is opened: more than one, so that they get fewer. */
const windowsPruned = 2

type WindowRow = [now: number, openedAt: number, taken: number, granted: number]

/** Each lease is an upsert of one row, so that concurrent ones see each other's. */
export function createQuotaStore(database: Database): QuotaStore {
  const pruneWindows = createPruner(database, {
    table: 'quota_window',
    key: ['policy', 'subject'],
    expiry: 'ends_at',
    batchSize: windowsPruned,
  })

  return {
    async leaseQuota(request) {
      const { policy, subject, quota, windowSeconds, wanted } = request
      const windowMs = windowSeconds * 1000
      if (wanted <= 0) {
        const [row] = await database.lookUp<WindowRow>(peekSql, [policy, subject, windowMs])
        return row === undefined ? { granted: 0, remaining: quota, resetMs: windowMs } : toLease(row, request)
      }
      const [row] = await database.asyncCommit<WindowRow>(takeSql, [policy, subject, windowMs, quota, wanted])
      const [now, , taken, granted] = row!
      if (granted === taken) pruneWindows(now)
      return toLease(row!, request)
    },
  }
}

function toLease(
  [now, openedAt, taken, granted]: WindowRow,
  { quota, windowSeconds }: LeaseRequest,
): QuotaLease {
  const windowMs = windowSeconds * 1000
  return {
    granted,
    remaining: Math.max(0, quota - taken),
    // `now` may be before the window was opened, if the statement had to wait for the row.
    resetMs: Math.min(windowMs, openedAt + windowMs - now),
  }
}

/** By the length of the request, also for an open window. One from the future was opened by another clock. */
function isOpen(openedAt: string, now: string): string {
  return `${now} - ${openedAt} BETWEEN 1 - $3::bigint AND $3::bigint - 1`
}

const peekSql = `
  SELECT now, opened_at, taken, 0
  FROM partner_api.quota_window, (SELECT ${SERVER_NOW} AS now) AS clock
  WHERE policy = $1 AND subject = $2 AND ${isOpen('opened_at', 'now')}`

const windowOpenSql = isOpen('held.opened_at', 'excluded.opened_at')
const grantedSql = `CASE WHEN ${windowOpenSql}
  THEN least($5::bigint, greatest($4::bigint - held.taken, 0)) ELSE excluded.granted END`

const takeSql = `
  INSERT INTO partner_api.quota_window AS held (policy, subject, opened_at, ends_at, taken, granted)
  SELECT $1::text, $2::text, now, now + $3::bigint, least($5::bigint, $4::bigint), least($5::bigint, $4::bigint)
  FROM (SELECT ${SERVER_NOW} AS now) AS clock
  ON CONFLICT (policy, subject) DO UPDATE SET
    opened_at = CASE WHEN ${windowOpenSql} THEN held.opened_at ELSE excluded.opened_at END,
    ends_at = CASE WHEN ${windowOpenSql} THEN held.opened_at + $3::bigint ELSE excluded.ends_at END,
    taken = CASE WHEN ${windowOpenSql} THEN held.taken ELSE 0 END + ${grantedSql},
    granted = ${grantedSql}
  RETURNING ${SERVER_NOW}, opened_at, taken, granted`
