import { andThen, type MaybePromise } from '../../../core/lib/promise.ts'
import { isDurable } from '../../../core/limits/partner-quotas.ts'
import type { LeaseRequest, QuotaLease, QuotaReturn, QuotaStore } from '../../../core/ports/quotas.ts'
import { type Dialect, pruneSql, rowsSql, rowsText, type SqlDatabase, type SqlQuery } from './database.ts'
import { createRowFormat, type SqlValue } from './row-format.ts'

const returnFormat = createRowFormat<QuotaReturn>()(['policy', 'subject', 'term', 'used', 'unused'])

interface QuotaDatabase {
  readonly dialect: Dialect
  /** Runs a statement in the background, see `SqlDatabase`. */
  readonly prune: SqlDatabase['prune']
  /** Prepares a look-up of one row at most, with parameters that the statement casts. */
  lookUpOne<R>(sql: string): (parameters: readonly SqlValue[]) => MaybePromise<R | undefined>
  /** Runs a statement that a crash must not undo. */
  readonly commit: SqlQuery
  /** Runs a statement that a crash may undo. */
  readonly asyncCommit: SqlQuery
  /**
   * The number of windows opened between deletions. Each deletes up to twice as many expired ones,
   * so that none accumulate.
   */
  readonly pruneEvery: number
}

/** The quotas of a table. Each lease is an upsert of one row, so that concurrent ones see each other's. */
export function createQuotaStore(
  { dialect, lookUpOne, commit, asyncCommit, prune, pruneEvery }: QuotaDatabase,
  table: string,
): Pick<QuotaStore, 'leaseQuota' | 'returnQuotas'> {
  const { peek, take, returnLeases } = quotaStatements(dialect, `partner_api.${table}`)
  const findWindow = lookUpOne<WindowRow>(peek)
  const key = ['policy', 'subject']
  const pruneWindows = pruneSql(dialect, { table, key, expiry: 'ends_at', batchSize: 2 * pruneEvery })
  let opened = 0

  return {
    leaseQuota(request): MaybePromise<QuotaLease> {
      const parameters = leaseParameters(request)
      if (request.wanted <= 0) {
        return andThen(findWindow(parameters), (row) => toLease(row, request))
      }
      const write = isDurable({ ...request, name: request.policy }) ? commit : asyncCommit
      return andThen(write<WindowRow>(take, parameters), ([row]) => {
        const [now, , taken, granted] = row!
        if (granted === taken && opened++ % pruneEvery === 0) prune(pruneWindows, [now])
        return toLease(row, request)
      })
    },

    returnQuotas(returns) {
      return andThen(asyncCommit(returnLeases, [rowsText(returnFormat, returns)]), () => undefined)
    },
  }
}

type WindowRow = [now: number, openedAt: number, taken: number, granted: number, term: number]

/**
 * Parameters: policy, subject, milliseconds of the window, quota; `take` has also wanted, waiting,
 * term, used and most held.
 */
function leaseParameters(request: LeaseRequest): (string | number)[] {
  const { policy, subject, windowSeconds, quota, wanted, waiting = 0, mostHeld = 0, report } = request
  const key = [policy, subject, windowSeconds * 1000, quota]
  return wanted <= 0 ? key : [...key, wanted, waiting, report?.term ?? 0, report?.used ?? 0, mostHeld]
}

function toLease(row: WindowRow | undefined, { quota, windowSeconds }: LeaseRequest): QuotaLease {
  const windowMs = windowSeconds * 1000
  if (row === undefined) return { granted: 0, remaining: quota, resetMs: windowMs, term: 0 }
  const [now, openedAt, taken, granted, term] = row
  const remaining = Math.max(0, quota - taken)
  // `now` may be before the window was opened, if the statement had to wait for the row.
  return { granted, remaining, resetMs: Math.min(windowMs, openedAt + windowMs - now), term }
}

/**
 * The statements. A window counts what was taken of its quota; `held` is the part of it that was leased in the current
 * term and not reported as used. A term is the instant at which it began.
 */
function quotaStatements(dialect: Dialect, table: string) {
  const { least, greatest, now } = dialect
  const integer = (parameter: string) => `CAST(${parameter} AS BIGINT)`
  const policy = 'CAST($1 AS TEXT)'
  const subject = 'CAST($2 AS TEXT)'
  const windowMs = integer('$3')
  const quota = integer('$4')
  const wanted = integer('$5')
  const waiting = integer('$6')
  const term = integer('$7')
  const used = integer('$8')
  const mostHeld = integer('$9')
  // By the length of the request, also for an open window. One from the future was opened by a clock that was ahead: it
  // keeps what was taken, and is counted from now on.
  const isOpen = (at: string) => `${at} - w.opened_at < ${windowMs}`
  const openedAt = (at: string) => `${least}(w.opened_at, ${at})`
  const isOpenNow = isOpen('excluded.opened_at')
  const isSame =
    `(w.policy IN ('partner', 'month') OR w.quota = ${quota} AND w.ends_at = w.opened_at + ${windowMs})`
  const counted = `CASE WHEN ${isSame} THEN w.taken ELSE w.taken - w.held END`
  const clock = `(SELECT ${now} AS now) AS clock`
  // Each replica takes half of what may still be held: two get a third of it each in the end, and many less and less.
  const allowed = (held: string) => `
    CASE WHEN ${mostHeld} = 0 THEN ${wanted}
    ELSE ${greatest}(${waiting}, ${least}(${greatest}(${wanted}, (${mostHeld} - ${held}) / 2), ${mostHeld} - ${held})) END`
  return {
    peek: `
      SELECT clock.now, ${openedAt('clock.now')}, ${counted}, 0, w.term FROM ${table} AS w, ${clock}
      WHERE w.policy = ${policy} AND w.subject = ${subject} AND ${isOpen('clock.now')}`,

    take: `
      INSERT INTO ${table} AS w (policy, subject, opened_at, ends_at, taken, granted, quota, term, held)
      SELECT ${policy}, ${subject}, clock.now, clock.now + ${windowMs}, first, first, ${quota}, clock.now, ${greatest}(first - ${waiting}, 0)
      FROM ${clock}, (SELECT ${least}(${quota}, ${allowed('0')}) AS first) AS lease WHERE true
      ON CONFLICT (policy, subject) DO UPDATE SET (opened_at, ends_at, taken, granted, quota, term, held) = (
        SELECT opened_at, opened_at + ${windowMs}, taken + granted, granted, ${quota}, term,
          held + ${greatest}(granted - ${waiting}, 0)
        FROM (
          SELECT opened_at, taken, term, held,
            ${least}(${allowed('held')}, ${greatest}(${quota} - taken, 0)) AS granted
          FROM (
            SELECT ${openedAt('excluded.opened_at')} AS opened_at, w.term,
              w.taken + CASE WHEN ${term} BETWEEN w.opened_at AND w.term - 1 THEN ${used} ELSE 0 END AS taken,
              w.held - CASE WHEN ${term} = w.term THEN ${least}(w.held, ${used}) ELSE 0 END AS held
            WHERE ${isOpenNow} AND ${isSame}
            UNION ALL
            SELECT ${openedAt('excluded.opened_at')}, ${greatest}(w.term + 1, excluded.opened_at),
              w.taken - w.held + CASE WHEN ${term} >= w.opened_at THEN ${used} ELSE 0 END, 0
            WHERE ${isOpenNow} AND NOT (${isSame})
            UNION ALL
            SELECT excluded.opened_at, excluded.opened_at, 0, 0 WHERE NOT (${isOpenNow})
          ) AS before
        ) AS lease
      )
      RETURNING ${now}, opened_at, taken, granted, term`,

    returnLeases: `
      UPDATE ${table} AS w SET
        taken = w.taken + CASE WHEN w.term = returned.term THEN -returned.unused ELSE returned.used END,
        held = w.held - CASE WHEN w.term = returned.term
          THEN ${least}(w.held, returned.used + returned.unused) ELSE 0 END
      FROM ${rowsSql(dialect, returnFormat.columns)} AS returned
      WHERE w.policy = returned.policy AND w.subject = returned.subject AND w.opened_at <= returned.term`,
  }
}
