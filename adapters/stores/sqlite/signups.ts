import { utcDay } from '../../../core/lib/time.ts'
import type {
  IdempotencyReservation,
  Signup,
  SignupOutcome,
  SignupStore,
} from '../../../core/ports/signups.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import { signupEvent } from '../../../core/webhooks/events.ts'
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
import { COPIED_TABLES, SIGNUP_COLUMNS, type SignupRow, signupRow } from '../sql/tables.ts'
import { retryWhileBusy, runWithRetry } from './busy-retry.ts'
import { placeholders, type SqliteDatabase, upsertSql } from './database.ts'
import type { LocalSqlDatabase } from './sql-database.ts'

/**
 * Milliseconds of a transaction after which the rest waits for the next one: a transaction delays all other requests.
 */
const maxGroupMs = 8

export function createSignups(database: SqliteDatabase, sql: LocalSqlDatabase) {
  const { insertSignup, findReservation } = createInserter(database, sql.addEvents)
  const { deleteSignups } = createSignupRemoval(sql)

  /** Inserts the first of the signups, as if one after the other. @returns How to settle each, once it is committed. */
  function insertGroup(attempts: readonly Attempt[]): (() => void)[] {
    const end = performance.now() + maxGroupMs
    const settled: (() => void)[] = []
    for (const attempt of attempts) {
      try {
        const outcome = insertSignup(attempt)
        settled.push(() => attempt.resolve(outcome))
      } catch (error) {
        // Thrown before anything was written. Any other error rolls back the whole transaction.
        if (!(error instanceof StoreError) || error.code !== 'refused') throw error
        settled.push(() => attempt.reject(error))
      }
      if (performance.now() > end) break
    }
    return settled
  }

  async function storeGroup(waiting: Attempt[]): Promise<void> {
    // Others may come while another process holds the lock.
    const attempts = [...waiting]
    try {
      const insert = () => database.transaction(() => insertGroup(attempts), { wait: false })
      const settled = await runWithRetry(insert)
      waiting.splice(0, settled.length)
      for (const settle of settled) settle()
    } catch (error) {
      waiting.splice(0, attempts.length)
      // Not about the file: one of them is the cause, and each is tried alone.
      const isShared = attempts.length === 1 || error instanceof StoreError
      for (const attempt of attempts) isShared ? attempt.reject(error) : await storeGroup([attempt])
    }
  }

  return {
    ...createSignupGroups(storeGroup),
    ...createSignupList(sql, '(recency, id) > ($1, $2) ORDER BY recency, id LIMIT CAST($3 AS BIGINT)'),

    deleteSignups(ids, context) {
      // Overwritten, also where that costs writes: pages that become free.
      database.exec('PRAGMA secure_delete = ON')
      // A sync of the disk would delay requests: `eraseRemains` makes one.
      return database.unsynced(() => deleteSignups(ids, context))
    },

    async eraseRemains(rewrites) {
      if (rewrites) await retryWhileBusy(() => database.eraseRemains('VACUUM'))
      await retryWhileBusy(() => database.eraseRemains('PRAGMA wal_checkpoint(TRUNCATE)'))
    },

    isReserved: (signup, reservation) => findReservation(signup, reservation) !== undefined,
  } satisfies SignupStore
}

function createInserter(database: SqliteDatabase, addEvents: LocalSqlDatabase['addEvents']) {
  const insertRow = database.statement(
    `INSERT INTO signup (${SIGNUP_COLUMNS}) VALUES (${placeholders(SIGNUP_COLUMNS)})`,
  )
  const selectSignup = database.statement<SignupRow>(`SELECT ${SIGNUP_COLUMNS} FROM signup WHERE id = ?1`)
  const selectKey = database.statement<[1]>('SELECT 1 FROM partner_key WHERE id = ?1 AND partner = ?2')
  const selectClaim = database.statement<IdempotencyRow>(`
    SELECT fingerprint, signup_id, created_at FROM idempotency
    WHERE partner = ?1 AND environment = ?2 AND key = ?3 AND expires_at > ?4`)
  const { name, columns, keyLength } = COPIED_TABLES.idempotency_keys
  const upsertClaim = database.statement(upsertSql(name, columns, keyLength))
  const selectExpiredReservations = database.statement<[partner: string, environment: string, key: string]>(`
    SELECT partner, environment, key FROM idempotency WHERE expires_at <= ?1 ORDER BY expires_at
    LIMIT ${RESERVATIONS_PRUNED_PER_SIGNUP}`)
  const deleteReservation = database.statement(
    'DELETE FROM idempotency WHERE partner = ?1 AND environment = ?2 AND key = ?3',
  )
  const incrementCounter = database.statement(`
    INSERT INTO signup_tally (partner, dimension, day, value, signups) VALUES (?1, ?2, ?3, ?4, 1)
    ON CONFLICT DO UPDATE SET signups = signups + 1`)

  const findReservation = ({ partner, environment, createdAt }: Signup, { key }: IdempotencyReservation) =>
    selectClaim.get(partner, environment, key, createdAt)

  function insertSignup({ signup, reservation, isStored }: Attempt): SignupOutcome {
    const { id, partner, environment, keyId, createdAt, country, plan } = signup
    const found = reservation && findReservation(signup, reservation)
    if (found !== undefined) return repeatedOutcome(found, reservation!)
    if (selectKey.get(keyId, partner) === undefined) throw unknownKeyError(signup)
    if (selectSignup.get(id) !== undefined) throw duplicateIdError(signup)
    if (isStored) {
      insertRow.run(...signupRow(signup))
      addEvents(() => [signupEvent(signup)])
      if (environment === 'live') {
        const day = utcDay(createdAt)
        incrementCounter.run(partner, 'plan', day, plan ?? '')
        incrementCounter.run(partner, 'country', day, country ?? '')
      }
    }
    for (const old of selectExpiredReservations.all(createdAt)) deleteReservation.run(...old)
    if (reservation !== undefined) {
      const { key, fingerprint, expiresAt } = reservation
      upsertClaim.run(partner, environment, key, fingerprint, id, createdAt, expiresAt)
    }
    return { outcome: 'created' }
  }

  return { insertSignup, findReservation }
}
