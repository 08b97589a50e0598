/** The page of a one-time link: what it is for, with a button; then the key. It works without its script. */
import type { HandlerResult } from '../http/message.ts'
import type { Sha256 } from '../lib/digest.ts'
import type { ClaimedKey, ClaimOffer } from '../wire.ts'
import assets from './claim-assets.json' with { type: 'json' }
import { fillMarkup, pagePolicy } from './html.ts'

/** Puts a page in place of what `showClaim` or `useClaim` returned. */
export function createClaimPage({ data, headers = [] }: HandlerResult, sha256: Sha256): HandlerResult {
  const claim = data as ClaimOffer & Partial<ClaimedKey>
  const end = claim.expires_at === null ? 'never' : `${claim.expires_at.slice(0, 16).replace('T', ' ')} UTC`
  const scopes = claim.scopes?.join(', ') || 'none'
  const [title, content] = claim.key ? ['Your API key', assets.key] : ['Get your API key', assets.offer]
  const shown = fillMarkup(content, { ...claim, scopes, end })
  const insets = { title, content: shown, style: { html: assets.style }, script: { html: assets.script } }
  const policy = pagePolicy(assets.style, assets.script, sha256, `'self'`)
  const { html } = fillMarkup(assets.page, insets)
  return { html, headers: [...headers, 'Content-Security-Policy', policy] }
}
