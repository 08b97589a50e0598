import type { LeaseRequest, QuotaLease, QuotaStore } from '../../../core/ports/quotas.ts'
import type { ServersFile } from './servers-file.ts'

/** After so many windows that were opened, as many expired ones and more are deleted. */
const pruning = { every: 64, batchSize: 128 }

type WindowRow = [openedAt: number, taken: number, granted: number]

/** Each lease is an upsert of one row, which reaches the disk later. */
export function createQuotaStore(file: ServersFile): QuotaStore {
  let opened = 0
  return {
    leaseQuota: (request) =>
      file.use((prepare) => {
        const { policy, subject, quota, windowSeconds, wanted } = request
        const windowMs = windowSeconds * 1000
        const now = Date.now()
        if (wanted <= 0) {
          const row = prepare<WindowRow>(peekSql).get(policy, subject, windowMs, now)
          return row === undefined
            ? { granted: 0, remaining: quota, resetMs: windowMs }
            : toLease(row, request, now)
        }
        const row = prepare<WindowRow>(takeSql).get(policy, subject, windowMs, now, quota, wanted)!
        const [, taken, granted] = row
        if (granted === taken && opened++ % pruning.every === 0) prepare(pruneSql).run(now)
        return toLease(row, request, now)
      }),
  }
}

function toLease([openedAt, taken, granted]: WindowRow, request: LeaseRequest, now: number): QuotaLease {
  const windowMs = request.windowSeconds * 1000
  return {
    granted,
    remaining: Math.max(0, request.quota - taken),
    // `now` may be before the window was opened, if the statement had to wait for the lock.
    resetMs: Math.min(windowMs, openedAt + windowMs - now),
  }
}

/** By the length of the request, also for an open window. One from the future was opened before the clock was set. */
const isOpen = '?4 - opened_at BETWEEN 1 - ?3 AND ?3 - 1'
const granted = `CASE WHEN ${isOpen} THEN min(?6, max(?5 - taken, 0)) ELSE excluded.granted END`

const peekSql = `
  SELECT opened_at, taken, 0 FROM quota_window WHERE policy = ?1 AND subject = ?2 AND ${isOpen}`

const takeSql = `
  INSERT INTO quota_window (policy, subject, opened_at, ends_at, taken, granted)
  VALUES (?1, ?2, ?4, ?4 + ?3, min(?5, ?6), min(?5, ?6))
  ON CONFLICT (policy, subject) DO UPDATE SET
    opened_at = CASE WHEN ${isOpen} THEN opened_at ELSE excluded.opened_at END,
    ends_at = CASE WHEN ${isOpen} THEN opened_at + ?3 ELSE excluded.ends_at END,
    taken = CASE WHEN ${isOpen} THEN taken ELSE 0 END + ${granted},
    granted = ${granted}
  RETURNING opened_at, taken, granted`

const pruneSql = `
  DELETE FROM quota_window WHERE (policy, subject) IN (
    SELECT policy, subject FROM quota_window WHERE ends_at <= ?1 ORDER BY ends_at LIMIT ${pruning.batchSize}
  )`
