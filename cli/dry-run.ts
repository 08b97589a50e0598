/** Dry runs: which requests of the last days a change would refuse, by the policy's decisions before and after it. */
import { applyChanges, factsOf } from '../adapters/stores/change-set.ts'
import { findKey, findPartner } from '../core/admin/apply.ts'
import { type ProblemCode, PROBLEMS } from '../core/http/problem.ts'
import { preparePrincipal } from '../core/keys/principal.ts'
import { MS_PER_DAY, rfc3339, utcDay } from '../core/lib/time.ts'
import { DEFAULT_LIMITS, LIMIT_NAMES, policiesFor, type Policy } from '../core/limits/policies.ts'
import type { Key, KeyFacts } from '../core/model.ts'
import { admit, authorize } from '../core/policy/decide.ts'
import type { Scope } from '../core/policy/modules.ts'
import type { Change } from '../core/ports/changes.ts'
import type { KeyUsage } from '../core/ports/reports.ts'
import type { Store } from '../core/ports/store.ts'
import { ROUTES } from '../core/routes/router.ts'
import { formatTable, formatTime, pluralize, type TableStyle } from './output/text.ts'
import { timeOf } from './store.ts'

/** Requests of one key that a change would refuse. */
interface Refusal {
  /** `null` for those over a limit. */
  readonly endpoint: string | null
  /** The limit that they are over, or `null`. */
  readonly policy: string | null
  readonly code: ProblemCode
  readonly status: number
  /** Over a limit: at least so many. */
  readonly requests: number
  /** Those that had failed anyway. */
  readonly errors: number
}

/** What a change does to one key. */
interface Effect {
  readonly facts: KeyFacts
  /** When it does: later for an expiry. */
  readonly at: number
  readonly denials: ReadonlyMap<string, ProblemCode>
  /** Those that let less through than before. */
  readonly limits: readonly Policy[]
  readonly hasNewRanges: boolean
}

/** The result names the keys with the most requests. */
const maxKeys = 1000
const maxShownKeys = 20
/** Bounds the counts of a page of keys: one for each key, day and endpoint. */
const maxKeyDays = 7000

const keyedRoutes = ROUTES.filter((route) => route.access === 'key')

/** @param change Makes the change, in a store that only records it. */
export async function dryRun(
  store: Store,
  days: number,
  style: TableStyle,
  change: (store: Store) => Promise<unknown>,
) {
  let changes: readonly Change[] = []
  const apply: Store['apply'] = (recorded) => {
    changes = recorded
    return true
  }
  await change({ ...store, apply })
  const now = timeOf(store)
  const [from, to] = [utcDay(now - (days - 1) * MS_PER_DAY), utcDay(now)]
  const totals = new Map<string, Refusal & { readonly keys: number }>()
  const keys = []
  let [keyCount, requestCount, start, hasNewRanges] = [0, 0, now, false]

  for await (const page of pagesOfKeys(store, changes[0], Math.ceil(Math.min(maxKeys, maxKeyDays / days)))) {
    const effects = effectsOf(page, changes, now)
    hasNewRanges ||= effects.some((effect) => effect.hasNewRanges)
    const affected = effects.filter(({ denials, limits }) => denials.size + limits.length > 0)
    const ids = affected.map(({ facts }) => facts.key.id)
    const usage = Map.groupBy(ids.length > 0 ? await store.keyUsage(ids, from, to) : [], ({ keyId }) => keyId)
    for (const effect of affected) {
      const { id, partner, name } = effect.facts.key
      const refusals = countRefusals(effect, usage.get(id) ?? [], days)
      if (refusals.length === 0) continue
      for (const refusal of refusals) {
        const title = `${refusal.endpoint} ${refusal.policy} ${refusal.code}`
        const { keys, requests, errors } = totals.get(title) ?? { keys: 0, requests: 0, errors: 0 }
        const sums = { requests: requests + refusal.requests, errors: errors + refusal.errors }
        totals.set(title, { ...refusal, ...sums, keys: keys + 1 })
      }
      const requests = refusals.reduce((sum, refusal) => sum + refusal.requests, 0)
      keys.push({ id, partner, name, refused_from: rfc3339(effect.at), requests, refusals })
      keyCount++
      requestCount += requests
      start = effect.at
    }
    keys.sort((a, b) => b.requests - a.requests).splice(maxKeys)
  }

  const refusals = [...totals.values()]
  const hasLimits = refusals.some(({ policy }) => policy !== null)
  const sentence =
    `${hasLimits ? 'At least ' : ''}${pluralize(requestCount, 'request')} from ${from} to ${to} ` +
    `(UTC) would be refused${start > now ? ` from ${formatTime(start)} on` : ''}, with ${
      pluralize(keyCount, 'key')
    }.\n`
  const toCells = ({ endpoint, policy, code, status, keys, requests, errors }: typeof refusals[number]) => [
    ...[endpoint ?? `any over the ${policy} limit`, `${status} ${code}`, keys.toLocaleString('en')],
    ...[`${policy === null ? '' : 'at least '}${requests.toLocaleString('en')}`, errors.toLocaleString('en')],
  ]
  const byEndpoint = formatTable(
    ['endpoint', 'refused with', 'keys', 'requests', 'failed'],
    refusals.map(toCells),
    style,
  )
  const byKey = formatTable(
    ['key', 'partner', 'name', 'requests'],
    keys.slice(0, maxShownKeys).map((
      { id, partner, name, requests },
    ) => [id, partner, name, requests.toLocaleString('en')]),
    style,
  )
  const notes = [
    'Dry run: nothing was changed.',
    ...(changes.length === 0 ? ['The change has been made already.'] : []),
    ...(keys.length > maxShownKeys
      ? [`The busiest ${maxShownKeys} keys are shown; --json has up to ${maxKeys}.`]
      : []),
    ...(hasLimits
      ? [
        'Only days are counted, so the numbers for limits are lower bounds: bursts within a day exceed a limit sooner.',
      ]
      : []),
    ...(hasNewRanges
      ? ['The addresses of requests are not recorded, so how many the new address ranges refuse is unknown.']
      : []),
  ]
  return {
    data: {
      ...{ dry_run: true, changes: changes.map(({ type }) => type), from, to, requests: requestCount },
      ...{
        is_lower_bound: hasLimits,
        are_addresses_unknown: hasNewRanges,
        keys_affected: keyCount,
        refusals,
        keys,
      },
    },
    text: sentence + (refusals.length === 0 ? '' : `\n${byEndpoint}\n${byKey}`),
    notes: () => notes,
  }
}

/** The keys that a change of one partner or key concerns. */
async function* pagesOfKeys(
  store: Store,
  change: Change | undefined,
  pageKeys: number,
): AsyncGenerator<readonly KeyFacts[]> {
  if (change === undefined) return
  if ('id' in change) yield [await findKey(store, change.id)]
  if (!('slug' in change)) return
  const partner = await findPartner(store, change.slug)
  let after: Key | undefined
  for (;;) {
    const page = await store.listKeys({ partner: partner.slug }, after, pageKeys)
    yield page.map((key) => ({ key, partner }))
    if (page.length < pageKeys) return
    after = page.at(-1)
  }
}

function effectsOf(page: readonly KeyFacts[], changes: readonly Change[], now: number): Effect[] {
  const changed = applyChanges(
    factsOf(
      new Map(page.map(({ partner }) => [partner.slug, partner])),
      new Map(page.map(({ key }) => [key.id, key])),
    ),
    changes,
  )
  return page.map((before) => {
    const key = changed.keys.get(before.key.id) ?? before.key
    const partner = changed.partners.get(before.partner.slug) ?? before.partner
    return effectOf(before, { key, partner }, now)
  })
}

function effectOf(before: KeyFacts, after: KeyFacts, now: number): Effect {
  const { expiresAt } = after.key
  const at = expiresAt === undefined || expiresAt === before.key.expiresAt ? now : expiresAt
  const [denialBefore, denialAfter] = [createPolicy(before, at), createPolicy(after, at)]
  const denials = keyedRoutes.flatMap(({ name, scope }) => {
    const code = denialBefore(scope) === undefined ? denialAfter(scope) : undefined
    return code === undefined ? [] : [[name, code] as const]
  })
  const [limitsBefore, limitsAfter] = [before, after].map((facts) => policiesFor(DEFAULT_LIMITS, facts))
  const limits = LIMIT_NAMES.flatMap((name) => {
    const [limitBefore, limit] = [limitsBefore![name], limitsAfter![name]]
    const isLower = limit && (limitBefore === undefined || mostIn(1, limit) < mostIn(1, limitBefore))
    return isLower ? [limit] : []
  })
  const hasNewRanges = after.key.allow.length > 0 && after.key.allow.join() !== before.key.allow.join()
  return { facts: before, at, denials: new Map(denials), limits, hasNewRanges }
}

/** The decision of the policy on requests with a key for its own partner. */
function createPolicy(facts: KeyFacts, now: number): (scope: Scope | undefined) => ProblemCode | undefined {
  // Which addresses requests came from is not recorded.
  const principal = preparePrincipal({ ...facts, key: { ...facts.key, allow: [] } }, {})
  return (scope) => {
    const request = { principal, address: undefined, requestedPartner: facts.partner.slug, scope, now }
    const decision = admit(request) ?? authorize(request)
    return decision.allowed ? undefined : decision.reason
  }
}

function countRefusals({ denials, limits }: Effect, usage: readonly KeyUsage[], days: number): Refusal[] {
  const denied = Array.from(denials, ([endpoint, code]): Refusal => {
    const counts = usage.filter((count) => count.endpoint === endpoint)
    const [requests, errors] = [sumOf(counts, 'requests'), sumOf(counts, 'errors')]
    return { endpoint, policy: null, code, status: PROBLEMS[code].status, requests, errors }
  })
  const limited = limits.map((limit): Refusal => {
    const names = keyedRoutes.filter((route) => route.limits.includes(limit.name)).map(({ name }) =>
      name as string
    )
    const counts = usage.filter(({ endpoint }) => names.includes(endpoint) && !denials.has(endpoint))
    const over = (counts: readonly KeyUsage[], days: number) =>
      Math.max(0, sumOf(counts, 'requests') - sumOf(counts, 'errors') - mostIn(days, limit))
    const byDay = [...Map.groupBy(counts, ({ day }) => day).values()].map((counts) => over(counts, 1))
    const requests = Math.max(byDay.reduce((sum, each) => sum + each, 0), over(counts, days))
    return { endpoint: null, policy: limit.name, code: 'rate_limited', status: 429, requests, errors: 0 }
  })
  return [...denied, ...limited.filter(({ requests }) => requests > 0)]
}

function sumOf(counts: readonly KeyUsage[], member: 'requests' | 'errors'): number {
  return counts.reduce((sum, count) => sum + count[member], 0)
}

/** The most requests that a limit lets through in whole days, which windows from the day before may reach into. */
function mostIn(days: number, { quota, windowSeconds }: Policy): number {
  return quota * (Math.ceil(days * 86_400 / windowSeconds) + 1)
}
