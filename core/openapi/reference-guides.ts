/** The sections of the reference page that hold for all endpoints. */
import { MAX_BODY_BYTES } from '../http/body.ts'
import { API_VERSION } from '../http/headers.ts'
import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import { MODULE_NAMES, MODULES } from '../policy/modules.ts'
import { codeBlock, curl, type Inset, type Markup, markup, prettyJson, table } from './html.ts'
import type { DocumentSettings, OpenApiDocument } from './model.ts'

function section(id: string, title: string, ...content: readonly Inset[]): Markup {
  return markup`
    <section id="${id}" aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2>
    ${content}</section>
  `
}

/** What to do first. */
export function quickStart({ names }: DocumentSettings): Markup {
  const verify = curl({
    keyHeader: names.keyHeader,
    method: 'POST',
    target: `/${names.name}/developer/verify-key`,
    body: { partner: 'demo' },
  })
  const read = curl({
    keyHeader: names.keyHeader,
    method: 'GET',
    target: `/${names.name}/public/profiles/recent?partner=demo&limit=3`,
  })
  return section(
    'quick-start',
    'Quick start',
    markup`<p>The operator of this service gives you a key and the slug of your partner; the examples say <code>demo</code>. Put the key where only your server reads it:</p>
${
      codeBlock(
        'start-key',
        'Shell',
        'the command that takes the key',
        'read -rs PARTNER_API_KEY && export PARTNER_API_KEY',
      )
    }
<p>Ask what the key may do. Do this before you save a key that somebody typed into a form:</p>
${codeBlock('start-verify', 'Shell', 'the command that verifies the key', verify)}
<p>Then read something:</p>
${codeBlock('start-read', 'Shell', 'the command that reads profiles', read)}`,
  )
}

/** How to carry a key, and how to keep it. */
export function authentication({ names, allowBrowsers, maxStalenessMs }: DocumentSettings): Markup {
  const browsers = allowBrowsers
    ? markup`<p>This service answers requests that a browser sent, too. That is no reason to send it a key from one.</p>`
    : markup`<p>A request that a browser’s script sent (it carries <code>Origin</code> or <code>Sec-Fetch-Site</code>) is refused with <a href="#browser_refused"><code>browser_refused</code></a>, whatever key it has.</p>`
  return section(
    'authentication',
    'Authentication',
    markup`
      <p>Every request carries a key, in the field of its own or as a bearer token. Both at once are fine while they are equal.</p>
      ${
      codeBlock(
        'auth-fields',
        'HTTP',
        'the two ways to send a key',
        `${names.keyHeader}: <API_KEY>\nAuthorization: Bearer <API_KEY>`,
        false,
      )
    }
      <p>And it names the partner that the key belongs to: <code>?partner=demo</code> in a GET, the member <code>partner</code> in the body of a POST. A key never works for another partner, and never in a URL.</p>
      <div class="note">
        <p><strong>A key is a password of your server.</strong> Whoever has it is you.</p>
      </div>
      <h3 id="keep-keys">Keep keys on the server</h3>
      <ul>
        <li>Call this service from your backend, and let your pages call the backend. Nothing that is sent to a browser or an app is secret.</li>
        <li>Read the key from the environment or a secret store. Keep it out of repositories, logs, URLs and error reports.</li>
        <li>Use a key for each installation, with the scopes that it needs and no others.</li>
        <li>Check what is typed into a form before you send it: a key ends in a checksum, and <code>verify-key</code> says the rest.</li>
        <li>When a key may be known to others, have it revoked. To change one without a pause, have it rotated: both work until the overlap ends.</li>
      </ul>
      ${browsers}
      <p>A key that is revoked, a scope that is taken away, a partner that is suspended: every change binds within ${maxStalenessMs} ms.</p>
    `,
  )
}

/** Which module makes which scope count. */
export function scopes(): Markup {
  const rows = MODULE_NAMES.map((module) => {
    const { scope, feature } = MODULES[module]
    return {
      name: markup`<code>${scope}</code>`,
      about: markup`${feature}<small>module <code>${module}</code></small>`,
    }
  })
  return section(
    'scopes',
    'Scopes and modules',
    markup`<p>A key holds scopes; a partner has active modules. A scope is in force while an active module needs it: take a module away, and its scope is out of force for all keys of the partner at once, until the module is active again.</p>
${table('Scopes, and the module that needs each', ['Scope', 'What it is for'], rows)}`,
  )
}

/** What goes wrong, and what it is called. */
export function problems({ components }: OpenApiDocument): Markup {
  const example = components.examples['invalid_parameter']?.value
  const rows = (Object.keys(PROBLEMS) as ProblemCode[]).map((code) => ({
    id: code,
    name: markup`<code>${code}</code><small>${PROBLEMS[code].status}</small>`,
    about: PROBLEMS[code].detail,
  }))
  return section(
    'problems',
    'Problems',
    markup`<p>Whatever goes wrong is answered with <code>application/problem+json</code> (RFC 9457), whatever you accept. Decide by <code>code</code>, which never changes its meaning; show <code>detail</code> to developers; quote <code>request_id</code> when you ask the operator.</p>
${codeBlock('problem-example', '400 · application/problem+json', 'a problem', prettyJson(example), false)}
<p>What is wrong with parameters or a body is told all at once in <code>errors</code>, each with the <code>parameter</code> or the <code>pointer</code> (RFC 6901) that it is about. A key that does not work gets the same answer whether it is unknown or wrong, and a partner that is not yours the same as one that does not exist.</p>
<p>A server that does not run on Node or Deno may refuse malformed or oversized HTTP without a problem, or by closing the connection. It may also resolve dot segments in a path, and require quotes around an <code>Idempotency-Key</code> that contains a comma and a space.</p>
${table('Problems by code', ['Code and status', 'What it means'], rows)}`,
  )
}

const limitTexts: Readonly<Record<string, string>> = {
  key: 'Requests with a key.',
  signup: 'Signups with a key.',
  verify: 'Verifications with a key; these count nowhere else.',
  authfail: 'Refused credentials of an address. Keys that are known to be good still pass.',
}

/** How often may be asked. */
export function limits({ limits, names }: DocumentSettings): Markup {
  const rows = Object.entries(limits).map(([name, { quota, windowSeconds }]) => ({
    name: markup`<code>${name}</code>`,
    about: markup`${limitTexts[name] ?? ''}<small>${
      quota === 0 ? 'off' : `${quota} requests in ${windowSeconds} seconds`
    }</small>`,
  }))
  const { quota, windowSeconds } = limits.key
  const fields = [
    `RateLimit-Policy: "key";q=${quota};w=${windowSeconds}`,
    `RateLimit: "key";r=${Math.max(0, quota - 1)};t=${windowSeconds}`,
  ]
  return section(
    'limits',
    'Limits and headers',
    markup`
      ${table('Limits', ['Policy', 'What it counts'], rows)}
      <p>A partner or a key may have numbers of its own: the ones in force stand on every answer to a known key, as draft-ietf-httpapi-ratelimit-headers-11 has them.</p>
      ${codeBlock('limit-fields', 'HTTP', 'the fields of a limit', fields.join('\n'), false)}
      <p>Over a limit the answer is <a href="#rate_limited"><code>rate_limited</code></a> with <code>Retry-After</code> in whole seconds. Wait that long; asking again earlier is refused again.</p>
      <p>Every answer has <code>X-Request-Id</code> and <code>${names.versionHeader}</code>. A GET has an <code>ETag</code>: send it in <code>If-None-Match</code>, and what has not changed is a 304 without a body. A body may have ${
      MAX_BODY_BYTES /
      1024
    } KiB, a target 8 KiB, header fields together 32 KiB.</p>
    `,
  )
}

/** How to read a long list, how to repeat a request, and what may change. */
export function rules({ names }: DocumentSettings, takesIdempotencyKey: boolean): readonly Markup[] {
  const next = '<?partner=demo&limit=20&cursor=…>; rel="next"'
  const paging = section(
    'paging',
    'Paging',
    markup`
      <p>A list that pages answers with <code>page</code>. While <code>has_more</code> is true, send <code>next_cursor</code> as <code>cursor</code> with all else unchanged, or follow the <code>Link</code> field:</p>
      ${codeBlock('paging-field', 'HTTP', 'the link to the next page', `Link: ${next}`, false)}
      <p>The pages put together are the whole list: no row twice, none lost among those that did not change meanwhile. A cursor is opaque and belongs to its list: another filter is <a href="#invalid_cursor"><code>invalid_cursor</code></a>. There are no totals.</p>
    `,
  )
  const repeating = section(
    'idempotency',
    'Repeating a request',
    markup`
      <p>A GET may be repeated whenever you like. A signup may be, once it carries an <code>Idempotency-Key</code> of your making: for 24 hours the same key with the same body is answered as before, with <code>Idempotent-Replayed: true</code>, and done once. With another body it is <a href="#idempotency_mismatch"><code>idempotency_mismatch</code></a>; while the first attempt is running, <a href="#idempotency_conflict"><code>idempotency_conflict</code></a>. After a refusal the corrected body may have the same key.</p>
      <p>When the line breaks and you do not know whether a signup arrived, send it again with the same key.</p>
    `,
  )
  const versioning = section(
    'versioning',
    'Versioning',
    markup`
      <p>This is version <code>${API_VERSION}</code>. Send <code>${names.versionHeader}: ${API_VERSION}</code> to be refused (<a href="#unknown_version"><code>unknown_version</code></a>) rather than answered in another one; without it you get the current one, and every answer says which.</p>
      <p>Additions make no new version: be ready for members, codes and fields that you do not know. Nothing that stands here is renamed or taken away within a version.</p>
    `,
  )
  return [paging, ...(takesIdempotencyKey ? [repeating] : []), versioning]
}
