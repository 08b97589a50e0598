import type { Environment } from '../model.ts'

/** What a signup form sent, judged. */
export interface SignupInput {
  readonly email: string
  readonly name: string
  readonly company: string | undefined
  /** Alpha-2, upper case. */
  readonly country: string | undefined
  readonly plan: string | undefined
  /** Slug of a profile that was public to the partner. */
  readonly profile: string | undefined
  readonly locale: string | undefined
  readonly message: string | undefined
  readonly consentAt: number | undefined
  readonly metadata: Readonly<Record<string, string>>
}

/** A signup as it is kept. */
export interface Signup extends SignupInput {
  /** `sgn_` and 20 characters. */
  readonly id: string
  readonly partner: string
  readonly keyId: string
  /** Those of `test` keys are kept apart and never counted. */
  readonly environment: Environment
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
