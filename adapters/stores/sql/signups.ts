/** Signups as all SQL stores keep them, and the outcomes that all stores share. */
import { signupsAuditRecord } from '../../../core/audit/records.ts'
import { all, andThen, type MaybePromise } from '../../../core/lib/promise.ts'
import { compareCodePoints } from '../../../core/lib/text.ts'
import {
  type IdempotencyReservation,
  RESERVATION_LIFETIME_MS,
  type Signup,
  type SignupOutcome,
  type SignupStore,
} from '../../../core/ports/signups.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import { idsSql, idsText, query, type SqlDatabase, type SqlReader } from './database.ts'
import { readSignup, SIGNUP_COLUMNS, type SignupRow } from './tables.ts'
import { deleteDeliveriesSql } from './webhooks.ts'

/** @param newest The condition, order and limit of all signups: after the position `$1`, `$2`, and `$3` of them. */
export function createSignupList({ read }: SqlReader, newest: string) {
  const select = `SELECT ${SIGNUP_COLUMNS} FROM partner_api.signup WHERE`
  // Live and test signups are apart in the index.
  const newestOfPartner = `(recency, id) > ($1, $2) AND partner = $4 AND environment = $5
    ORDER BY recency, id LIMIT CAST($3 AS BIGINT)`
  return {
    findSignup: (id) =>
      andThen(read<SignupRow>(`${select} id = $1`, [id]), ([row]) => row && readSignup(row)),

    listSignups(partner, { createdAt, id } = { createdAt: Number.MAX_SAFE_INTEGER, id: '' }, limit) {
      const after = [-createdAt, id, limit]
      const pages = partner === undefined
        ? [read<SignupRow>(`${select} ${newest}`, after)]
        : ['live', 'test'].map((environment) =>
          read<SignupRow>(`${select} ${newestOfPartner}`, [...after, partner, environment])
        )
      return all(
        pages,
        (found) =>
          found.flat().map(readSignup).sort((a, b) =>
            b.createdAt - a.createdAt || compareCodePoints(a.id, b.id)
          ).slice(0, limit),
      )
    },
  } satisfies Pick<SignupStore, 'findSignup' | 'listSignups'>
}

export function createSignupRemoval({ dialect, change }: SqlDatabase) {
  const ids = idsSql(dialect, '$1')
  const selected = `FROM partner_api.signup WHERE id IN ${ids}`
  // By the time: the id of its signup has no index.
  const deleteReservations = `
    DELETE FROM partner_api.idempotency
    WHERE (expires_at, signup_id) IN (SELECT created_at + ${RESERVATION_LIFETIME_MS}, id ${selected}) RETURNING 1`
  const deleteDeliveries = deleteDeliveriesSql(ids)

  return {
    deleteSignups: (ids, context) =>
      change('uncached', context, function* () {
        const parameters = [idsText(ids)]
        const reservations = (yield* query(deleteReservations, parameters)).length
        const deliveries = (yield* query(deleteDeliveries, parameters)).length
        const deleted = yield* query<[partner: string]>(`DELETE ${selected} RETURNING partner`, parameters)
        const record = signupsAuditRecord(deleted.flat(), deliveries, reservations)
        return { result: deleted.length, auditRecords: deleted.length === 0 ? [] : [record] }
      }),
  } satisfies Pick<SignupStore, 'deleteSignups'>
}

/** A signup, or its reservation alone, that waits for a transaction. */
export interface Attempt {
  readonly signup: Signup
  readonly reservation: IdempotencyReservation | undefined
  /** Whether to store the signup, or its reservation alone. */
  readonly isStored: boolean
  resolve(outcome: SignupOutcome | Promise<SignupOutcome>): void
  reject(error: unknown): void
}

/**
 * Has signups that arrive in one turn of the event loop, or while others are being stored, share the next transaction.
 *
 * @param store Settles some of the attempts that wait, the first ones, and removes them. If it
 * rejects, all that wait fail.
 * @param atOnce Groups that are being stored at most; with more than one, `store` removes its own before it waits.
 */
export function createSignupGroups(store: (waiting: Attempt[]) => MaybePromise<void>, atOnce: number = 1) {
  const waiting: Attempt[] = []
  let groups = 0

  async function storeGroup(): Promise<void> {
    try {
      if (waiting.length > 0) await store(waiting)
    } catch (error) {
      for (const { reject } of waiting.splice(0)) reject(error)
    }
    groups--
    if (waiting.length > 0) startGroup()
  }

  function startGroup(): void {
    if (groups === atOnce) return
    groups++
    // Not at once: requests that have arrived by then join the group, and others are answered.
    setImmediate(storeGroup)
  }

  const add = (attempt: Pick<Attempt, 'signup' | 'reservation' | 'isStored'>) =>
    new Promise<SignupOutcome>((resolve, reject) => {
      waiting.push({ ...attempt, resolve, reject })
      startGroup()
    })

  return {
    createSignup: (signup, reservation) => add({ signup, reservation, isStored: true }),
    reserveSignup: (signup, reservation) => add({ signup, reservation, isStored: false }),
  } satisfies Pick<SignupStore, 'createSignup' | 'reserveSignup'>
}

/** The signup that an idempotency key was used for. */
export type IdempotencyRow = readonly [fingerprint: string, signupId: string, createdAt: number]

/** Expired reservations that each signup removes: more than the one that it may add. */
export const RESERVATIONS_PRUNED_PER_SIGNUP = 2

/** The outcome of a signup whose idempotency key was used before. */
export function repeatedOutcome(
  [fingerprint, id, createdAt]: IdempotencyRow,
  reservation: IdempotencyReservation,
): SignupOutcome {
  return fingerprint === reservation.fingerprint
    ? { outcome: 'replayed', id, createdAt }
    : { outcome: 'mismatch' }
}

export function unknownKeyError({ id, partner, keyId }: Signup): StoreError {
  return refusedError(id, `${partner} has no key ${keyId}`)
}

export function duplicateIdError({ id }: Signup): StoreError {
  return refusedError(id, 'there is a signup with this id already')
}

function refusedError(id: string, reason: string): StoreError {
  return new StoreError('refused', `The signup ${id} cannot be stored: ${reason}.`)
}
