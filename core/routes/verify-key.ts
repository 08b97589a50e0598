import { API_VERSION } from '../http/headers.ts'
import { all, andThen, type MaybePromise } from '../lib/promise.ts'
import { optionalRfc3339, rfc3339 } from '../lib/time.ts'
import type { RateLimitState } from '../limits/limiter.ts'
import { LIMIT_NAMES, type Policy } from '../limits/policies.ts'
import type { Grant } from '../policy/decide.ts'
import { MODULE_NAMES, MODULES, SCOPES } from '../policy/modules.ts'
import type { Verification } from '../wire.ts'
import type { HandlerContext } from './context.ts'
import { definePost } from './route.ts'

export const verifyKey = definePost({
  name: 'verify-key',
  path: '/developer/verify-key',
  summary: 'Verify a key',
  // The policy has checked the partner.
  body: { members: { partner: () => undefined }, toValue: (body) => body },
  limits: ['verify'],
  handle: ({ client }, grant, ports) =>
    andThen(quotasLeft(grant, ports, client()), (limits) => ({ data: describeKey(grant, ports, limits) })),
})

function describeKey(
  { partner, key, principal: { heldScopes, activeScopes }, now }: Grant,
  { endpoints, staleness }: HandlerContext,
  limits: Verification['limits'],
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
    scopes: SCOPES.filter((scope) => heldScopes.has(scope))
      .map((scope) => ({ scope, in_force: activeScopes.has(scope) })),
    modules: MODULE_NAMES.map((module) => {
      const { scope } = MODULES[module]
      const active = partner.modules.includes(module)
      const held = heldScopes.has(scope)
      return { module, active, ready: active && held, missing_scope: held ? null : scope }
    }),
    endpoints: endpoints.flatMap(({ method, path, scope }) =>
      scope === undefined
        ? []
        : [{ method, path, scope, allowed: heldScopes.has(scope) && activeScopes.has(scope) }]
    ),
    limits,
    version: API_VERSION,
    checked_at: rfc3339(now),
    max_staleness_ms: staleness.maxStalenessMs,
    ...(staleness.staleIfErrorMs > 0 && {
      stale_if_error: {
        seconds: staleness.staleIfErrorMs / 1000,
        since: optionalRfc3339(staleness.staleWindow()?.since),
      },
    }),
  }
}

/** The rest of each active quota. */
function quotasLeft(
  { principal, key }: Grant,
  { limiter, elapsed }: HandlerContext,
  client: string | undefined,
) {
  const peeked = LIMIT_NAMES.flatMap((name): [Policy, MaybePromise<RateLimitState>][] => {
    const policy = principal.policies[name]
    const subject = name === 'authfail' ? client : key.id
    if (policy === undefined || subject === undefined) return []
    return [[policy, limiter.peek(policy, subject, elapsed())]]
  })
  return all(
    peeked.map(([, left]) => left),
    (left: readonly RateLimitState[]) =>
      left.map(({ remaining, resetSeconds }, index) => {
        const { name, quota, windowSeconds } = peeked[index]![0]
        return {
          policy: name,
          quota,
          window_seconds: windowSeconds,
          remaining,
          resets_in_seconds: resetSeconds,
        }
      }),
  )
}
