/** One-time links to keys. Opening one changes nothing, as mail scanners and previews do; its button makes the key. */
import { rotatedKeyId } from '../admin/claim-request.ts'
import { claimId, findPredecessor, useClaim } from '../admin/claims.ts'
import type { HandlerResult } from '../http/message.ts'
import { Problem } from '../http/problem.ts'
import { claimState } from '../keys/lifecycle.ts'
import { equalDigests } from '../lib/digest.ts'
import { rfc3339 } from '../lib/time.ts'
import type { Claim } from '../ports/changes.ts'
import type { ClaimedKey, ClaimOffer } from '../wire.ts'
import { administer, issuedJson } from './key-self-service.ts'
import type { HandlerContext, OpenRequest } from './route.ts'

const headers = ['Referrer-Policy', 'no-referrer']

/** What a link is for. */
export function openLink(context: HandlerContext, request: OpenRequest): Promise<HandlerResult> {
  return respond(context, request, async () => {
    const claim = await findOpen(context, request)
    const predecessor = await findPredecessor(context.administration, claim, request.now())
    const { partner, name, expiresAt } = claim
    return { partner, name, expires_at: rfc3339(expiresAt), predecessor }
  })
}

/** The pending uses of links, by id: others wait for them instead of the store. */
const pending = new Map<string, Promise<ClaimedKey>>()

/** Makes the key of a link. */
export function useLink(context: HandlerContext, request: OpenRequest): Promise<HandlerResult> {
  return respond(context, request, async () => {
    await request.skipBody()
    const claim = await findOpen(context, request)
    const first = pending.get(claim.id)
    // Awaited only if there is one: others must see this use at once.
    if (first !== undefined && await first) throw new Problem('claim_spent')
    const use = makeClaimedKey(context, request, claim).finally(() => pending.delete(claim.id))
    pending.set(claim.id, use)
    return await use
  })
}

/**
 * Responds with a page, unless the request prefers JSON. Parameters of the query do not count:
 * mailers add some to links.
 */
async function respond(
  { loadClaimPages, sha256 }: HandlerContext,
  request: OpenRequest,
  make: () => Promise<ClaimOffer | ClaimedKey>,
): Promise<HandlerResult> {
  // First: a page that cannot be loaded must not cost the key.
  const pages = request.prefers('application/json', 'text/html') ? undefined : await loadClaimPages()
  // A problem is a page only for those who ask for one.
  if (pages !== undefined && request.prefers('text/html', 'application/json')) {
    request.showProblems((problem, id) => pages.createProblemPage(problem, id, sha256))
  }
  request.requireUnblocked()
  const result = { data: await make(), headers }
  return pages === undefined ? result : pages.createClaimPage(result, sha256)
}

async function findOpen({ administration, sha256 }: HandlerContext, request: OpenRequest): Promise<Claim> {
  const { token = '' } = request.params
  const claim = await request.lookUp('claim_not_found', async () => {
    const digest = sha256(token)
    const found = /^[0-9A-Za-z]{32}$/.test(token) && await administration.findClaim(claimId(digest))
    return found && equalDigests(found.digest, digest) ? found : undefined
  })
  if (claimState(claim, request.now()) !== 'open') throw new Problem('claim_spent')
  return claim
}

function makeClaimedKey(context: HandlerContext, { now }: OpenRequest, claim: Claim): Promise<ClaimedKey> {
  return administer(context, async () => {
    const made = await useClaim(context.administration, claim, now)
    const id = rotatedKeyId(claim)
    const predecessor = id !== undefined && 'retiresAt' in made
      ? { id, ends_at: rfc3339(made.retiresAt) }
      : null
    return { ...issuedJson(made), predecessor }
  }, (code, error) => {
    const detail = 'The key cannot be made now, and the link was not used. Ask the operator about it.'
    return new Problem('claim_spent', code === 'claim_spent' ? {} : { detail }, error)
  })
}
