import type { MaybePromise } from '../lib/promise.ts'
import type { Environment } from '../model.ts'

/** Where signups are kept. */
export interface SignupStore {
  /**
   * Keeps a signup, once however often it is asked for under one idempotency key. Returns when it is durable.
   * A claim is kept only with a signup that was created, and holds until `claim.expiresAt` is `signup.createdAt` of an
   * attempt, or before it.
   *
   * @throws when the store does not answer, the partner or key does not exist, or there is a signup with this id.
   */
  createSignup(signup: Signup, claim: IdempotencyClaim | undefined): MaybePromise<SignupOutcome>

  /** Signups of all partners or of one, test ones included, newest first, then by id; `after` is the last one seen. */
  listSignups(
    partner: string | undefined,
    after: { readonly createdAt: number; readonly id: string } | undefined,
    limit: number,
  ): MaybePromise<readonly Signup[]>
}

/** What a signup form sent, judged. */
export interface SignupInput {
  /** At most 254 characters, of the form that browsers accept. */
  readonly email: string
  /** 1–200 code points. */
  readonly name: string
  /** At most 200 code points. */
  readonly company: string | undefined
  /** Alpha-2, upper case. */
  readonly country: string | undefined
  /** Slug of a plan that existed. */
  readonly plan: string | undefined
  /** Slug of a profile that was public to the partner. */
  readonly profile: string | undefined
  /** A BCP 47 tag. */
  readonly locale: string | undefined
  /** At most 2,000 code points. */
  readonly message: string | undefined
  /** When they agreed to be contacted, milliseconds since the epoch. */
  readonly consentAt: number | undefined
  /** Up to 20 members: names of 1–40, values of up to 500 code points. */
  readonly metadata: Readonly<Record<string, string>>
}

/** A signup as it is kept. */
export interface Signup extends SignupInput {
  /** `sgn_` and 20 characters. */
  readonly id: string
  /** Slug of the partner that sent it. */
  readonly partner: string
  /** Public id of the key that it was sent with. */
  readonly keyId: string
  /** Those of `test` keys are kept apart and never counted. */
  readonly environment: Environment
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** What makes a signup safe to repeat. */
export interface IdempotencyClaim {
  /** 1–255 printable ASCII characters; partners, and live and test keys, have key spaces of their own. */
  readonly key: string
  /** Tells whether two bodies are the same JSON value: 64 hexadecimal digits. */
  readonly fingerprint: string
  /** Milliseconds since the epoch: from then on the key may be used anew. */
  readonly expiresAt: number
}

/** How an attempt to keep a signup ended. */
export type SignupOutcome =
  | { readonly outcome: 'created' }
  /** The key was used with this body before: this is what was answered. */
  | { readonly outcome: 'replayed'; readonly id: string; readonly createdAt: number }
  /** The key was used with another body. */
  | { readonly outcome: 'mismatch' }
  /** The first attempt with this key is still running. */
  | { readonly outcome: 'conflict' }
