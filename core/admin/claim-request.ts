import type { Claim } from '../ports/changes.ts'
import type { NewKey } from './key-plans.ts'
import type { RotationOptions } from './rotation.ts'

/** What a link makes: a new key, or the successor of the key `rotates`. */
export type ClaimRequest = NewKey | (RotationOptions & { readonly rotates: string })

/** What a claim makes. */
export function parseClaimRequest({ draft }: Pick<Claim, 'draft'>): ClaimRequest {
  return JSON.parse(draft)
}

/** The id of the key that a claim replaces. */
export function rotatedKeyId(claim: Pick<Claim, 'draft'>): string | undefined {
  const request = parseClaimRequest(claim)
  return 'rotates' in request ? request.rotates : undefined
}

/** The scopes of the key that a claim issues. A rotation makes no key with scopes that the old one has not. */
export function issuedScopes(claim: Pick<Claim, 'draft'>): readonly string[] | undefined {
  const request = parseClaimRequest(claim)
  return 'rotates' in request ? undefined : request.scopes
}
