import { strictObject } from 'valibot'
import { after, afterAll } from '../after.ts'
import type { Staleness } from '../cache/freshness.ts'
import { optionalRfc3339, rfc3339 } from '../http/time.ts'
import type { Allowance } from '../limits/limiter.ts'
import { LIMIT_NAMES, type Policy } from '../limits/policies.ts'
import type { MaybePromise } from '../ports.ts'
import type { Grant } from '../policy/decide.ts'
import { MODULE_NAMES, MODULES } from '../policy/modules.ts'
import { SCOPES } from '../policy/scopes.ts'
import { VERSION } from '../version.ts'
import { partnerMember } from './partner-member.ts'
import { defineRoute, type HandlerPorts, type Route } from './route.ts'

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
  body: strictObject({ partner: partnerMember }),
  limits: ['verify'],
  dependsOn: 'nothing',
  handle: ({ client }, grant, ports) => {
    const { partner, key } = grant
    return after(limits(grant, ports, client()), (limits) => ({
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
        version: VERSION,
        checked_at: rfc3339(grant.now),
        max_staleness_ms: ports.staleness.maxStalenessMs,
        ...staleIfError(ports.staleness),
      },
    }))
  },
})

function permissions({ principal: { held, needed }, partner }: Grant, { endpoints }: HandlerPorts) {
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
function limits({ principal, key }: Grant, { limiter, elapsed }: HandlerPorts, client: string | undefined) {
  const asked = LIMIT_NAMES.flatMap((name): [Policy, MaybePromise<Allowance>][] => {
    const policy = principal.policies[name]
    const subject = name === 'authfail' ? client : key.id
    if (policy === undefined || subject === undefined) return []
    return [[policy, limiter.peek(policy, subject, elapsed())]]
  })
  return afterAll(
    asked.map(([, left]) => left),
    (left: readonly Allowance[]) =>
      left.map(({ remaining, resetSeconds }, index) => {
        const { name, quota, windowSeconds } = asked[index]![0]
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

function staleIfError({ staleIfErrorMs, outage }: Staleness) {
  if (staleIfErrorMs === 0) return undefined
  return { stale_if_error: { seconds: staleIfErrorMs / 1000, since: optionalRfc3339(outage()?.since) } }
}
