import { type EncodedText, encodeText } from '../http/message.ts'
import type { Principal } from '../keys/principal.ts'
import { createLruCache } from '../lib/lru.ts'
import { all, type MaybePromise } from '../lib/promise.ts'
import { optionalRfc3339, rfc3339 } from '../lib/time.ts'
import type { RateLimitState } from '../limits/limiter.ts'
import { countedAs } from '../limits/partner-quotas.ts'
import { LIMIT_NAMES, type Policy } from '../limits/policies.ts'
import type { Grant } from '../policy/decide.ts'
import { partner } from '../schemas/inputs.ts'
import { API_VERSION } from '../model.ts'
import type { Verification } from '../wire.ts'
import { definePost, type Endpoint, type Staleness } from './route.ts'

export const verifyKey = definePost({
  name: 'verify-key',
  path: '/developer/verify-key',
  summary: 'Verify a key',
  body: { partner },
  limits: ['verify'],
  handle({ client }, grant, { endpoints, limiter, elapsed, staleness }) {
    const { head, limits } = describeKey(grant, endpoints)
    const now = elapsed()
    const texts: string[] = []
    const states: MaybePromise<RateLimitState>[] = []
    for (const each of limits) {
      const { policy, subject } = countedAs(each.policy, grant.key.id, grant.partner, grant.now)
      const counted = policy.name === 'authfail' ? client() : subject
      if (counted === undefined) continue
      texts.push(policy === each.policy ? each.text : limitText(policy))
      states.push(limiter.peek(policy, counted, now))
    }
    return all(states, (left: readonly RateLimitState[]) => {
      let tail = '['
      for (let index = 0; index < left.length; index++) {
        const { remaining, resetSeconds } = left[index]!
        tail += `${index === 0 ? '' : ','}${texts[index]}${remaining},"resets_in_seconds":${resetSeconds}}`
      }
      tail += `],${checkText(grant.now, staleness)}}}`
      return { json: { text: head.text + tail, utf8: head.utf8 + tail } }
    })
  },
})

/** What every check of a key shows alike. */
interface Description {
  readonly principal: Principal
  readonly endpoints: readonly Endpoint[]
  /** The body as far as `limits`. */
  readonly head: EncodedText
  /** The active policies, and the JSON of each as far as `remaining`. */
  readonly limits: readonly { readonly policy: Policy; readonly text: string }[]
}

/** Serialising them again would take two thirds of the time of a check. Each has 7 KB. */
const descriptions = createLruCache<Description>(1_000)

function describeKey(grant: Grant, endpoints: readonly Endpoint[]): Description {
  const { principal, key } = grant
  const last = descriptions.get(key.id)
  // A change of facts makes the principal anew.
  if (last?.principal === principal && last.endpoints === endpoints) return last
  const data = JSON.stringify({ data: describeFacts(grant, endpoints) })
  const head = encodeText(`${data.slice(0, -2)},"limits":`)
  const limits = LIMIT_NAMES.flatMap((name) => {
    const policy = principal.policies[name]
    if (policy === undefined) return []
    // The key meets it only if the partner may rotate keys.
    if (name === 'rotate' && !principal.partner.selfService.includes(name)) return []
    return [{ policy, text: limitText(policy) }]
  })
  const description = { principal, endpoints, head, limits }
  descriptions.set(key.id, description)
  return description
}

/** The JSON of a policy as far as `remaining`. */
function limitText({ name: policy, quota, windowSeconds: window_seconds }: Policy): string {
  return `${JSON.stringify({ policy, quota, window_seconds }).slice(0, -1)},"remaining":`
}

type Check = 'limits' | 'version' | 'checked_at' | 'max_staleness_ms' | 'stale_if_error'

function describeFacts(
  { partner, key, principal: { modules, heldScopes, activeScopes } }: Grant,
  endpoints: readonly Endpoint[],
): Omit<Verification, Check> {
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
    endpoints: endpoints.flatMap(({ method, path, scope }) =>
      scope === undefined
        ? []
        : [{ method, path, scope, allowed: heldScopes.has(scope) && activeScopes.has(scope) }]
    ),
  }
}

/** The members that depend on the time, after `limits`. */
function checkText(now: number, { maxStalenessMs, staleIfErrorMs, staleWindow }: Staleness): string {
  const checkedAt = rfc3339(now)
  const text = `"version":"${API_VERSION}","checked_at":"${checkedAt}","max_staleness_ms":${maxStalenessMs}`
  if (staleIfErrorMs === 0) return text
  const staleness = { seconds: staleIfErrorMs / 1000, since: optionalRfc3339(staleWindow()?.since) }
  return `${text},"stale_if_error":${JSON.stringify(staleness)}`
}
