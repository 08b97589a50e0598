import { containsKey, formatValue } from '../http/redact.ts'
import { keyState } from '../keys/lifecycle.ts'
import { parseCidr } from '../lib/ip-address.ts'
import { assertKind, assertOptions } from '../lib/options.ts'
import { EMAIL_PATTERN, SLUG_PATTERN } from '../content/scalars.ts'
import { formatDuration } from '../lib/time.ts'
import { countsPerPartner, MAX_QUOTA, maxWindowSeconds } from '../limits/policies.ts'
import {
  type Environment,
  type Key,
  type KeyDetails,
  type LimitOverrides,
  MAX_TAGS,
  type Modules,
  type Partner,
  type PartnerDetails,
  type Scope,
  SELF_SERVICE,
  TAG_PATTERN,
} from '../model.ts'
import { AdminError, notFoundError } from './error.ts'

/** @throws {AdminError} `invalid_slug` */
export function requireSlug(slug: string): void {
  if (typeof slug === 'string' && SLUG_PATTERN.test(slug)) return
  const detail = `A slug must be 1–80 of a-z, 0-9 and -, a letter or digit first, not ${formatValue(slug)}.`
  throw new AdminError('invalid_slug', detail)
}

/** @throws {AdminError} `invalid_name` */
export function requireName(name: string): void {
  const problem = findNameProblem(name)
  if (problem === undefined) return
  const subject = typeof name === 'string' ? `The name ${formatValue(name)}` : 'The name'
  throw new AdminError('invalid_name', `${subject} ${problem}.`)
}

/** @throws {TypeError} unless the environment of a key is one. */
export function assertEnvironment(where: string, environment: Environment): void {
  if (environments.includes(environment)) return
  throw new TypeError(
    `${where}: environment must be ${environments.join(' or ')}, not ${formatValue(environment)}.`,
  )
}

const environments: readonly Environment[] = ['live', 'test']

/** The modules or scopes of these names in the order of `known`, each once. */
export function requireNames<N extends string>(
  noun: 'module' | 'scope',
  names: readonly string[],
  known: readonly N[],
): readonly N[] {
  assertKind(`The ${noun}s`, names, 'a list of texts')
  for (const name of names) {
    if ((known as readonly string[]).includes(name)) continue
    const detail = `There is no ${noun} ${formatValue(name)}; the ${noun}s are ${known.join(', ')}.`
    throw notFoundError(`unknown_${noun}`, detail, name)
  }
  return known.filter((name) => names.includes(name))
}

/** The scopes whose module is not active for a partner. */
export function inactiveScopes(
  { modules: active }: Pick<Partner, 'modules'>,
  scopes: readonly Scope[],
  modules: Modules,
): Scope[] {
  return scopes.filter((scope) => !active.includes(modules.moduleFor(scope) ?? ''))
}

/** @throws {AdminError} `module_inactive` unless the module of each scope is active for the partner. */
export function requireActiveModules(partner: Partner, scopes: readonly Scope[], modules: Modules): void {
  const inactive = inactiveScopes(partner, scopes, modules)
  if (inactive.length === 0) return
  const { slug } = partner
  const args = [slug, ...inactive.map((scope) => modules.moduleFor(scope)!)]
  const remedy = { purpose: 'Run first', command: 'modules activate', args }
  const detail = `No active module of ${slug} needs ${inactive.join(' and ')}.`
  throw new AdminError('module_inactive', detail, remedy)
}

/** @throws {AdminError} `partner_removed` */
export function requireNotRemoved(partner: Partner): void {
  if (partner.state !== 'removed') return
  throw new AdminError('partner_removed', `Partner ${partner.slug} is removed. This cannot be undone.`)
}

/** @throws {AdminError} `key_revoked`, `key_expired` */
export function requireNotEnded(key: Key, now: number): void {
  const state = keyState(key, now)
  if (state !== 'revoked' && state !== 'expired') return
  const reason = state === 'revoked' ? 'is revoked' : 'has expired'
  throw new AdminError(`key_${state}`, `Key ${key.id} ${reason}. Issue a new one.`)
}

/** The last millisecond that RFC 3339 can express. */
const maxExpiry = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** @param latest May be infinite, as `expiresAt`. */
export function requireLifetime(expiresAt: number, latest: number, now: number): void {
  if (expiresAt <= latest) return
  const longest = formatDuration(latest - now)
  const args = ['--max-key-lifetime', 'DURATION']
  const remedy = { purpose: 'To change that', command: 'store update', args }
  throw new AdminError('invalid_expiry', `Keys of this store must have an expiry within ${longest}.`, remedy)
}

/** @throws {AdminError} `invalid_expiry` unless the instant is in the future and before the year 10000. */
export function requireExpiry(expiresAt: number | undefined, now: number): void {
  if (expiresAt === undefined || isIntegerBetween(expiresAt, now + 1, maxExpiry)) return
  if (!Number.isInteger(expiresAt)) {
    const detail = `The expiry of a key must be an integer, milliseconds since the epoch, not ${
      formatValue(expiresAt)
    }.`
    throw new AdminError('invalid_expiry', detail)
  }
  const detail = 'The expiry of a key must be in the future and before the year 10000.'
  throw new AdminError('invalid_expiry', detail)
}

/** @param allowed `KEY_POLICY_NAMES` of a key, `PARTNER_POLICY_NAMES` of a partner. */
export function requireLimits(limits: LimitOverrides, allowed: readonly string[]): void {
  for (const [policy, limit] of Object.entries(limits)) {
    requirePolicy(policy, allowed)
    if (policy === 'month') {
      assertOptions<{ readonly quota: number }>('limits.month', limit, { quota: 'anything' })
      if (isIntegerBetween(limit.quota, 0, MAX_QUOTA)) continue
      const rule = 'A limit of a month must have a quota of 0–1,000,000,000 requests'
      throw new AdminError('invalid_limit', `${rule}, not ${formatValue(limit.quota)}.`)
    }
    assertOptions(`limits.${policy}`, limit, { quota: 'anything', windowSeconds: 'anything' })
    const { quota, windowSeconds = NaN } = limit
    const most = maxWindowSeconds(policy)
    if (isIntegerBetween(quota, 0, MAX_QUOTA) && isIntegerBetween(windowSeconds, 1, most)) continue
    const given = `${formatValue(quota)} in ${formatValue(windowSeconds)} for ${formatValue(policy)}`
    const rule = `A limit must have a quota of 0–1,000,000,000 requests in 1–${most} seconds`
    throw new AdminError('invalid_limit', `${rule}, not ${given}.`)
  }
}

function requirePolicy(policy: string, allowed: readonly string[]): void {
  if (allowed.includes(policy)) return
  const owner = allowed.includes('month') ? 'partner' : 'key'
  const detail = `A ${owner} has limits for ${allowed.join(', ')} only, not for ${formatValue(policy)}.`
  const args = ['SLUG', '--limit', `${policy}=QUOTA${policy === 'month' ? '' : '/SECONDS'}`]
  const remedy = { purpose: 'To set it for all keys of a partner', command: 'partners update', args }
  throw new AdminError('invalid_limit', detail, countsPerPartner(policy) ? remedy : undefined)
}

function isIntegerBetween(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max
}

/** A change of the limits that a partner or a key carries itself. */
export interface LimitChange {
  /** Limits that it gets, replacing those for the same policies. */
  readonly set?: LimitOverrides | undefined
  /** Policies whose own limit it loses: its partner's or the service's applies again. */
  readonly clear?: readonly string[] | undefined
}

/** The limits after a change. A policy in both `set` and `clear` is set. @param allowed See `requireLimits`. */
export function applyLimitChange(
  limits: LimitOverrides,
  change: LimitChange = {},
  allowed: readonly string[],
): LimitOverrides {
  assertOptions('limits', change, { set: 'an object', clear: 'a list of texts' })
  const { set = {}, clear = [] } = change
  requireLimits(set, allowed)
  for (const policy of clear) requirePolicy(policy, allowed)
  const remaining = Object.entries(limits).filter(([policy]) => !clear.includes(policy))
  return Object.fromEntries([...remaining, ...Object.entries(set)])
}

export function equalLimits(a: LimitOverrides, b: LimitOverrides): boolean {
  const canonical = (limits: LimitOverrides) =>
    Object.entries(limits).map(([policy, { quota, windowSeconds }]) => `${policy}=${quota}/${windowSeconds}`)
      .sort().join()
  return canonical(a) === canonical(b)
}

type Details = PartnerDetails & KeyDetails

/** What is wrong with a detail, as the end of a sentence about it. */
const detailRules: {
  readonly [Name in keyof Details]: (value: NonNullable<Details[Name]>) => string | undefined
} = {
  contact: (text) =>
    text.length <= 254 && EMAIL_PATTERN.test(text)
      ? findNameProblem(text, 254)
      : 'must be an e-mail address of at most 254 characters',
  tags: (tags) =>
    new Set(tags).size <= MAX_TAGS && tags.every((tag) => TAG_PATTERN.test(tag))
      ? undefined
      : `must be at most ${MAX_TAGS}, each 1–40 of a-z, 0-9, -, _ and ., a letter or digit first`,
  externalId: (text) => findNameProblem(text),
  note: (text) => findNameProblem(text, 1_000),
  selfService: (actions) =>
    actions.every((action) => SELF_SERVICE.includes(action))
      ? undefined
      : `must be ${SELF_SERVICE.join(' or ')}, or both`,
  owner: (text) => findNameProblem(text),
}

/** Details that change; those that are `undefined` stay, and `null` removes one. */
export type DetailsChange<D> = { readonly [Name in keyof D]?: D[Name] | null | undefined }

/**
 * The details after a change. Lists are sorted, each item once.
 *
 * @param none The absent details.
 * @throws {AdminError} `invalid_details`
 */
export function changeDetails<D extends object>(none: D, change: DetailsChange<D>, before: D = none): D {
  const changed = Object.entries(none).map(([member, absent]) => {
    const name = member as keyof D & keyof Details
    const value: unknown = change[name]
    if (value === undefined) return [name, before[name]]
    if (value === null) return [name, absent]
    const problem = detailRules[name](value as never)
    if (problem === undefined) return [name, Array.isArray(value) ? [...new Set(value)].sort() : value]
    const noun = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    const given = formatValue([value].flat().join(' '))
    throw new AdminError('invalid_details', `The ${noun} ${given} ${problem}.`)
  })
  return Object.fromEntries(changed)
}

/** Whether a record has all members of a change already. */
export function hasAll<C extends object>(record: NoInfer<C>, change: C): boolean {
  return (Object.keys(change) as (keyof C)[])
    .every((name) => JSON.stringify(change[name]) === JSON.stringify(record[name]))
}

/** @returns What is wrong with a name of a partner, key or operator, as the end of a sentence about it. */
export function findNameProblem(name: string, max: number = 200): string | undefined {
  if (typeof name !== 'string') return `must be a text, not ${formatValue(name)}`
  if (name.trim() === '') return 'must not be empty'
  // A code point has at most two UTF-16 units: longer text need not be counted.
  if (name.length > 2 * max || Array.from(name).length > max) return `must have at most ${max} characters`
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)) return 'must not contain control characters or line breaks'
  if (!name.isWellFormed()) return 'must be well-formed Unicode'
  return containsKey(name) ? 'must not contain a key' : undefined
}

/** @returns What is wrong with an address range, as the end of a sentence about it. */
export function findRangeProblem(range: string): string | undefined {
  try {
    parseCidr(range)
    return undefined
  } catch (error) {
    if (error instanceof RangeError) return error.message
    throw error
  }
}

/** @throws {AdminError} `invalid_address_range`, with the first invalid range. */
export function requireRanges(ranges: readonly string[]): void {
  for (const range of ranges) {
    const problem = findRangeProblem(range)
    if (problem === undefined) continue
    throw new AdminError('invalid_address_range', `The range ${formatValue(range)} ${problem}.`)
  }
}
