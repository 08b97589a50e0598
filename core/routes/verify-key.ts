import { all, type MaybePromise } from '../lib/promise.ts'
import { optionalRfc3339, rfc3339 } from '../lib/time.ts'
import type { RateLimitState } from '../limits/limiter.ts'
import { type Counted, countedAs } from '../limits/partner-quotas.ts'
import { POLICY_NAMES } from '../limits/policies.ts'
import { API_VERSION } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import { partner } from '../schemas/input-schemas.ts'
import type { Verification } from '../wire.ts'
import { definePost, type Endpoint, type Staleness } from './route.ts'

export const verifyKey = definePost({
  name: 'verify-key',
  path: '/developer/verify-key',
  summary: 'Verify a key',
  body: { partner },
  limits: ['verify'],
  handle({ client }, grant, { endpoints, limiter, elapsed, staleness }) {
    const counted = policiesMet(grant, client)
    const now = elapsed()
    const states = counted.map(({ policy, subject }): MaybePromise<RateLimitState> =>
      limiter.peek(policy, subject, now)
    )
    return all(states, (left) => {
      const limits = counted.map(({ policy: { name, quota, windowSeconds } }, index) => ({
        policy: name,
        quota,
        window_seconds: windowSeconds,
        remaining: left[index]!.remaining,
        resets_in_seconds: left[index]!.resetSeconds,
      }))
      return { data: describeKey(grant, endpoints, limits, staleness) }
    })
  },
})

/** The active policies that the key meets, each with what it counts requests under. */
function policiesMet({ principal, partner, key, now }: Grant, client: () => string | undefined): Counted[] {
  return POLICY_NAMES.flatMap((name) => {
    const policy = principal.policies[name]
    if (policy === undefined) return []
    if (name === 'rotate' && !partner.selfService.includes(name)) return []
    if (name !== 'authfail') return countedAs(policy, key.id, partner, now)
    const subject = client()
    return subject === undefined ? [] : { policy, subject }
  })
}

function describeKey(
  { partner, key, now, principal: { modules, heldScopes, activeScopes } }: Grant,
  endpoints: readonly Endpoint[],
  limits: Verification['limits'],
  staleness: Staleness,
): Verification {
  return {
    valid: true,
    partner: { slug: partner.slug, name: partner.name },
    key: {
      id: key.id,
      name: key.name,
      environment: key.environment,
      hint: `…${key.hint}`,
      created_at: rfc3339(key.createdAt),
      expires_at: optionalRfc3339(key.expiresAt),
      rotation: key.successorId === undefined || key.retiresAt === undefined
        ? null
        : { successor_id: key.successorId, retires_at: rfc3339(key.retiresAt) },
    },
    scopes: modules.scopes.filter((scope) => heldScopes.has(scope))
      .map((scope) => ({ scope, in_force: activeScopes.has(scope) })),
    modules: modules.list.map(({ name: module, scope }) => {
      const active = partner.modules.includes(module)
      const held = heldScopes.has(scope)
      return { module, active, ready: active && held, missing_scope: held ? null : scope }
    }),
    endpoints: endpoints.flatMap(({ method, path, scope }) => {
      if (scope === undefined) return []
      return { method, path, scope, allowed: heldScopes.has(scope) && activeScopes.has(scope) }
    }),
    limits,
    version: API_VERSION,
    checked_at: rfc3339(now),
    max_staleness_ms: staleness.maxStalenessMs,
    stale_if_error: describeOutage(staleness),
  }
}

/** @returns `undefined` for a service whose cached facts never outlive an outage. */
function describeOutage({ staleIfErrorMs, staleWindow }: Staleness): Verification['stale_if_error'] {
  if (staleIfErrorMs === 0) return undefined
  return { seconds: staleIfErrorMs / 1000, since: optionalRfc3339(staleWindow()?.since) }
}
