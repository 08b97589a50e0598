import { containsKey, formatValue } from '../http/redact.ts'
import { keyState } from '../keys/lifecycle.ts'
import { SLUG_PATTERN } from '../lib/text.ts'
import { MAX_QUOTA, MAX_WINDOW_SECONDS, OVERRIDABLE_LIMITS } from '../limits/policies.ts'
import type { Key, LimitOverrides, OverridableLimit, Partner } from '../model.ts'
import { type Module, MODULE_NAMES, moduleForScope, type Scope, SCOPES } from '../policy/modules.ts'

/** Every reason for which an administrative change is refused. Codes are for programs and never change. */
export type AdminErrorCode =
  | 'partner_exists'
  | 'partner_not_found'
  | 'partner_removed'
  | 'invalid_slug'
  | 'invalid_name'
  | 'invalid_limit'
  | 'unknown_module'
  | 'unknown_scope'
  | 'module_inactive'
  | 'key_not_found'
  | 'key_revoked'
  | 'key_expired'
  | 'key_disabled'
  | 'key_rotated'
  | 'invalid_address_range'
  | 'invalid_duration'
  | 'invalid_expiry'
  | 'concurrent_change'

/**
 * Why an administrative change was refused. The message is for people: what could not be done, why, and
 * what arrived, but never anything in the shape of a key. Nothing was changed.
 */
export class AdminError extends Error {
  /** Always `Refusal`. */
  override readonly name = 'AdminError'
  /** Why it was refused. */
  readonly code: AdminErrorCode

  /** The message is a sentence for people, with nothing in it in the shape of a key. */
  constructor(code: AdminErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/** What an argument of an administrative change has to be, whatever the change, and limits after one. */

/** @throws {AdminError} `invalid_slug` unless the text may be a partner's slug. */
export function requireSlug(slug: string): void {
  if (SLUG_PATTERN.test(slug)) return
  throw new AdminError(
    'invalid_slug',
    `A slug is 1–80 of a-z, 0-9 and -, a letter or digit first; ${formatValue(slug)} is not.`,
  )
}

/** @throws {AdminError} `invalid_name` unless the text may be the name of a partner or key. */
export function requireName(name: string): void {
  const rule = validateName(name)
  if (rule !== undefined) {
    throw new AdminError('invalid_name', `A name ${rule}; ${formatValue(name)} arrived.`)
  }
}

/** The modules of these names in the contract's order, each once. @throws {AdminError} `unknown_module` */
export function requireModules(names: readonly string[]): readonly Module[] {
  return requireNames(names, MODULE_NAMES, 'module')
}

/** The scopes of these names in the contract's order, each once. @throws {AdminError} `unknown_scope` */
export function requireScopes(names: readonly string[]): readonly Scope[] {
  return requireNames(names, SCOPES, 'scope')
}

function requireNames<N extends string>(
  names: readonly string[],
  known: readonly N[],
  noun: 'module' | 'scope',
): readonly N[] {
  for (const name of names) {
    if ((known as readonly string[]).includes(name)) continue
    throw new AdminError(
      `unknown_${noun}`,
      `There is no ${noun} ${formatValue(name)}; the ${noun}s are ${known.join(', ')}.`,
    )
  }
  return known.filter((name) => names.includes(name))
}

/** @throws {AdminError} `module_inactive`, with the command to run first, unless the partner's modules need all scopes. */
export function requireActiveModules(partner: Partner, scopes: readonly Scope[]): void {
  const idle = scopes.filter((scope) => !partner.modules.includes(moduleForScope(scope)))
  if (idle.length === 0) return
  const modules = idle.map(moduleForScope).join(' ')
  throw new AdminError(
    'module_inactive',
    `No active module of ${partner.slug} needs ${idle.join(' and ')}. ` +
      `To activate what does: partner-api modules activate ${partner.slug} ${modules}`,
  )
}

/** @throws {AdminError} `partner_removed` */
export function requireNotRemoved(partner: Partner): void {
  if (partner.state !== 'removed') return
  throw new AdminError('partner_removed', `Partner ${partner.slug} was removed, and that is final.`)
}

/** @throws {AdminError} `key_revoked`, `key_expired`: what is final is no longer changed. */
export function requireNotEnded(key: Key, now: number): void {
  const state = keyState(key, now)
  if (state === 'revoked') {
    throw new AdminError('key_revoked', `Key ${key.id} is revoked, and that is final. Issue another one.`)
  }
  if (state === 'expired') {
    throw new AdminError('key_expired', `Key ${key.id} has expired, and that is final. Issue another one.`)
  }
}

/** The last millisecond that RFC 3339 can say. */
const maxExpiry = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** @throws {AdminError} `invalid_expiry` unless a key can expire then. */
export function requireExpiry(expiresAt: number | undefined, now: number): void {
  if (expiresAt === undefined || (expiresAt > now && expiresAt <= maxExpiry)) return
  throw new AdminError('invalid_expiry', 'A key expires in the future and before the year 10000, or never.')
}

/** @throws {AdminError} `invalid_limit` unless quotas are integers from 0 and windows 1–86,400 s. */
export function requireLimits(limits: LimitOverrides): void {
  for (const [policy, limit] of Object.entries(limits)) {
    const known = isOverridableLimit(policy)
    if (
      known && isIntegerBetween(limit.quota, 0, MAX_QUOTA) &&
      isIntegerBetween(limit.windowSeconds, 1, MAX_WINDOW_SECONDS)
    ) {
      continue
    }
    throw new AdminError(
      'invalid_limit',
      'A limit is for key, signup or verify and has a quota of 0–1,000,000,000 requests in 1–86,400 seconds; ' +
        `${formatValue(policy)} with ${formatValue(limit.quota)} in ${
          formatValue(limit.windowSeconds)
        } arrived.`,
    )
  }
}

/** Whether partners and keys may carry limits of their own for a policy of this name. */
export function isOverridableLimit(policy: string): policy is OverridableLimit {
  return (OVERRIDABLE_LIMITS as readonly string[]).includes(policy)
}

function isIntegerBetween(value: number, min: number, max: number): boolean {
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
 * @throws {AdminError} `invalid_limit`
 */
export function applyLimitChange(
  limits: LimitOverrides,
  { set = {}, clear = [] }: LimitChange,
): LimitOverrides {
  requireLimits(set)
  for (const policy of clear) {
    if (isOverridableLimit(policy)) continue
    throw new AdminError(
      'invalid_limit',
      `A partner or key carries limits for key, signup and verify only, and none for ${formatValue(policy)}.`,
    )
  }
  const remaining = Object.entries(limits).filter(([policy]) => !clear.includes(policy))
  return Object.fromEntries([...remaining, ...Object.entries(set)])
}

/** Whether two sets of limits say the same. */
export function equalLimits(a: LimitOverrides, b: LimitOverrides): boolean {
  const canonical = (limits: LimitOverrides) =>
    Object.entries(limits).map(([policy, { quota, windowSeconds }]) => `${policy}=${quota}/${windowSeconds}`)
      .sort().join()
  return canonical(a) === canonical(b)
}

/**
 * What is wrong with a name of a partner, a key or an operator, as a clause about it, or `undefined`: names have 1–200
 * code points, not only white space, none of them a control character or line break, and hold no key.
 */
export function validateName(name: string): string | undefined {
  if (name.trim() === '') return 'must not be empty'
  // 200 code points are at most 400 UTF-16 units: what is longer need not be counted.
  if (name.length > 400 || Array.from(name).length > 200) return 'has at most 200 characters'
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)) return 'holds no control characters or line breaks'
  if (!name.isWellFormed()) return 'must be well-formed Unicode'
  if (containsKey(name)) return 'must not hold a key'
  return undefined
}

/** The rule for names of operators, as a sentence for people. */
export const ACTOR_RULE =
  'An actor has 1 to 200 characters, none of them a control character or line break, and is not a key.'

/** Whether a text may stand in the audit trail as the name of an operator. */
export function isValidActor(text: string): boolean {
  return validateName(text) === undefined
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A hundred years, in milliseconds: sums with the present stay within what RFC 3339 can say. */
export const MAX_DURATION_MS: number = 36_525 * 86_400_000

/**
 * Reads a duration: an integer and `s`, `m`, `h` or `d`, or `0`; at most a hundred years.
 *
 * @returns Milliseconds, 0 or more.
 * @throws {AdminError} `invalid_duration`
 */
export function parseDuration(text: string): number {
  if (text === '0') return 0
  const [, count = '', unit = ''] = /^(\d{1,12})([smhd])$/.exec(text) ?? []
  const duration = Number(count) * (unitMs[unit] ?? NaN)
  if (duration <= MAX_DURATION_MS) return duration
  throw new AdminError(
    'invalid_duration',
    `A duration is 0, or a whole number and s, m, h or d, such as 24h, up to 36525d; ${
      formatValue(text)
    } is not.`,
  )
}
