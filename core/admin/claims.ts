/** One-time links with which partners get their keys. */
import { formatValue } from '../http/redact.ts'
import { randomBase62 } from '../keys/format.ts'
import { claimState, endOf, hasEnded } from '../keys/lifecycle.ts'
import { assertKind, assertStore } from '../lib/options.ts'
import { MS_PER_DAY, rfc3339 } from '../lib/time.ts'
import type { Key } from '../model.ts'
import type { Change, Claim } from '../ports/changes.ts'
import type { Store } from '../ports/store.ts'
import { createAdministrator, findKey, type Operator } from './apply.ts'
import { type ClaimRequest, parseClaimRequest } from './claim-request.ts'
import {
  issueChanges,
  type IssuedKey,
  type KeyChangeContext,
  type KeyPlan,
  type KeyStore,
  type NewKey,
  type RotatedKey,
  rotationChanges,
  type RotationPlan,
} from './key-plans.ts'
import { DEFAULT_OVERLAP_MS } from './rotation.ts'
import { AdminError, notFoundError } from './error.ts'

/** What claims need of a store. */
export type ClaimStore = KeyStore & Pick<Store, 'findClaim'>

/** The key that a claim makes, or the end of the key that it replaces. */
type ClaimedKey = IssuedKey | RotatedKey

/**
 * Checks a change of keys as if it were made now, and creates a claim in its place, for at most 30 days.
 *
 * @returns Its token, a secret that is not stored: the address of a link ends with `/claim/TOKEN`.
 * @throws {AdminError} What the change throws, `invalid_duration`, and `invalid_expiry` if the
 * key ends before the claim.
 */
export async function createClaim(
  store: ClaimStore,
  operator: Operator,
  request: ClaimRequest,
  ms: number,
): Promise<{ readonly claim: Claim; readonly token: string }> {
  if (!(Number.isInteger(ms) && ms >= 1_000 && ms <= 30 * MS_PER_DAY)) {
    throw new AdminError('invalid_duration', 'A link must be valid for 1s to 30d.')
  }
  assertStore('createClaim', store)
  assertKind('createClaim: the request', request, 'an object')
  const token = randomBase62(32)
  const digest = store.sha256(token)
  const { now, applyPlan } = createAdministrator(store, operator)
  const { claim } = await applyPlan(async (modules) => {
    const { key } = await planKey({ store, modules, now: now() }, request)
    const expiresAt = key.createdAt + ms
    if ((key.expiresAt ?? Infinity) <= expiresAt) {
      throw new AdminError('invalid_expiry', 'The key would end before its link.')
    }
    const claim: Claim = {
      id: claimId(digest),
      digest,
      partner: key.partner,
      name: key.name,
      draft: JSON.stringify('rotates' in request ? request : requestOf(key)),
      state: 'open',
      createdAt: key.createdAt,
      expiresAt,
      keyId: undefined,
    }
    return { claim, changes: [{ type: 'claim.created', claim }] }
  })
  return { claim, token }
}

/**
 * Makes the key of a claim, in the transaction that ends the claim.
 *
 * @throws {AdminError} Then the claim is unchanged.
 */
export async function useClaim(
  store: ClaimStore,
  openClaim: Claim,
  clock: () => number,
): Promise<ClaimedKey> {
  const { id } = openClaim
  const request = parseClaimRequest(openClaim)
  const { now, applyPlan } = createAdministrator(store, { actor: `claim:${id}`, clock })
  const { made } = await applyPlan(async (modules) => {
    const { changes, ...made } = await planKey({ store, modules, now: now() }, request)
    const claim = await findClaim(store, id)
    if (claimState(claim, now()) !== 'open') throw spentError(claim)
    const used: Change = { type: 'claim.used', claim: { ...claim, state: 'used', keyId: made.key.id } }
    return { made, changes: [used, ...changes] }
  })
  return made
}

async function planKey(context: KeyChangeContext, request: ClaimRequest): Promise<KeyPlan | RotationPlan> {
  if (!('rotates' in request)) return await issueChanges(context, request)
  const { rotates, ...options } = request
  return await rotationChanges(context, rotates, options)
}

/** The request for a key like this one: its scopes stay as they are now, whatever modules are activated later. */
function requestOf(
  { partner, name, scopes, environment, expiresAt, allow, limits, owner, tags }: Key,
): NewKey {
  return { partner, name, scopes, environment, expiresAt, allow, limits, owner, tags }
}

/** Ends a claim that was not used. @throws {AdminError} `claim_not_found`, `claim_spent` */
export async function revokeClaim(store: ClaimStore, operator: Operator, id: string): Promise<Claim> {
  await createAdministrator(store, operator).apply(async () => {
    const claim = await findClaim(store, id)
    if (claim.state === 'open') return [{ type: 'claim.revoked', claim: { ...claim, state: 'revoked' } }]
    if (claim.state === 'revoked') return []
    throw spentError(claim)
  })
  return await findClaim(store, id)
}

function spentError({ id, keyId }: Claim): AdminError {
  const remedy = { purpose: 'To revoke its key', command: 'keys revoke', args: [keyId!] }
  return new AdminError('claim_spent', `Claim ${id} is not open.`, keyId ? remedy : undefined)
}

/** The key that a claim replaces, and when that ends if the claim is used now. */
export async function findPredecessor(store: Pick<Store, 'findKey'>, claim: Claim, now: number) {
  const request = parseClaimRequest(claim)
  if (!('rotates' in request)) return null
  const { rotates, overlapMs = DEFAULT_OVERLAP_MS } = request
  const { key } = await findKey(store, rotates)
  const end = hasEnded(key, now) ? now : endOf(key) ?? Infinity
  return { id: rotates, ends_at: rfc3339(Math.min(end, now + overlapMs)) }
}

/** @throws {AdminError} `claim_not_found` */
export async function findClaim(store: Pick<Store, 'findClaim'>, id: string): Promise<Claim> {
  const isId = typeof id === 'string' && /^clm_[0-9a-f]{24}$/.test(id)
  const claim = isId ? await store.findClaim(id) : undefined
  if (claim !== undefined) return claim
  throw notFoundError('claim_not_found', `There is no claim ${formatValue(id)}.`, id)
}

/** @param digest Of a token. */
export const claimId = (digest: string): string => `clm_${digest.slice(0, 24)}`
