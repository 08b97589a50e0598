import { strictObject } from 'valibot'
import { API_VERSION } from '../http/headers.ts'
import { all, andThen, type MaybePromise } from '../lib/promise.ts'
import { optionalRfc3339, rfc3339 } from '../lib/time.ts'
import type { RateLimitState } from '../limits/limiter.ts'
import { LIMIT_NAMES, type Policy } from '../limits/policies.ts'
import type { Grant } from '../policy/decide.ts'
import { MODULE_NAMES, MODULES, SCOPES } from '../policy/modules.ts'
import { partnerSchema } from '../schemas/fields.ts'
import type { HandlerContext, Staleness } from './context.ts'
import { defineRoute, type Route } from './route.ts'

export const verifyKey: Route = defineRoute({
  name: 'verify-key',
  access: 'key',
  method: 'POST',
  path: '/developer/verify-key',
  summary: 'Verify a key',
  description:
    'What a key may do, before you save it. Failures are the problems that any endpoint would give: what this says ' +
    'is what will happen.',
  parameters: {},
  body: strictObject({ partner: partnerSchema }),
  limits: ['verify'],
  cacheBy: 'none',
  handle: ({ client }, grant, ports) => {
    const { partner, key } = grant
    return andThen(quotasLeft(grant, ports, client()), (limits) => ({
      data: {
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
        ...permissions(grant, ports),
        limits,
        version: API_VERSION,
        checked_at: rfc3339(grant.now),
        max_staleness_ms: ports.staleness.maxStalenessMs,
        ...staleIfError(ports.staleness),
      },
    }))
  },
})

function permissions(
  { principal: { heldScopes: held, activeScopes: needed }, partner }: Grant,
  { endpoints }: HandlerContext,
) {
  return {
    scopes: SCOPES.filter((scope) => held.has(scope)).map((scope) => ({
      scope,
      in_force: needed.has(scope),
    })),
    modules: MODULE_NAMES.map((module) => {
      const { scope } = MODULES[module]
      const active = partner.modules.includes(module)
      return {
        module,
        active,
        ready: active && held.has(scope),
        missing_scope: held.has(scope) ? null : scope,
      }
    }),
    endpoints: endpoints.flatMap(({ method, path, scope }) =>
      scope === undefined ? [] : [{ method, path, scope, allowed: held.has(scope) && needed.has(scope) }]
    ),
  }
}

/** What is left of each policy that is on; asking spends nothing but the policy of asking. */
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

function staleIfError({ staleIfErrorMs, staleWindow: outage }: Staleness) {
  if (staleIfErrorMs === 0) return undefined
  return { stale_if_error: { seconds: staleIfErrorMs / 1000, since: optionalRfc3339(outage()?.since) } }
}
