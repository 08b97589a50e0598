import { delay, timeout } from '../../../core/lib/promise.ts'
import { utcDay } from '../../../core/lib/time.ts'
import type {
  IdempotencyReservation,
  Signup,
  SignupOutcome,
  SignupStore,
} from '../../../core/ports/signups.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import { signupEvent } from '../../../core/webhooks/events.ts'
import { pruneSql, rowsSql, type SqlDatabase } from '../sql/database.ts'
import type { SqlValue } from '../sql/row-format.ts'
import {
  type Attempt,
  createSignupGroups,
  createSignupList,
  createSignupRemoval,
  duplicateIdError,
  type IdempotencyRow,
  repeatedOutcome,
  RESERVATIONS_PRUNED_PER_SIGNUP,
  unknownKeyError,
} from '../sql/signups.ts'
import { SIGNUP_COLUMNS, signupRow } from '../sql/tables.ts'
import { enqueueSql } from '../sql/webhooks.ts'
import type { PostgresDatabase } from './database.ts'
import { isCommitUnknown, SqlError } from './errors.ts'
import { DIALECT, SERVER_NOW } from './sql.ts'
import { SET_DURABLE_COMMIT } from './transaction.ts'

/** Milliseconds to resend a signup whose outcome is unknown, and between two attempts. */
const resendTimeoutMs = 10_000
const resendPauseMs = 200

/** Milliseconds to wait for another attempt with the same idempotency key. */
const reservationLockTimeoutMs = 2_000

/**
 * The most signups of one statement, and the characters after which it takes no more: they delay all other requests.
 */
const maxGroup = 100
const maxGroupLength = 125_000

/** Milliseconds that a group waits for a lock which only one of its signups may need. */
const groupLockTimeoutMs = 100

/** Two of the rows of each counter, for the groups of one store: few wait for each other's commits. */
const drawSlot = (): number => Math.floor(Math.random() * 64)

const lockNotAvailable = '55P03'
const uniqueViolation = '23505'

const pruneReservationsSql = pruneSql(DIALECT, {
  table: 'idempotency',
  key: ['partner', 'environment', 'key'],
  expiry: 'expires_at',
  batchSize: RESERVATIONS_PRUNED_PER_SIGNUP * maxGroup,
})

export function createSignups(database: PostgresDatabase, sql: SqlDatabase) {
  const tables = createSignupTables(database)
  let unpruned = maxGroup

  async function storeGroup(waiting: Attempt[]): Promise<void> {
    const rows: SqlValue[][] = []
    for (let length = 0; rows.length < Math.min(waiting.length, maxGroup) && length < maxGroupLength;) {
      const row = attemptRow(waiting[rows.length]!, rows.length)
      length += row.join('').length
      rows.push(row)
    }
    const attempts = waiting.splice(0, rows.length)
    if (attempts.length === 1) await storeAlone(tables, attempts[0]!)
    else await storeTogether(tables, attempts, rows)
    unpruned += attempts.length
    // After each group, this would take a third of the time.
    if (unpruned < maxGroup) return
    unpruned = 0
    sql.prune(pruneReservationsSql, [attempts[0]!.signup.createdAt])
  }

  return {
    // While the commit of one waits for a disk or a standby, another is on its way.
    ...createSignupGroups(storeGroup, 2),
    ...createSignupList(
      sql,
      `created_at <= -$1::bigint AND (created_at < -$1::bigint OR id > $2) ORDER BY created_at DESC, id LIMIT $3`,
    ),
    ...createSignupRemoval(sql),

    // Only the server can erase what removed rows leave in its files.
    eraseRemains: () => undefined,

    isReserved: async (signup, reservation) => (await readReason(database, signup, reservation))[2] !== null,
  } satisfies SignupStore
}

/** The tables of signups, to be inserted into. */
interface SignupTables {
  readonly database: PostgresDatabase
  /** Inserts what can be stored. Of attempts with one idempotency key, others wait for the first. @returns Its ids. */
  insert(rows: readonly SqlValue[][], sql: string): Promise<ReadonlySet<string>>
}

function createSignupTables(database: PostgresDatabase): SignupTables {
  let slot = drawSlot()
  return {
    database,
    async insert(rows, sql) {
      try {
        // The other row of the two: the statement before may still hold its own.
        slot ^= 1
        const stored = await database.write<[id: string]>(sql, [JSON.stringify(rows), slot])
        return new Set(stored.map(([id]) => id))
      } catch (error) {
        // A commit that holds its rows may wait for a standby that is lost.
        slot = drawSlot()
        throw error
      }
    },
  }
}

/** Others do not wait for a lone signup whose idempotency key is locked. */
async function storeAlone(tables: SignupTables, attempt: Attempt): Promise<void> {
  const outcome = insertUntilKnown(tables, attempt, false)
  attempt.resolve(outcome)
  await timeout<unknown>(outcome, groupLockTimeoutMs, () => undefined).catch(() => undefined)
}

/**
 * Inserts signups in one statement. Those that it does not store, which are all of them if it fails, are inserted
 * one by one, for which others do not wait.
 */
async function storeTogether(
  tables: SignupTables,
  attempts: readonly Attempt[],
  rows: readonly SqlValue[][],
): Promise<void> {
  try {
    const stored = await tables.insert(rows, insertGroupSql)
    for (const attempt of attempts) {
      const isStored = stored.has(attempt.signup.id)
      attempt.resolve(isStored ? { outcome: 'created' } : insertUntilKnown(tables, attempt, false))
    }
  } catch (error) {
    const isUnknown = isCommitUnknown(error)
    for (const attempt of attempts) {
      if (isUnknown || error instanceof SqlError) {
        attempt.resolve(insertUntilKnown(tables, attempt, isUnknown))
      } else attempt.reject(error)
    }
  }
}

/** @param isResent Whether the outcome of an earlier attempt is unknown. */
async function insertOnce(
  { database, insert }: SignupTables,
  attempt: Attempt,
  isResent: boolean,
): Promise<SignupOutcome> {
  const { signup, reservation } = attempt
  const end = performance.now() + reservationLockTimeoutMs
  while (performance.now() < end) {
    try {
      const stored = await insert([attemptRow(attempt)], insertAloneSql)
      if (stored.has(signup.id)) return { outcome: 'created' }
    } catch (error) {
      const code = error instanceof SqlError ? error.code : undefined
      if (code === lockNotAvailable) break
      // Inserted by another attempt, or by an earlier one of this signup.
      if (code !== uniqueViolation) throw error
    }
    const outcome = outcomeOf(await readReason(database, signup, reservation), attempt, isResent)
    if (outcome !== undefined) return outcome
  }
  if (reservation !== undefined && !isResent) return { outcome: 'conflict' }
  throw new StoreError(
    'delayed',
    `The store ${database.location} delays a signup: other transactions hold its locks.`,
  )
}

/**
 * Resends a signup with the same id, which waits for an earlier attempt that is still in flight.
 *
 * @param isResent Whether the outcome of an earlier attempt is unknown.
 */
async function insertUntilKnown(
  tables: SignupTables,
  attempt: Attempt,
  isResent: boolean,
): Promise<SignupOutcome> {
  let end = isResent ? performance.now() + resendTimeoutMs : undefined
  for (;;) {
    try {
      return await insertOnce(tables, attempt, end !== undefined)
    } catch (error) {
      const isUnreachable = error instanceof StoreError && /^(?:unreachable|overloaded)$/.test(error.code)
      if (end === undefined ? !isCommitUnknown(error) : !isUnreachable) throw error
      end ??= performance.now() + resendTimeoutMs
      if (performance.now() + resendPauseMs > end) {
        const { location } = tables.database
        throw new StoreError(
          'unreachable',
          `The connection to the store ${location} was lost during a signup, which may have been saved.`,
          { cause: error },
        )
      }
    }
    await delay(resendPauseMs)
  }
}

/** @returns What a signup that was not inserted comes to, `undefined` if it can be inserted now. */
function outcomeOf(
  [hasKey, idExists, ...held]: Reason,
  { signup, reservation }: Attempt,
  isResent: boolean,
): SignupOutcome | undefined {
  const isReserved = held[0] !== null
  // The id was drawn for this signup: if it exists, the earlier attempt was committed.
  if (isResent && (isReserved ? held[1] === signup.id : idExists)) return { outcome: 'created' }
  if (isReserved) return repeatedOutcome(held, reservation!)
  if (!hasKey) throw unknownKeyError(signup)
  if (idExists) throw duplicateIdError(signup)
  return undefined
}

async function readReason(
  database: PostgresDatabase,
  { id, partner, keyId, environment, createdAt }: Signup,
  reservation: IdempotencyReservation | undefined,
): Promise<Reason> {
  const parameters = [id, partner, keyId, environment, createdAt, reservation?.key ?? null]
  const [reason] = await database.read<Reason>(selectReasonSql, parameters)
  return reason!
}

/** Why a signup is not stored. The last three: the earlier reservation of the idempotency key. */
type Reason = [hasKey: boolean, idExists: boolean, ...(IdempotencyRow | [null, null, null])]

/** Reservations have to be expired by the server's clock, too: this one may be fast. */
const attemptedAt = (createdAt: string) => `least(${createdAt}, ${SERVER_NOW})`

const selectReasonSql = `
  SELECT EXISTS (SELECT 1 FROM partner_api.partner_key WHERE id = $3 AND partner = $2),
    EXISTS (SELECT 1 FROM partner_api.signup WHERE id = $1), fingerprint, signup_id, created_at
  FROM (SELECT 1) AS one LEFT JOIN partner_api.idempotency
    ON partner = $2 AND environment = $4 AND key = $6 AND expires_at > ${attemptedAt('$5::bigint')}`

const attemptColumns = [
  ...SIGNUP_COLUMNS,
  'day',
  'country',
  'plan',
  'payload',
  'reservation_key',
  'fingerprint',
  'expires_at',
  'is_stored',
  'position',
]

/** @param position In its group: of attempts with one idempotency key, the first is stored. */
function attemptRow({ signup, reservation, isStored }: Attempt, position = 0): SqlValue[] {
  const { createdAt, country, plan } = signup
  return [
    ...signupRow(signup),
    utcDay(createdAt),
    country ?? '',
    plan ?? '',
    signupEvent(signup).payload,
    reservation?.key ?? null,
    reservation?.fingerprint ?? null,
    reservation?.expiresAt ?? null,
    String(isStored),
    position,
  ]
}

/**
 * Returns the ids of what it stores. Rows are locked in the order of idempotency keys and counters, so that
 * groups do not deadlock. The settings last for this statement, on any connection of a pooler, and apply as
 * later parts depend on them.
 */
function insertSql(lockTimeoutMs: number): string {
  return `
    WITH settings AS MATERIALIZED (
      SELECT set_config('lock_timeout', '${lockTimeoutMs}ms', true), ${SET_DURABLE_COMMIT}
    ),
    admitted AS MATERIALIZED (
      SELECT given.* FROM settings
      CROSS JOIN ${rowsSql(DIALECT, attemptColumns)} AS given
      JOIN partner_api.partner_key AS owned ON owned.id = given.key_id AND owned.partner = given.partner
    ),
    reserved AS (
      INSERT INTO partner_api.idempotency AS held
        (partner, environment, key, fingerprint, signup_id, created_at, expires_at)
      SELECT DISTINCT ON (partner, environment, reservation_key)
        partner, environment, reservation_key, fingerprint, id, created_at, expires_at
      FROM admitted WHERE reservation_key IS NOT NULL ORDER BY partner, environment, reservation_key, position
      ON CONFLICT (partner, environment, key) DO UPDATE SET fingerprint = excluded.fingerprint,
        signup_id = excluded.signup_id, created_at = excluded.created_at, expires_at = excluded.expires_at
      WHERE held.expires_at <= ${attemptedAt('excluded.created_at')}
      RETURNING signup_id
    ),
    created AS MATERIALIZED (
      SELECT * FROM admitted WHERE reservation_key IS NULL OR id IN (SELECT signup_id FROM reserved)
    ),
    kept AS (
      INSERT INTO partner_api.signup (${SIGNUP_COLUMNS}, recency)
      SELECT ${SIGNUP_COLUMNS}, -created_at FROM created WHERE is_stored = 'true'
    ),
    counted AS (
      INSERT INTO partner_api.signup_tally AS sums (partner, dimension, day, value, slot, signups)
      SELECT partner, dimension, day, value, $2::integer, count(*)
      FROM created CROSS JOIN LATERAL (VALUES ('country', country), ('plan', plan)) AS counts (dimension, value)
      WHERE environment = 'live' AND is_stored = 'true'
      GROUP BY partner, dimension, day, value ORDER BY partner, dimension, day, value
      ON CONFLICT (partner, dimension, day, value, slot) DO UPDATE SET signups = sums.signups + excluded.signups
    ),
    outbox AS (${enqueueSql(DIALECT, signupEventsSql)})
    SELECT id FROM created`
}

/** The ids are those of `signupEvent`. */
const signupEventsSql =
  `(SELECT 'msg_' || substr(id, 5) AS id, 'signup.created' AS type, partner, created_at, payload
  FROM created WHERE is_stored = 'true')`

const insertGroupSql = insertSql(groupLockTimeoutMs)
const insertAloneSql = insertSql(reservationLockTimeoutMs)
