/** What partners do with their own keys: the same changes as the operator's, once the policy allows them. */
import type { AdminError, AdminErrorCode } from '../admin/error.ts'
import type { IssuedKey } from '../admin/key-plans.ts'
import type { KeyAdministration } from '../admin/keys.ts'
import { createSelfService } from '../admin/self-service.ts'
import type { HandlerResult } from '../http/message.ts'
import { Problem, type ProblemCode } from '../http/problem.ts'
import { optionalRfc3339, rfc3339 } from '../lib/time.ts'
import type { Grant } from '../policy/decide.ts'
import type { KeyRevocation, KeyRotation } from '../wire.ts'
import type { HandlerContext } from './route.ts'

const cacheControl = 'private, no-store'

/** Rotates the key of the request. @throws {Problem} when the partner may not, or the key cannot be rotated now. */
export async function rotateOwnKey(
  overlapSeconds: number,
  grant: Grant,
  context: HandlerContext,
): Promise<HandlerResult> {
  const { arrivedKey, key: { id } } = grant
  // A successor that is not known here was made by a request that may not have its response yet: it is not replaced.
  const options = {
    overlapMs: overlapSeconds * 1000,
    replaces: arrivedKey?.successorId,
    serviceLimits: context.limits,
  }
  const made = await changeKey(grant, context, (keys) => keys.rotate(id, options))
  const data: KeyRotation = {
    ...issuedJson(made),
    predecessor: { id, ends_at: rfc3339(made.retiresAt) },
  }
  return { data, cacheControl }
}

/** Revokes the key of the request. @throws {Problem} when the partner may not, or the key has ended meanwhile. */
export async function revokeOwnKey(grant: Grant, context: HandlerContext): Promise<HandlerResult> {
  const { id } = await changeKey(grant, context, (keys) => keys.revoke(grant.key.id))
  const data: KeyRevocation = { id, state: 'revoked', revoked_at: rfc3339(grant.now) }
  return { data, cacheControl }
}

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
    // The store itself refuses what differs from its own facts. By name: it may be of another copy of this package.
    const { name, code } = ((error as Error).cause ?? error) as AdminError
    if (name !== 'AdminError') throw error
    if (code === 'concurrent_change') throw new Problem('overloaded', { retryAfterSeconds: 1 }, error)
    throw toProblem(code, error) ?? error
  } finally {
    // Without a response of the store, the change takes effect within the bound.
    await Promise.resolve(revisionCache.revalidate(elapsed())).catch(() => undefined)
  }
}

/** Changes the key of a request. */
function changeKey<T>(
  { key: { id }, now, recheck }: Grant,
  context: HandlerContext,
  change: (keys: Pick<KeyAdministration, 'rotate' | 'revoke'>) => Promise<T>,
): Promise<T> {
  const operator = { actor: `key:${id}`, clock: () => now }
  const checks = { recheck: recheck!, isUsed: context.lastUsed.isUsed }
  return administer(
    context,
    () => change(createSelfService(context.administration, operator, checks)),
    (code, error) => {
      const problem = problemFor[code]
      const detail = details[code]
      return problem && new Problem(problem, detail === undefined ? {} : { detail }, error)
    },
  )
}

/** A new key as its holder gets it. */
export function issuedJson({ key: { id, hint, environment, scopes, expiresAt }, text }: IssuedKey) {
  return { id, key: text, hint: `…${hint}`, environment, scopes, expires_at: optionalRfc3339(expiresAt) }
}
