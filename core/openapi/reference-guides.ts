/** The sections of the reference page that apply to all endpoints. */
import { MAX_BODY_BYTES } from '../http/body.ts'
import { API_VERSION } from '../http/headers.ts'
import { PROBLEMS } from '../http/problem.ts'
import { MODULE_NAMES, MODULES } from '../policy/modules.ts'
import { PROBLEM_CODES } from '../schemas/responses.ts'
import { codeBlock, curl, type Inset, type Markup, markup, prettyJson, table } from './html.ts'
import type { OpenApiDocument } from './document.ts'
import type { DocumentSettings } from './model.ts'

export interface Section {
  readonly id: string
  readonly title: string
  readonly content: Inset
}

/** The sections before and after the endpoints. */
export function guides(
  described: OpenApiDocument,
  settings: DocumentSettings,
): { readonly before: readonly Section[]; readonly after: readonly Section[] } {
  const { names } = settings
  return {
    before: [
      { id: 'quick-start', title: 'Quick start', content: quickStart(settings) },
      { id: 'authentication', title: 'Authentication', content: authentication(settings) },
    ],
    after: [
      { id: 'scopes', title: 'Scopes and modules', content: scopes() },
      { id: 'problems', title: 'Problems', content: problems(described) },
      { id: 'limits', title: 'Limits and headers', content: limits(settings) },
      {
        id: 'paging',
        title: 'Paging',
        content: markup`
          <p>Paged lists include <code>page</code>. While <code>has_more</code> is true, send <code>next_cursor</code> as <code>cursor</code> with all other parameters unchanged, or follow the <code>Link</code> header:</p>
          ${
          codeBlock(
            'paging-field',
            'HTTP',
            'the link to the next page',
            'Link: <?partner=demo&limit=20&cursor=…>; rel="next"',
            false,
          )
        }
          <p>The pages together are the complete list: no row appears twice, and none is missing unless it changed in between. A cursor is opaque and belongs to its list; with other filters it is <a href="#invalid_cursor"><code>invalid_cursor</code></a>. There are no totals.</p>
        `,
      },
      {
        id: 'idempotency',
        title: 'Retries',
        content: markup`
          <p>A GET is always safe to retry. A signup is safe to retry with an <code>Idempotency-Key</code> that you generate: for 24 hours, the same key with the same body gets the same response with <code>Idempotent-Replayed: true</code> and creates nothing. A different body is <a href="#idempotency_mismatch"><code>idempotency_mismatch</code></a>; while the first attempt is in progress, you get <a href="#idempotency_conflict"><code>idempotency_conflict</code></a>. After a rejection, the corrected body may use the same key.</p>
          <p>If the connection breaks and you do not know whether a signup arrived, send it again with the same key.</p>
        `,
      },
      {
        id: 'versioning',
        title: 'Versioning',
        content: markup`
          <p>This is version <code>${API_VERSION}</code>, which every response names in <code>${names.versionHeader}</code>. Send <code>${names.versionHeader}: ${API_VERSION}</code> to get <a href="#unknown_version"><code>unknown_version</code></a> instead of a response in another version.</p>
          <p>Additions do not change the version: expect unknown members, codes and headers. Nothing documented here is renamed or removed within a version.</p>
        `,
      },
    ],
  }
}

function quickStart({ names }: DocumentSettings): Markup {
  const { keyHeader, name } = names
  const commands = [
    ['start-key', 'the command that reads the key', 'read -rs PARTNER_API_KEY && export PARTNER_API_KEY'],
    [
      'start-verify',
      'the command that verifies the key',
      curl({ keyHeader, method: 'POST', target: `/${name}/developer/verify-key`, body: { partner: 'demo' } }),
    ],
    [
      'start-read',
      'the command that reads profiles',
      curl({ keyHeader, method: 'GET', target: `/${name}/public/profiles/recent?partner=demo&limit=3` }),
    ],
  ] as const
  const [key, verify, read] = commands.map(([id, what, code]) => codeBlock(id, 'Shell', what, code))
  return markup`
    <p>The operator of this service gives you a key and your partner slug; the examples use <code>demo</code>. Put the key where only your server can read it:</p>
    ${key}
    <p>Verify what the key permits. Do this before you save a key that somebody entered in a form:</p>
    ${verify}
    <p>Then read some data:</p>
    ${read}
  `
}

function authentication({ names, allowBrowsers, maxStalenessMs }: DocumentSettings): Markup {
  const browsers = allowBrowsers
    ? markup`<p>This service accepts requests from browsers. Keep keys out of browsers nevertheless.</p>`
    : markup`<p>Requests from browser scripts (with <code>Origin</code> or <code>Sec-Fetch-Site</code>) are rejected with <a href="#browser_refused"><code>browser_refused</code></a>, whatever key they carry.</p>`
  const headers = `${names.keyHeader}: <API_KEY>\nAuthorization: Bearer <API_KEY>`
  return markup`
    <p>Every request carries a key, in a dedicated header or as a bearer token. It may carry both if they are equal.</p>
    ${codeBlock('auth-fields', 'HTTP', 'the two ways to send a key', headers, false)}
    <p>It also names the partner that owns the key: <code>?partner=demo</code> in a GET, the member <code>partner</code> in the body of a POST. A key never works for another partner, and never in a URL.</p>
    <div class="note">
      <p><strong>A key is a password of your server.</strong> Anyone who has it can act as you.</p>
    </div>
    <h3 id="keep-keys">Keep keys on the server</h3>
    <ul>
      <li>Call this service from your backend, and let your pages call the backend. Nothing that a browser or an app receives is secret.</li>
      <li>Read the key from the environment or a secret store. Keep it out of repositories, logs, URLs and error reports.</li>
      <li>Use one key per installation, with only the scopes that it needs.</li>
      <li>Check keys entered in forms before you send them: a key ends in a checksum, and <code>verify-key</code> reports the rest.</li>
      <li>If a key may have leaked, have it revoked. To replace a key without downtime, have it rotated: both work until the overlap ends.</li>
    </ul>
    ${browsers}
    <p>Revoked keys, removed scopes and suspended partners take effect within ${maxStalenessMs} ms.</p>
  `
}

function scopes(): Markup {
  const rows = MODULE_NAMES.map((module) => ({
    name: markup`<code>${MODULES[module].scope}</code>`,
    about: markup`${MODULES[module].feature}<small>module <code>${module}</code></small>`,
  }))
  return markup`
    <p>A key holds scopes; a partner has active modules. A scope is in force while an active module needs it: deactivating a module disables its scope for all keys of the partner until the module is active again.</p>
    ${table('Scopes, and the module that needs each', ['Scope', 'Purpose'], rows)}
  `
}

function problems({ components }: OpenApiDocument): Markup {
  const example = prettyJson(components.examples['invalid_parameter']?.value)
  const rows = PROBLEM_CODES.map((code) => ({
    id: code,
    name: markup`<code>${code}</code><small>${PROBLEMS[code].status}</small>`,
    about: PROBLEMS[code].detail,
  }))
  return markup`
    <p>Every error is an <code>application/problem+json</code> (RFC 9457), whatever the request accepts. Handle it by <code>code</code>, which never changes its meaning; show <code>detail</code> to developers; include <code>request_id</code> in support requests.</p>
    ${codeBlock('problem-example', '400 · application/problem+json', 'a problem', example, false)}
    <p><code>errors</code> lists everything that is wrong with parameters or a body, each with its <code>parameter</code> or <code>pointer</code> (RFC 6901). The response to an invalid key does not reveal whether the key is unknown or wrong, and another partner is indistinguishable from one that does not exist.</p>
    <p>A server that does not run on Node or Deno may reject malformed or oversized HTTP without a problem, or by closing the connection. It may also resolve dot segments in a path, and require quotes around an <code>Idempotency-Key</code> that contains a comma and a space.</p>
    ${table('Problems by code', ['Code and status', 'Meaning'], rows)}
  `
}

const limitTexts: Readonly<Record<string, string>> = {
  key: 'Requests with a key.',
  signup: 'Signups with a key.',
  verify: 'Verifications with a key, which count toward no other policy.',
  authfail: 'Failed authentications from an address. Keys known to be valid still work.',
}

function limits({ limits, names }: DocumentSettings): Markup {
  const rows = Object.entries(limits).map(([name, { quota, windowSeconds }]) => ({
    name: markup`<code>${name}</code>`,
    about: markup`${limitTexts[name]}<small>${
      quota === 0 ? 'off' : `${quota} requests in ${windowSeconds} seconds`
    }</small>`,
  }))
  const { quota, windowSeconds } = limits.key
  const headers = [
    `RateLimit-Policy: "key";q=${quota};w=${windowSeconds}`,
    `RateLimit: "key";r=${Math.max(0, quota - 1)};t=${windowSeconds}`,
  ].join('\n')
  return markup`
    ${table('Limits', ['Policy', 'What it counts'], rows)}
    <p>A partner or a key may have limits of its own. Every response to a known key shows the ones in force, as draft-ietf-httpapi-ratelimit-headers-11 defines:</p>
    ${codeBlock('limit-fields', 'HTTP', 'the rate limit headers', headers, false)}
    <p>Over a limit the response is <a href="#rate_limited"><code>rate_limited</code></a> with <code>Retry-After</code> in seconds. Earlier retries are rejected again.</p>
    <p>Every response has <code>X-Request-Id</code> and <code>${names.versionHeader}</code>. A GET has an <code>ETag</code>: send it in <code>If-None-Match</code> to get a 304 without a body if nothing has changed. A body may have ${
    MAX_BODY_BYTES / 1024
  } KiB, a target 8 KiB, all headers together 32 KiB.</p>
  `
}
