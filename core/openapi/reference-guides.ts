/** The sections of the reference page that apply to all endpoints. */
import { MAX_BODY_BYTES } from '../http/body.ts'
import { API_VERSION } from '../http/headers.ts'
import { PROBLEM_ACTIONS } from '../http/problem-actions.ts'
import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import { MODULE_NAMES, MODULES } from '../policy/modules.ts'
import type { OpenApiDocument } from './document.ts'
import { type CodeBlock, codeBlock, type Inset, type Markup, markup, prose, table } from './html.ts'
import type { DocumentSettings } from './model.ts'
import { sampleOf } from './reference-samples.ts'

export interface Section {
  readonly id: string
  readonly title: string
  readonly text: Inset
  /** Beside the text on wide screens. */
  readonly code: readonly Markup[]
  /** Below both. */
  readonly below?: Markup
}

const http = (what: string, code: string): Markup => codeBlock({ caption: 'HTTP', what, code, fixed: true })

/** The sections before and after the endpoints. The last one is the longest, so that every one can be scrolled to. */
export function guides(
  described: OpenApiDocument,
  settings: DocumentSettings,
): { readonly before: readonly Section[]; readonly after: readonly Section[] } {
  return {
    before: [quickStart(settings), authentication(settings)],
    after: [paging, retries, limits(settings), versioning(settings), scopes, problems(described)],
  }
}

/** A link to a problem. */
const see = (code: ProblemCode): Markup => markup`<a href="#${code}"><code>${code}</code></a>`

function quickStart(settings: DocumentSettings): Section {
  const blocks: readonly (Omit<CodeBlock, 'code'> & { code: CodeBlock['code'] | undefined })[] = [
    {
      caption: '1. Read the key',
      what: 'Read the key',
      code: 'read -rs PARTNER_API_KEY && export PARTNER_API_KEY',
    },
    { caption: '2. Verify the key', what: 'Verify the key', code: sampleOf('verifyKey', settings) },
    { caption: '3. Read profiles', what: 'Read profiles', code: sampleOf('recentProfiles', settings) },
  ]
  return {
    id: 'quick-start',
    title: 'Quick start',
    text: markup`
      <p>The operator of this service gives you a key and your partner slug.</p>
      <ol>
        <li>Put the key where only your server can read it. All samples read it from the environment variable <code>PARTNER_API_KEY</code>.</li>
        <li><a href="#verifyKey">Verify the key</a>: the response lists what it permits. Do this before you save a key that somebody entered in a form.</li>
        <li><a href="#recentProfiles">Read some data</a>, on your server.</li>
      </ol>
      <p>A success is an object with <code>data</code>. Everything else is a <a href="#problems">problem</a>, which says by its <code>code</code> what to do.</p>
    `,
    code: blocks.flatMap(({ code, ...block }) => code === undefined ? [] : [codeBlock({ ...block, code })]),
  }
}

function authentication({ names, allowBrowsers, maxStalenessMs }: DocumentSettings): Section {
  const browsers = allowBrowsers
    ? 'This service accepts requests from browsers. Keep keys out of browsers nevertheless.'
    : markup`Requests from browser scripts (with <code>Origin</code> or <code>Sec-Fetch-Site</code>) are rejected with ${
      see('browser_refused')
    }, whatever key they carry.`
  return {
    id: 'authentication',
    title: 'Authentication',
    text: markup`
      <p>Every request carries a key, in a dedicated header or as a bearer token. It may carry both if they are equal.</p>
      <p>It also names the partner that owns the key: <code>?partner=demo</code> in a GET, the member <code>partner</code> in the body of a POST. A key never works for another partner, and never in a URL.</p>
      <div class="note"><p><strong>A key is a password of your server.</strong> Anyone who has it can act as you.</p></div>
      <ul>
        <li>Call this service from your backend, and let your pages call the backend. Nothing that a browser or an app receives is secret.</li>
        <li>Read the key from the environment or a secret store. Keep it out of repositories, logs, URLs and error reports.</li>
        <li>Use one key per installation, with only the scopes that it needs.</li>
        <li>Check keys entered in forms before you send them: a key ends in a checksum, and <a href="#verifyKey">verify-key</a> reports the rest.</li>
        <li>If a key may have leaked, have it revoked. To replace a key without downtime, have it rotated: both work until the overlap ends.</li>
      </ul>
      <p>${browsers}</p>
      <p>Revoked keys, removed scopes and suspended partners take effect within ${maxStalenessMs} ms.</p>
    `,
    code: [
      http('The two ways to send a key', `${names.keyHeader}: <API_KEY>\nAuthorization: Bearer <API_KEY>`),
    ],
  }
}

const paging: Section = {
  id: 'paging',
  title: 'Paging',
  text: markup`
    <p>Paged lists include <code>page</code>. While <code>has_more</code> is true, send <code>next_cursor</code> as <code>cursor</code> with all other parameters unchanged, or follow the <code>Link</code> header, which is relative to the request.</p>
    <p>The pages together are the complete list: no row appears twice, and none is missing unless it changed in between. A cursor is opaque and belongs to its list; with other filters it is ${
    see('invalid_cursor')
  }. There are no totals.</p>
  `,
  code: [http('The link to the next page', 'Link: <?partner=demo&limit=20&cursor=…>; rel="next"')],
}

const retries: Section = {
  id: 'idempotency',
  title: 'Retries',
  text: markup`
    <p>A GET is always safe to retry. A signup is safe to retry with an <code>Idempotency-Key</code> that you generate: for 24 hours, the same key with the same body gets the same response with <code>Idempotent-Replayed: true</code> and creates nothing. A different body is ${
    see('idempotency_mismatch')
  }; while the first attempt is in progress, you get ${
    see('idempotency_conflict')
  }. After a rejection, the corrected body may use the same key.</p>
    <p>If the connection breaks and you do not know whether a signup arrived, send it again with the same key.</p>
  `,
  code: [http('A key for retries', 'Idempotency-Key: 7d1f0c1e-6b8a-4a53-9c60-2f6a35d3c9a1')],
}

const limitTexts: Readonly<Record<string, string>> = {
  key: 'Requests with a key.',
  signup: 'Signups with a key.',
  verify: 'Verifications with a key, which count toward no other policy.',
  authfail: 'Failed authentications from an address. Keys known to be valid still work.',
}

function limits({ limits, names }: DocumentSettings): Section {
  const rows = Object.entries(limits).map(([name, { quota, windowSeconds }]) => ({
    name: markup`<code>${name}</code>`,
    about: markup`${limitTexts[name]}<small>${
      quota === 0 ? 'off' : `${quota} requests in ${windowSeconds} seconds`
    }</small>`,
  }))
  const { quota, windowSeconds } = limits.key
  return {
    id: 'limits',
    title: 'Limits and headers',
    text: markup`
      ${table('Limits', ['Policy', 'What it counts'], rows)}
      <p>A partner or a key may have limits of its own. Every response to a known key shows the ones in force, as draft-ietf-httpapi-ratelimit-headers-11 defines.</p>
      <p>Over a limit the response is ${
      see('rate_limited')
    } with <code>Retry-After</code> in seconds. Earlier retries are rejected again.</p>
      <p>Every response has <code>X-Request-Id</code> and <code>${names.versionHeader}</code>. A GET has an <code>ETag</code>: send it in <code>If-None-Match</code> to get a 304 without a body if nothing has changed. A body may have ${
      MAX_BODY_BYTES / 1024
    } KiB, a target 8 KiB, all headers together 32 KiB.</p>
    `,
    code: [http(
      'The rate limit headers',
      `RateLimit-Policy: "key";q=${quota};w=${windowSeconds}\nRateLimit: "key";r=${
        Math.max(0, quota - 1)
      };t=${windowSeconds}`,
    )],
  }
}

function versioning({ names: { versionHeader } }: DocumentSettings): Section {
  return {
    id: 'versioning',
    title: 'Versioning',
    text: markup`
      <p>This is version <code>${API_VERSION}</code>, which every response names in <code>${versionHeader}</code>. Send this header to get ${
      see('unknown_version')
    } instead of a response in another version.</p>
      <p>Additions do not change the version: expect unknown members, codes and headers. Nothing documented here is renamed or removed within a version.</p>
    `,
    code: [http('The version header', `${versionHeader}: ${API_VERSION}`)],
  }
}

const scopes: Section = {
  id: 'scopes',
  title: 'Scopes and modules',
  text: markup`
    <p>A key holds scopes; a partner has active modules. A scope is in force while an active module needs it: deactivating a module disables its scope for all keys of the partner until the module is active again.</p>
    ${
    table(
      'Scopes, and the module that needs each',
      ['Scope', 'Purpose'],
      MODULE_NAMES.map((module) => ({
        name: markup`<code>${MODULES[module].scope}</code>`,
        about: markup`${MODULES[module].feature}<small>module <code>${module}</code></small>`,
      })),
    )
  }
  `,
  code: [],
}

function problems({ components }: OpenApiDocument): Section {
  const rows = (Object.keys(PROBLEMS) as ProblemCode[]).map((code) => ({
    id: code,
    name: markup`<code>${code}</code><small>${PROBLEMS[code].status}</small>`,
    about: markup`${PROBLEMS[code].detail}<br>${prose(PROBLEM_ACTIONS[code])}`,
  }))
  const example = JSON.stringify(components.examples['invalid_parameter']?.value, null, 2)
  return {
    id: 'problems',
    title: 'Problems',
    text: markup`
      <p>Every error is an <code>application/problem+json</code> (RFC 9457), whatever the request accepts. Handle it by <code>code</code>, which never changes its meaning; show <code>detail</code> to developers; include <code>request_id</code> in support requests.</p>
      <p><code>errors</code> lists everything that is wrong with parameters or a body, each with its <code>parameter</code> or <code>pointer</code> (RFC 6901). The response to an invalid key does not reveal whether the key is unknown or wrong, and another partner is indistinguishable from one that does not exist.</p>
      <p>A server that does not run on Node or Deno may reject malformed or oversized HTTP without a problem, or by closing the connection. It may also resolve dot segments in a path, and require quotes around an <code>Idempotency-Key</code> that contains a comma and a space.</p>
    `,
    code: [codeBlock({
      caption: '400 · application/problem+json',
      what: 'A problem',
      code: example,
      fixed: true,
    })],
    below: table('Problems by code', ['Code and status', 'Meaning, and what to do'], rows),
  }
}
