/**
 * The pages of a one-time link: what it is for, with a button; then the key; or why there is no key.
 * They work without script.
 */
import type { HandlerResult } from '../http/message.ts'
import { PROBLEM_ACTIONS } from '../http/problem-actions.ts'
import { type Problem, PROBLEMS } from '../http/problem.ts'
import type { Sha256 } from '../lib/digest.ts'
import type { ClaimedKey, ClaimOffer } from '../wire.ts'
import assets from './claim-assets.json' with { type: 'json' }
import { createPage, type Inset, markup } from './html.ts'

/** Puts a page in place of what `showClaimRoute` or `useClaimRoute` returned. */
export function createClaimPage({ data, headers = [] }: HandlerResult, sha256: Sha256): HandlerResult {
  const claim = data as ClaimOffer | ClaimedKey
  const { predecessor } = claim
  const replaces = predecessor && `${predecessor.id}, which works until ${minuteOf(predecessor.ends_at)}`
  const [title, content] = 'key' in claim
    ? ['Your API key', keyContent(claim, replaces)]
    : ['Get your API key', offerContent(claim, replaces && `${replaces} if you make the key now`)]
  const { html, policy } = createPage(assets, { title, content }, sha256, `'self'`)
  return { html, headers: [...headers, ...policy] }
}

/** The page of a problem, for people: what they can do about it. */
export function createProblemPage(problem: Problem, requestId: string, sha256: Sha256) {
  const title = problem.code === 'claim_spent' || problem.code === 'claim_not_found'
    ? 'This link gives no key'
    : 'The link cannot be opened at the moment'
  const content = markup`
    <p>${problem.message} ${actionOf(problem)}</p>
    ${facts({ 'Request ID': requestId })}
  `
  const { html, policy } = createPage(assets, { title, content }, sha256)
  return { html, headers: policy }
}

function actionOf({ code, message, members: { retryAfterSeconds } }: Problem): string {
  if (retryAfterSeconds !== undefined) return `Try again in ${retryAfterSeconds} seconds.`
  // A problem with a detail of its own says what to do.
  if (message !== PROBLEMS[code].detail) return ''
  return PROBLEM_ACTIONS[code]
}

function offerContent({ partner, name, expires_at }: ClaimOffer, replaces: string | null): Inset {
  return markup`
    <p>This link makes one API key, and shows it once. Have a safe place for it ready, such as a password manager.</p>
    ${facts({ Partner: partner, Key: name, Replaces: replaces, 'Link valid until': minuteOf(expires_at) })}
    <form method="post"><button>Make and show the key</button></form>
  `
}

function keyContent(
  { id, key, environment, scopes, expires_at }: ClaimedKey,
  replaces: string | null,
): Inset {
  const expires = expires_at === null ? 'never' : minuteOf(expires_at)
  const held = scopes.join(', ') || 'none'
  return markup`
    <p>The key is shown only once, and the link is used up. Store the key before you close this page.</p>
    <pre id="key" tabindex="0" role="group" aria-label="Key">${key}</pre>
    <div class="actions">
      <button id="copy" type="button" hidden>Copy</button>
      <a href="data:application/octet-stream,${key}%0A" download="${id}.key">Download</a>
      <span role="status"></span>
    </div>
    ${facts({ Id: id, Replaces: replaces, Environment: environment, Scopes: held, Expires: expires })}
  `
}

function facts(rows: Readonly<Record<string, string | null>>): Inset {
  const shown = Object.entries(rows).map(([name, value]) =>
    value !== null && markup`<div><dt>${name}</dt><dd>${value}</dd></div>`
  )
  return markup`<dl class="facts">${shown}</dl>`
}

function minuteOf(instant: string): string {
  return `${instant.slice(0, 16).replace('T', ' ')} UTC`
}
