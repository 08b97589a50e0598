import type { Environment } from '../model.ts'
import type { Module } from '../policy/modules.ts'
import type { Scope } from '../policy/scopes.ts'
import type { Signup } from '../signups/signup.ts'

/** What can happen to a partner that its report shows. */
export const ACTIVITY_TYPES = [
  'signup.created',
  'key.issued',
  'key.rotated',
  'key.revoked',
  'key.disabled',
  'key.enabled',
  'key.expired',
  'scope.granted',
  'scope.removed',
  'module.activated',
  'module.deactivated',
] as const

/** A type of activity. */
export type ActivityType = (typeof ACTIVITY_TYPES)[number]

/** Something that happened, not yet redacted. */
export type Activity =
  & {
    /** `act_…`, unique and the same at every reading. */
    readonly id: string
    readonly at: number
  }
  & (
    | { readonly type: 'signup.created'; readonly signup: Signup }
    | {
      readonly type:
        | 'key.issued'
        | 'key.rotated'
        | 'key.revoked'
        | 'key.disabled'
        | 'key.enabled'
        | 'key.expired'
      readonly keyId: string
      readonly hint: string
      readonly environment: Environment
    }
    | {
      readonly type: 'scope.granted' | 'scope.removed'
      readonly keyId: string
      readonly hint: string
      readonly environment: Environment
      readonly scope: Scope
    }
    | { readonly type: 'module.activated' | 'module.deactivated'; readonly module: Module }
  )

/** A question to the activity of a partner. Newest first, then by id. */
export interface ActivityQuery {
  /** Any of these; empty for all. */
  readonly types: readonly ActivityType[]
  /** Only what comes after this row. */
  readonly after: { readonly at: number; readonly id: string } | undefined
  /** 1 or more. */
  readonly limit: number
}
