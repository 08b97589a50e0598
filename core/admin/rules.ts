/** What an argument of an administrative change has to be, whatever the change, and limits after one. */
import { SLUG_PATTERN } from '../content/slug.ts'
import { keyState } from '../keys/state.ts'
import { MAX_QUOTA, MAX_WINDOW_SECONDS, OVERRIDABLE_LIMITS } from '../limits/policies.ts'
import type { Key, LimitOverrides, OverridableLimit, Partner } from '../model.ts'
import { isModule, type Module, MODULE_NAMES, moduleFor } from '../policy/modules.ts'
import { isScope, type Scope, SCOPES } from '../policy/scopes.ts'
import { echo } from './echo.ts'
import { brokenNameRule } from './name.ts'
import { Refusal } from './refusal.ts'

/** @throws {Refusal} `invalid_slug` unless the text may be a partner's slug. */
export function requireSlug(slug: string): void {
  if (SLUG_PATTERN.test(slug)) return
  throw new Refusal(
    'invalid_slug',
    `A slug is 1–80 of a-z, 0-9 and -, a letter or digit first; ${echo(slug)} is not.`,
  )
}

/** @throws {Refusal} `invalid_name` unless the text may be the name of a partner or key. */
export function requireName(name: string): void {
  const rule = brokenNameRule(name)
  if (rule !== undefined) throw new Refusal('invalid_name', `A name ${rule}; ${echo(name)} arrived.`)
}

/** The modules of these names in the contract's order, each once. @throws {Refusal} `unknown_module` */
export function requireModules(names: readonly string[]): readonly Module[] {
  for (const name of names) {
    if (isModule(name)) continue
    throw new Refusal(
      'unknown_module',
      `There is no module ${echo(name)}; the modules are ${MODULE_NAMES.join(', ')}.`,
    )
  }
  return MODULE_NAMES.filter((module) => names.includes(module))
}

/** The scopes of these names in the specification's order, each once. @throws {Refusal} `unknown_scope` */
export function requireScopes(names: readonly string[]): readonly Scope[] {
  for (const name of names) {
    if (isScope(name)) continue
    throw new Refusal(
      'unknown_scope',
      `There is no scope ${echo(name)}; the scopes are ${SCOPES.join(', ')}.`,
    )
  }
  return SCOPES.filter((scope) => names.includes(scope))
}

/** @throws {Refusal} `module_inactive`, with the command to run first, unless the partner's modules need all scopes. */
export function requireActiveModules(partner: Partner, scopes: readonly Scope[]): void {
  const idle = scopes.filter((scope) => !partner.modules.includes(moduleFor(scope)))
  if (idle.length === 0) return
  const modules = idle.map(moduleFor).join(' ')
  throw new Refusal(
    'module_inactive',
    `No active module of ${partner.slug} needs ${idle.join(' and ')}. ` +
      `To activate what does: partner-api modules activate ${partner.slug} ${modules}`,
  )
}

/** @throws {Refusal} `partner_removed` */
export function requireNotRemoved(partner: Partner): void {
  if (partner.state !== 'removed') return
  throw new Refusal('partner_removed', `Partner ${partner.slug} was removed, and that is final.`)
}

/** @throws {Refusal} `key_revoked`, `key_expired`: what is final is no longer changed. */
export function requireUsable(key: Key, now: number): void {
  const state = keyState(key, now)
  if (state === 'revoked') {
    throw new Refusal('key_revoked', `Key ${key.id} is revoked, and that is final. Issue another one.`)
  }
  if (state === 'expired') {
    throw new Refusal('key_expired', `Key ${key.id} has expired, and that is final. Issue another one.`)
  }
}

/** The last millisecond that RFC 3339 can say. */
const endOfTime = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** @throws {Refusal} `invalid_expiry` unless a key can expire then. */
export function requireFuture(expiresAt: number | undefined, now: number): void {
  if (expiresAt === undefined || (expiresAt > now && expiresAt <= endOfTime)) return
  throw new Refusal('invalid_expiry', 'A key expires in the future and before the year 10000, or never.')
}

/** @throws {Refusal} `invalid_limit` unless quotas are integers from 0 and windows 1–86,400 s. */
export function requireLimits(limits: LimitOverrides): void {
  for (const [policy, limit] of Object.entries(limits)) {
    const known = isOverridable(policy)
    if (known && isCount(limit.quota, 0, MAX_QUOTA) && isCount(limit.windowSeconds, 1, MAX_WINDOW_SECONDS)) {
      continue
    }
    throw new Refusal(
      'invalid_limit',
      'A limit is for key, signup or verify and has a quota of 0–1,000,000,000 requests in 1–86,400 seconds; ' +
        `${echo(policy)} with ${echo(limit.quota)} in ${echo(limit.windowSeconds)} arrived.`,
    )
  }
}

/** Whether partners and keys may carry limits of their own for a policy of this name. */
export function isOverridable(policy: string): policy is OverridableLimit {
  return (OVERRIDABLE_LIMITS as readonly string[]).includes(policy)
}

function isCount(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max
}

/** A change of the limits that a partner or a key carries itself. */
export interface LimitChange {
  /** Limits that it gets, in the place of those it has for the same policies. */
  readonly set?: LimitOverrides | undefined
  /** Policies for which it carries none any more: its partner's numbers, or the service's, count again. */
  readonly clear?: readonly string[] | undefined
}

/**
 * The limits after a change. What is both set and cleared is set.
 *
 * @throws {Refusal} `invalid_limit`
 */
export function changedLimits(limits: LimitOverrides, { set = {}, clear = [] }: LimitChange): LimitOverrides {
  requireLimits(set)
  for (const policy of clear) {
    if (isOverridable(policy)) continue
    throw new Refusal(
      'invalid_limit',
      `A partner or key carries limits for key, signup and verify only, and none for ${echo(policy)}.`,
    )
  }
  const kept = Object.entries(limits).filter(([policy]) => !clear.includes(policy))
  return Object.fromEntries([...kept, ...Object.entries(set)])
}

/** Whether two sets of limits say the same. */
export function sameLimits(a: LimitOverrides, b: LimitOverrides): boolean {
  const listed = (limits: LimitOverrides) =>
    Object.entries(limits).map(([policy, { quota, windowSeconds }]) => `${policy}=${quota}/${windowSeconds}`)
      .sort().join()
  return listed(a) === listed(b)
}
