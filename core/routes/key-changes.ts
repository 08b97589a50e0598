/** What partners do with their own keys: the same changes as the operator's, once the policy allows them. */
import type { IssuedKey, KeyAdministration } from '../admin/keys.ts'
import { MAX_OWN_OVERLAP_SECONDS } from '../keys/lifecycle.ts'
import type { AdminError, AdminErrorCode } from '../admin/error.ts'
import { Problem, type ProblemCode } from '../http/problem.ts'
import { optionalRfc3339, rfc3339 } from '../lib/time.ts'
import type { Grant } from '../policy/decide.ts'
import * as input from '../schemas/inputs.ts'
import type { KeyRevocation, KeyRotation } from '../wire.ts'
import { definePost, type HandlerContext } from './route.ts'

const cacheControl = 'private, no-store'

const defaultOverlapSeconds = 86_400
const overlap = input.integer(0, MAX_OWN_OVERLAP_SECONDS, {
  description: 'Seconds for which the key of the request still works.',
  examples: [defaultOverlapSeconds],
})

export const rotateKey = definePost({
  name: 'rotate-key',
  path: '/developer/rotate-key',
  selfService: 'rotate',
  summary: 'Rotate the key',
  problems: ['rotation_conflict'],
  body: { partner: input.partner, overlap_seconds: input.optional(overlap) },
  status: 201,
  limits: ['rotate'],
  async handle({ body }, grant, ports) {
    const { arrivedKey, key: { id } } = grant
    // A successor that is not known here was made by a request that may not have its response yet: it is not replaced.
    const options = {
      overlapMs: (body.overlap_seconds ?? defaultOverlapSeconds) * 1000,
      replaces: arrivedKey?.successorId,
      serviceLimits: ports.limits,
    }
    const made = await changeKey(grant, ports, (keys) => keys.rotate(id, options))
    const data: KeyRotation = {
      ...issuedJson(made),
      predecessor: { id, ends_at: rfc3339(made.retiresAt) },
    }
    return { data, cacheControl }
  },
})

export const revokeKey = definePost({
  name: 'revoke-key',
  path: '/developer/revoke-key',
  selfService: 'revoke',
  summary: 'Revoke the key',
  body: { partner: input.partner },
  limits: ['key'],
  skipsQuotas: true,
  async handle(_, grant, ports) {
    const { id } = await changeKey(grant, ports, (keys) => keys.revoke(grant.key.id))
    const data: KeyRevocation = { id, state: 'revoked', revoked_at: rfc3339(grant.now) }
    return { data, cacheControl }
  },
})

const problemFor: { readonly [code in AdminErrorCode]?: ProblemCode } = {
  // It ended after the request was admitted.
  key_revoked: 'key_revoked',
  key_expired: 'key_expired',
  key_disabled: 'key_disabled',
  key_rotated: 'rotation_conflict',
  chain_full: 'rotation_conflict',
  addresses_disjoint: 'rotation_conflict',
  limits_differ: 'rotation_conflict',
}

/** The details of the problems for which the general one, about a used successor, would be wrong. */
const details: { readonly [code in AdminErrorCode]?: string } = {
  chain_full:
    'Three keys of this chain of rotations are in force. Rotate the key once one of them has ended.',
  addresses_disjoint:
    'The key and its unused successor have no address in common. Ask the operator to change one.',
  limits_differ:
    'The key and its unused successor have limits with different windows. Ask the operator to change one.',
}

/** Makes a change that binds at once here. @param toProblem For an `AdminError`; `undefined` leaves it. */
export async function administer<T>(
  { revisionCache, elapsed }: HandlerContext,
  change: () => Promise<T>,
  toProblem: (code: AdminErrorCode, error: unknown) => Problem | undefined,
): Promise<T> {
  try {
    return await change()
  } catch (error) {
    // The store itself refuses what differs from its own facts.
    const { name, code } = ((error as Error).cause ?? error) as AdminError
    if (name !== 'AdminError') throw error
    if (code === 'concurrent_change') throw new Problem('overloaded', { retryAfterSeconds: 1 }, error)
    throw toProblem(code, error) ?? error
  } finally {
    // Without a response of the store, the change takes effect within the bound.
    await Promise.resolve(revisionCache.revalidate(elapsed())).catch(() => undefined)
  }
}

/** Changes the key of a request. The code is loaded with the first change. */
function changeKey<T>(
  { key: { id }, now, recheck }: Grant,
  ports: HandlerContext,
  change: (keys: Pick<KeyAdministration, 'rotate' | 'revoke'>) => Promise<T>,
): Promise<T> {
  return administer(ports, async () => {
    const { createSelfService } = await import('../admin/keys.ts')
    const operator = { actor: `key:${id}`, clock: () => now }
    return await change(
      createSelfService(ports.administration, operator, {
        recheck: recheck!,
        isUsed: ports.uses.isUsed,
      }),
    )
  }, (code, error) => {
    const problem = problemFor[code]
    const detail = details[code]
    return problem && new Problem(problem, detail === undefined ? {} : { detail }, error)
  })
}

/** A new key as its holder gets it. */
export function issuedJson({ key: { id, hint, environment, scopes, expiresAt }, text }: IssuedKey) {
  return { id, key: text, hint: `…${hint}`, environment, scopes, expires_at: optionalRfc3339(expiresAt) }
}
