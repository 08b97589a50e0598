import { array, boolean, literal, nullable, number, object, picklist, strictObject, string } from 'valibot'
import { optionalRfc3339, rfc3339 } from '../http/time.ts'
import { LIMIT_NAMES } from '../limits/policies.ts'
import type { Grant } from '../policy/decide.ts'
import { MODULE_NAMES, MODULES } from '../policy/modules.ts'
import { SCOPES } from '../policy/scopes.ts'
import { VERSION } from '../version.ts'
import { defineRoute, type HandlerPorts, type Route } from './route.ts'

export const verifyKey: Route = defineRoute({
  name: 'verify-key',
  access: 'key',
  method: 'POST',
  path: '/developer/verify-key',
  summary: 'Verify a key',
  parameters: {},
  body: strictObject({ partner: string() }),
  reply: object({
    data: strictObject({
      valid: literal(true),
      partner: strictObject({ slug: string(), name: string() }),
      key: strictObject({
        id: string(),
        name: string(),
        environment: picklist(['live', 'test']),
        hint: string(),
        created_at: string(),
        expires_at: nullable(string()),
        rotation: nullable(strictObject({ successor_id: string(), retires_at: string() })),
      }),
      scopes: array(strictObject({ scope: picklist(SCOPES), in_force: boolean() })),
      modules: array(
        strictObject({
          module: picklist(MODULE_NAMES),
          active: boolean(),
          ready: boolean(),
          missing_scope: nullable(picklist(SCOPES)),
        }),
      ),
      endpoints: array(
        strictObject({ method: string(), path: string(), scope: picklist(SCOPES), allowed: boolean() }),
      ),
      limits: array(
        strictObject({
          policy: picklist(LIMIT_NAMES),
          quota: number(),
          window_seconds: number(),
          remaining: number(),
          resets_in_seconds: number(),
        }),
      ),
      version: string(),
      checked_at: string(),
      max_staleness_ms: number(),
    }),
  }),
  limits: ['verify'],
  dependsOn: 'nothing',
  handle: ({ client }, grant, ports) => {
    const { partner, key } = grant
    return {
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
        limits: limits(grant, ports, client),
        version: VERSION,
        checked_at: rfc3339(grant.now),
        max_staleness_ms: ports.maxStalenessMs,
      },
    }
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
function limits({ principal, key }: Grant, { limiter, elapsed }: HandlerPorts, client: string) {
  return LIMIT_NAMES.flatMap((name) => {
    const policy = principal.policies[name]
    if (policy === undefined) return []
    const { remaining, resetSeconds } = limiter.peek(policy, name === 'authfail' ? client : key.id, elapsed())
    return [{
      policy: name,
      quota: policy.quota,
      window_seconds: policy.windowSeconds,
      remaining,
      resets_in_seconds: resetSeconds,
    }]
  })
}
