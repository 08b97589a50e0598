import type { MaybePromise } from '../lib/promise.ts'
import type { Environment } from '../model.ts'
import type { AuditContext, CreationPosition } from './changes.ts'

/** The store of signups. */
export interface SignupStore {
  /**
   * Stores a signup, once for each idempotency key. Returns when it is durable. A reservation is stored only with a
   * created signup. It has expired for attempts whose `signup.createdAt` is `reservation.expiresAt` or later.
   *
   * @throws when the store does not respond, the partner or key does not exist, or a signup with this id exists.
   */
  createSignup(signup: Signup, reservation: IdempotencyReservation | undefined): MaybePromise<SignupOutcome>

  /**
   * Stores the reservation of a signup alone. `createSignup` completes it without a reservation, once the
   * signup is stored elsewhere.
   *
   * @returns `replayed` also if that has not happened yet.
   * @throws as `createSignup` does.
   */
  reserveSignup(signup: Signup, reservation: IdempotencyReservation): MaybePromise<SignupOutcome>

  /** Whether an earlier attempt holds the idempotency key, so that `createSignup` would not create the signup. */
  isReserved(signup: Signup, reservation: IdempotencyReservation): MaybePromise<boolean>

  /** The signup with this id, or `undefined`. */
  findSignup(id: string): MaybePromise<Signup | undefined>

  /** Signups of all partners or of one, test ones included, newest first, then by id; `after` is the last one seen. */
  listSignups(
    partner: string | undefined,
    after: CreationPosition | undefined,
    limit: number,
  ): MaybePromise<readonly Signup[]>

  /**
   * Removes signups, the deliveries of their events and the reservations of their idempotency keys, in one
   * transaction with an audit entry that has only their numbers. Counts in reports stay, and no revision moves.
   *
   * @param ids At most 500. Unknown ones are left alone.
   * @returns How many signups were removed.
   */
  deleteSignups(ids: readonly string[], context: AuditContext): MaybePromise<number>

  /**
   * Erases what removed rows have left in the files of the store, and makes their removal durable. Does nothing
   * where only the database server can, and removals are durable by themselves.
   *
   * @param rewrites Whether to rewrite them, which keeps writers waiting, or only to empty the write-ahead log.
   * @throws {StoreError} `unreachable` while another process uses them.
   */
  eraseRemains(rewrites: boolean): MaybePromise<void>
}

/** Your own tables for signups. The store then keeps no personal data. */
export interface SignupDestination {
  /**
   * Stores a signup durably. May be called repeatedly and concurrently with one id: all calls but the first must change
   * nothing.
   *
   * @throws when the signup is not stored. The response is 503, and the log has the error: keep
   * personal data out of it.
   */
  createSignup(signup: Signup): MaybePromise<unknown>
}

/** The validated input of a signup form. */
export interface SignupInput {
  /** At most 254 characters, of the form that browsers accept. */
  readonly email: string
  /** 1–200 code points. */
  readonly name: string
  /** At most 200 code points. */
  readonly company: string | undefined
  /** Alpha-2, upper case. */
  readonly country: string | undefined
  /** Slug of an existing plan. */
  readonly plan: string | undefined
  /** Slug of a profile in the partner's public set. */
  readonly profile: string | undefined
  /** A BCP 47 tag. */
  readonly locale: string | undefined
  /** At most 2,000 code points. */
  readonly message: string | undefined
  /** When the person agreed to be contacted, milliseconds since the epoch. */
  readonly consentAt: number | undefined
  /** Up to 20 members: names of 1–40, values of up to 500 code points. */
  readonly metadata: Readonly<Record<string, string>>
}

/** A stored signup. */
export interface Signup extends SignupInput {
  /** `sgn_` and 20 characters. */
  readonly id: string
  /** Slug of the partner. */
  readonly partner: string
  /** Public id of the key. */
  readonly keyId: string
  /** Signups with `test` keys are never counted. */
  readonly environment: Environment
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/**
 * Milliseconds from `createdAt` of a signup to `expiresAt` of its reservation. `deleteSignups`
 * finds reservations by it.
 */
export const RESERVATION_LIFETIME_MS = 86_400_000

/** Makes a signup safe to repeat. */
export interface IdempotencyReservation {
  /** 1–255 printable ASCII characters, unique within a partner and environment. */
  readonly key: string
  /** Equal for bodies that are equal JSON values: 64 hexadecimal digits. */
  readonly fingerprint: string
  /** The key may be used again from then on, milliseconds since the epoch. */
  readonly expiresAt: number
}

/** The outcome of an attempt to store a signup. */
export type SignupOutcome =
  | { readonly outcome: 'created' }
  /** The key was used with this body before: the first response is repeated. */
  | { readonly outcome: 'replayed'; readonly id: string; readonly createdAt: number }
  /** The key was used with another body. */
  | { readonly outcome: 'mismatch' }
  /** The first attempt with this key is still running. */
  | { readonly outcome: 'conflict' }
