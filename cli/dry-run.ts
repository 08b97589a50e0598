/** Dry runs: which requests of the last days a change would refuse, by the policy's decisions before and after it. */
import { findKey, findPartner } from '../core/admin/apply.ts'
import { applyChanges } from '../core/admin/change-set.ts'
import { type ProblemCode, PROBLEMS } from '../core/http/problem.ts'
import { endOf } from '../core/keys/lifecycle.ts'
import { preparePrincipal } from '../core/keys/principal.ts'
import { MS_PER_DAY, rfc3339, utcDay } from '../core/lib/time.ts'
import { type QuotaUse, readQuotaUse } from '../core/limits/partner-quotas.ts'
import { DEFAULT_LIMITS, isPartnerQuota, policiesFor, type Policy } from '../core/limits/policies.ts'
import type { Key, KeyFacts, Modules, Partner, Scope } from '../core/model.ts'
import { admit, authorize } from '../core/policy/decide.ts'
import type { Change } from '../core/ports/changes.ts'
import type { KeyUsage } from '../core/ports/reports.ts'
import { pagesOf, type Store } from '../core/ports/store.ts'
import type { CommandResult } from './output/print.ts'
import {
  formatCount,
  formatQuotas,
  formatTable,
  formatTime,
  pluralize,
  type TableStyle,
} from './output/text.ts'
import { sumOf } from './reports/counts.ts'
import { type Endpoints, readEndpoints, timeOf } from './store/open.ts'

/** Requests that would be refused for one reason. */
interface Refusal {
  /** `null` for requests over a limit. */
  readonly endpoint: string | null
  /** The limit that they are over, or `null`. */
  readonly policy: string | null
  readonly code: ProblemCode
  /** Over a limit: at least so many. */
  readonly requests: number
  /** The number of them that had failed anyway. */
  readonly errors: number
}

/** The days that a dry run checks, and now. */
interface CheckedPeriod {
  readonly from: string
  readonly to: string
  readonly days: number
  readonly now: number
}

/** The refusals of one key. */
interface RefusedKey {
  readonly id: string
  readonly partner: string
  readonly name: string
  /** An instant, RFC 3339. */
  readonly refused_from: string
  readonly requests: number
  readonly refusals: readonly Refusal[]
}

/** What a change would refuse. */
interface Found {
  /** The refusals, by endpoint, policy and code. */
  readonly totals: Map<string, Refusal & { readonly keys: number }>
  /** The keys with the most requests. */
  keys: RefusedKey[]
  keyCount: number
  requestCount: number
  /** When the refusals begin. */
  start: number
  /** The quotas of the partner, if the change lowers one. */
  quotas: readonly QuotaUse[]
  hasLowerLimits: boolean
  hasNewRanges: boolean
}

/** The result names the keys with the most requests. */
const maxKeys = 1000
const maxShownKeys = 20
/** Bounds the counts of a page of keys, which has one for each day and endpoint of each key. */
const maxKeyDays = 7000

/** @param change Passes the changes that it would make: each part is judged at once, since there may be many. */
export async function dryRun(
  store: Store,
  days: number,
  style: TableStyle,
  change: (collect: (changes: readonly Change[]) => Promise<void>) => Promise<void>,
): Promise<CommandResult> {
  const now = timeOf(store)
  const period = { from: utcDay(now - (days - 1) * MS_PER_DAY), to: utcDay(now), days, now }
  const { found, add } = createRefusalSum(store, await readEndpoints(store), period)
  const types: string[] = []
  await change(async (changes) => {
    types.push(...changes.map(({ type }) => type))
    await add(changes)
  })
  const { keys, keyCount, requestCount, quotas, hasLowerLimits, hasNewRanges } = found
  const isUnknown = hasNewRanges && requestCount === 0
  const isLowerBound = !isUnknown && (hasLowerLimits || hasNewRanges || quotas.length > 0)
  return {
    data: {
      dry_run: true,
      changes: types,
      from: period.from,
      to: period.to,
      requests: isUnknown ? null : requestCount,
      is_lower_bound: isLowerBound,
      are_addresses_unknown: hasNewRanges,
      keys_affected: isUnknown ? null : keyCount,
      refusals: [...found.totals.values()],
      keys,
      quotas,
    },
    text: formatFound(found, period, { isUnknown, isLowerBound }, style),
    notes: () => notesOn(found, types),
  }
}

function formatFound(
  { totals, keys, keyCount, requestCount, start }: Found,
  { from, to, now }: CheckedPeriod,
  { isUnknown, isLowerBound }: { readonly isUnknown: boolean; readonly isLowerBound: boolean },
  style: TableStyle,
): string {
  const counted = `${isLowerBound ? 'At least ' : ''}${pluralize(requestCount, 'request')}`
  const requests = isUnknown ? 'An unknown number of requests' : counted
  const beginning = start > now ? ` from ${formatTime(start)} on` : ''
  const ofKeys = isUnknown ? '' : `, with ${pluralize(keyCount, 'key')}`
  const sentence = `${requests} from ${from} to ${to} (UTC) would be refused${beginning}${ofKeys}.\n`
  if (keyCount === 0) return sentence
  const byEndpoint = Array.from(totals.values(), ({ endpoint, policy, code, keys, requests, errors }) => [
    endpoint ?? `over the ${policy} limit`,
    `${PROBLEMS[code].status} ${code}`,
    formatCount(keys),
    formatCount(requests),
    formatCount(errors),
  ])
  const byKey = keys.slice(0, maxShownKeys)
    .map(({ id, partner, name, requests }) => [id, partner, name, formatCount(requests)])
  return [
    sentence,
    formatTable(['endpoint', 'refused with', 'keys', 'requests', 'failed'], byEndpoint, style),
    formatTable(['key', 'partner', 'name', 'requests'], byKey, style),
  ].join('\n')
}

function notesOn({ keys, quotas, hasLowerLimits, hasNewRanges }: Found, types: readonly string[]): string[] {
  const notes: readonly (readonly [holds: boolean, note: string])[] = [
    [true, 'Dry run: nothing was changed.'],
    [types.length === 0, 'Nothing would change.'],
    [keys.length > maxShownKeys, `The busiest ${maxShownKeys} keys are shown; --json has up to ${maxKeys}.`],
    [quotas.length > 0, `After the change: ${formatQuotas(quotas)}.`],
    [quotas.some((each) => each.remaining === 0), 'The quota is used up: requests are refused until then.'],
    [hasLowerLimits, 'Only days are counted: bursts within a day exceed a limit sooner.'],
    [hasNewRanges, 'Addresses are not recorded: how many requests the address ranges refuse is unknown.'],
  ]
  return notes.filter(([holds]) => holds).map(([, note]) => note)
}

/** Adds up the requests of a period that changes would refuse: by endpoint and reason, and by key. */
function createRefusalSum(
  store: Store,
  service: Endpoints,
  { from, to, days, now }: CheckedPeriod,
) {
  const found: Found = {
    totals: new Map(),
    keys: [],
    keyCount: 0,
    requestCount: 0,
    start: now,
    quotas: [],
    hasLowerLimits: false,
    hasNewRanges: false,
  }
  const pageRows = Math.ceil(Math.min(maxKeys, maxKeyDays / days))

  async function add(changes: readonly Change[]): Promise<void> {
    for await (const page of pagesOfKeys(store, changes, pageRows)) {
      const effects = effectsOf(store, page, changes, service, now)
      found.hasLowerLimits ||= effects.some(({ limits }) => limits.length > 0)
      found.hasNewRanges ||= effects.some((effect) => effect.hasNewRanges)
      const lowered = effects.find(({ lowersQuota }) => lowersQuota)
      if (lowered) found.quotas = await readQuotaUse(store, lowered.partner, now)
      const affected = effects.filter(({ denials, limits }) => denials.size + limits.length > 0)
      const ids = affected.map(({ key }) => key.id)
      const usage = Map.groupBy(await store.keyUsage(ids, from, to), ({ keyId }) => keyId)
      for (const effect of affected) {
        const { id, partner, name } = effect.key
        const refusals = countRefusals(effect, service, usage.get(id) ?? [], days)
        if (refusals.length === 0) continue
        for (const refusal of refusals) {
          const title = `${refusal.endpoint} ${refusal.policy} ${refusal.code}`
          const { keys, requests, errors } = found.totals.get(title) ?? { keys: 0, requests: 0, errors: 0 }
          found.totals.set(title, {
            ...refusal,
            requests: requests + refusal.requests,
            errors: errors + refusal.errors,
            keys: keys + 1,
          })
        }
        const requests = sumOf(refusals, 'requests')
        found.keys.push({ id, partner, name, refused_from: rfc3339(effect.at), requests, refusals })
        found.keyCount++
        found.requestCount += requests
        found.start = effect.at
      }
      found.keys.sort((a, b) => b.requests - a.requests).splice(maxKeys)
    }
  }

  return { found, add }
}

/** The keys that changes of one partner or key concern, in pages. */
async function* pagesOfKeys(store: Store, changes: readonly Change[], rows: number) {
  const change = changes.find((each) => 'id' in each || 'slug' in each)
  if (change && 'id' in change) yield [await findKey(store, change.id)]
  if (!change || !('slug' in change)) return
  const partner = await findPartner(store, change.slug)
  const readPage = (after: Key | undefined, rows: number) =>
    store.listKeys({ partner: partner.slug }, after, rows)
  for await (const page of pagesOf(readPage, rows)) yield page.map((key): KeyFacts => ({ key, partner }))
}

/** What a change does to a key. */
interface Effect {
  readonly key: Key
  readonly partner: Partner
  /** When it takes effect. */
  readonly at: number
  /** The reasons for which endpoints would refuse it, by their names. */
  readonly denials: ReadonlyMap<string, ProblemCode>
  /** The limits of the key that would be lower. */
  readonly limits: readonly Policy[]
  readonly lowersQuota: boolean
  readonly hasNewRanges: boolean
}

function effectsOf(
  { sha256 }: Store,
  page: readonly KeyFacts[],
  changes: readonly Change[],
  service: Endpoints,
  now: number,
): Effect[] {
  const partners = new Map(page.map(({ partner }) => [partner.slug, partner]))
  const keys = new Map(page.map(({ key }) => [key.id, key]))
  const changed = applyChanges({ partners, keys, modules: new Map() }, changes, sha256)
  return page.map((before) => {
    const key = changed.keys.get(before.key.id) ?? before.key
    const partner = changed.partners.get(before.partner.slug) ?? before.partner
    return effectOf(before, { key, partner }, service, now)
  })
}

function effectOf(
  before: KeyFacts,
  after: KeyFacts,
  { modules, keyedRoutes }: Endpoints,
  now: number,
): Effect {
  const { key } = after
  const at = endOf(key) === endOf(before.key) ? now : endOf(key) ?? now
  const codeBefore = createPolicy(before, modules, at)
  const codeAfter = createPolicy(after, modules, at)
  const denials = new Map<string, ProblemCode>()
  for (const { name, scope } of keyedRoutes) {
    const code = codeAfter(scope)
    if (code !== undefined && codeBefore(scope) === undefined) denials.set(name, code)
  }
  // A key whose requests are all refused anyway exceeds no limit, and meets no address range.
  const codeNow = createPolicy(after, modules, now)
  const open = keyedRoutes.filter(({ scope }) => codeNow(scope) === undefined)
  const limitsBefore = policiesFor(DEFAULT_LIMITS, before)
  let lowersQuota = false
  const limits = Object.values(policiesFor(DEFAULT_LIMITS, after)).filter((limit) => {
    const limitBefore = limitsBefore[limit.name]
    if (isPartnerQuota(limit.name)) {
      // Keys share it: what is used of it is shown instead.
      lowersQuota ||= limitBefore === undefined || limit.quota < limitBefore.quota ||
        limit.windowSeconds > limitBefore.windowSeconds
      return false
    }
    const isLower = limitBefore === undefined || mostIn(1, limit) < mostIn(1, limitBefore)
    return isLower && open.some(({ limits }) => limits.includes(limit.name))
  })
  const hasNewRanges = open.length > 0 && key.allow.length > 0 && key.allow.join() !== before.key.allow.join()
  return { key, partner: after.partner, at, denials, limits, lowersQuota, hasNewRanges }
}

/** The decision of the policy on requests with a key for its own partner. */
function createPolicy(
  facts: KeyFacts,
  modules: Modules,
  now: number,
): (scope: Scope | undefined) => ProblemCode | undefined {
  // Which addresses requests came from is not recorded.
  const principal = preparePrincipal({ ...facts, key: { ...facts.key, allow: [] } }, {}, modules)
  return (scope) => {
    const request = { principal, address: undefined, requestedPartner: facts.partner.slug, scope, now }
    return (admit(request) ?? authorize(request))?.reason
  }
}

function countRefusals(
  { denials, limits }: Effect,
  { keyedRoutes }: Endpoints,
  usage: readonly KeyUsage[],
  days: number,
): Refusal[] {
  const denied = Array.from(denials, ([endpoint, code]): Refusal => {
    const counts = usage.filter((count) => count.endpoint === endpoint)
    const requests = sumOf(counts, 'requests')
    return { endpoint, policy: null, code, requests, errors: sumOf(counts, 'errors') }
  })
  const limited = limits.map((limit): Refusal => {
    const names: readonly string[] = keyedRoutes.filter(({ limits }) => limits.includes(limit.name))
      .map(({ name }) => name)
    const counts = usage.filter(({ endpoint }) => names.includes(endpoint) && !denials.has(endpoint))
    const over = (counts: readonly KeyUsage[], days: number) =>
      Math.max(0, sumOf(counts, 'requests') - sumOf(counts, 'errors') - mostIn(days, limit))
    const byDay = [...Map.groupBy(counts, ({ day }) => day).values()]
    const requests = Math.max(byDay.reduce((sum, counts) => sum + over(counts, 1), 0), over(counts, days))
    return { endpoint: null, policy: limit.name, code: 'rate_limited', requests, errors: 0 }
  })
  return [...denied, ...limited.filter(({ requests }) => requests > 0)]
}

/** The most requests that a limit lets through in whole days, which windows from the day before may reach into. */
function mostIn(days: number, { quota, windowSeconds }: Policy): number {
  return quota * (Math.ceil(days * 86_400 / windowSeconds) + 1)
}
