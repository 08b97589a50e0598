/** The order of what pages newest first, and the ids that activity goes by: what all stores share. */
import { compareCodePoints } from '../../core/content/fold.ts'
import { type Activity, ACTIVITY_TYPES, type ActivityType } from '../../core/reports/activity.ts'
import type { AuditEntry } from '../../core/audit/entry.ts'
import type { Key } from '../../core/model.ts'
import type { Module } from '../../core/policy/modules.ts'
import type { Scope } from '../../core/policy/scopes.ts'
import type { Signup } from '../../core/signups/signup.ts'

/** Something with a place among what pages newest first. */
export interface Dated {
  readonly at: number
  readonly id: string
}

export function newestFirst(a: Dated, b: Dated): number {
  return b.at - a.at || compareCodePoints(a.id, b.id)
}

/** What begins the ids of expiries; the key's id ends them. Lower-case letters, which no drawn id has. */
export const EXPIRY_PREFIX = 'act_expired_'

/** What begins the ids of signups' rows; what follows the prefix of the signup's own id ends them. */
export const SIGNUP_PREFIX = 'act_'

/** The types of activity that the audit trail is the source of. */
export const AUDITED_ACTIVITY: readonly ActivityType[] = ACTIVITY_TYPES.filter((type) =>
  type !== 'signup.created' && type !== 'key.expired'
)

/** What the row of an entry is made of. */
export type AuditedPart = Pick<AuditEntry, 'id' | 'at' | 'type' | 'keyId' | 'subject' | 'after'>

/** The row of an entry of a type that is among `AUDITED_ACTIVITY`. */
export function activityOf({ id, at, type, keyId, subject, after }: AuditedPart): Activity {
  if (type === 'module.activated' || type === 'module.deactivated') {
    return { id, at, type, module: subject as Module }
  }
  const { hint, environment }: Pick<Key, 'hint' | 'environment'> = JSON.parse(after!)
  const key = { keyId: keyId!, hint, environment }
  if (type === 'scope.granted' || type === 'scope.removed') {
    return { id, at, type, ...key, scope: subject as Scope }
  }
  return { id, at, type: type as Exclude<Activity['type'], 'signup.created'> & `key.${string}`, ...key }
}

export function signupActivity(signup: Signup): Activity {
  return { id: SIGNUP_PREFIX + signup.id.slice(4), at: signup.createdAt, type: 'signup.created', signup }
}

/** The row of a key whose time was over at `at`. */
export function expiryOf(
  { id, hint, environment }: Pick<Key, 'id' | 'hint' | 'environment'>,
  at: number,
): Activity {
  return { id: EXPIRY_PREFIX + id, at, type: 'key.expired', keyId: id, hint, environment }
}
