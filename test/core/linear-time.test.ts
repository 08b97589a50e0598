/** Section 10, "Work": processing time is at most proportional to the length of any part of a request. */
import process from 'node:process'
import fc from 'fast-check'
import t from 'tap'
import { createPartnerApi } from '../../core/api.ts'
import { FAR_LIMITS } from '../contract/http/service.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { fillWorld } from '../support/world.ts'

const maxTarget = 8_192
const maxHead = 32_768
const maxBody = 32_768

/** A part of a request that the client controls. */
interface Place {
  readonly name: string
  /** Maximum length in characters. */
  readonly max: number
  request(text: string): Request
}

const store = await openMemoryStore()
const { keys } = await fillWorld(store)
const key = { 'x-service-partner-key': keys['demo full'].text }
const api = createPartnerApi({ store }, {
  limits: FAR_LIMITS,
  trustedProxies: 1,
  log: () => undefined,
  logLevel: 'all',
})

const origin = 'http://api.example'
const get = (target: string, headers: Record<string, string> = key) =>
  new Request(origin + target, { headers })
const post = (path: string, body: string, headers: Record<string, string> = {}) =>
  new Request(`${origin}/service${path}`, {
    method: 'POST',
    body,
    headers: { ...key, 'content-type': 'application/json', ...headers },
  })

const header = (name: string, more: Record<string, string> = key): Place => ({
  name: `${name}${more === key ? '' : ' alone'}`,
  max: maxHead,
  request: (text) => get('/service/public/plans?partner=demo', { ...more, [name]: text }),
})
const target = (name: string, before: string): Place => ({
  name,
  max: maxTarget - before.length,
  // `Request` would percent-encode other characters, which triples their length.
  request: (text) =>
    get((before + text.replace(/[^!$&'()*+,\-./0-9:;=@A-Z_a-z~%[\]\\|]/g, '~')).slice(0, maxTarget)),
})
const body = (name: string, path: string, bodyOf: (text: string) => string): Place => ({
  name,
  max: maxBody / 2,
  request: (text) => post(path, bodyOf(text)),
})
const required = { partner: 'demo', email: 'a@b.example', name: 'A' }
const member = (name: string): Place =>
  body(`signup ${name}`, '/partner/signups', (text) => JSON.stringify({ ...required, [name]: text }))

const places: readonly Place[] = [
  ...['authorization', 'x-forwarded-for'].map((name) => header(name, {})),
  ...['authorization', 'x-service-partner-key', 'accept', 'if-none-match', 'traceparent', 'x-forwarded-for']
    .map((name) => header(name)),
  ...['host', 'content-length', 'transfer-encoding', 'service-version', 'origin'].map((name) => header(name)),
  ...['content-type', 'content-encoding', 'idempotency-key'].map((name): Place => ({
    name,
    max: maxHead,
    request: (text) => post('/partner/signups', JSON.stringify(required), { [name]: text }),
  })),
  target('path', '/'),
  target('slug', '/service/public/profiles/'),
  target('query', '/service/public/profiles?partner=demo&'),
  ...['q', 'cursor', 'country', 'limit', 'sort'].map((name) =>
    target(name, `/service/public/profiles?partner=demo&${name}=`)
  ),
  target('locale', '/service/public/countries?partner=demo&locale='),
  target('from', '/service/partner/reports/summary?partner=demo&from='),
  body('JSON', '/developer/verify-key', (text) => text),
  body('member names', '/developer/verify-key', (text) => JSON.stringify({ partner: 'demo', [text]: 1 })),
  body(
    'many members',
    '/developer/verify-key',
    (text) => `{${Array.from(text, (_, n) => `"${n}":1`).slice(0, text.length / 8)}}`,
  ),
  body('nested', '/developer/verify-key', (text) => '['.repeat(text.length) + ']'.repeat(text.length)),
  ...['partner', 'email', 'name', 'company', 'country', 'plan', 'locale', 'message', 'consent_at'].map(
    member,
  ),
  body(
    'metadata',
    '/partner/signups',
    (text) =>
      JSON.stringify({
        ...required,
        metadata: { [text.slice(0, text.length / 2)]: text.slice(text.length / 2) },
      }),
  ),
]

/** The least processor time of several equal requests in milliseconds: how busy the machine is does not count. */
async function cost({ request }: Place, text: string, times: number): Promise<number> {
  let least = Infinity
  for (let time = 0; time < times; time++) {
    const asked = request(text)
    const begun = processorMs()
    const { status } = await api.fetch(asked, { remoteAddr: { hostname: '192.0.2.1' } })
    least = Math.min(least, processorMs() - begun)
    if (status >= 500) throw new Error(`${status} for ${text.slice(0, 40)}…`)
  }
  return least
}

/** The processor time of this thread in milliseconds. */
function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Less than quadratic processing of any size here would take. */
const negligibleMs = 5

/** Whether the maximum length takes negligible time, or about eight times that of an eighth. */
async function isLinear(place: Place, textOf: (length: number) => string): Promise<boolean> {
  if (await cost(place, textOf(place.max), 1) < negligibleMs) return true
  for (let attempt = 1; attempt <= 4; attempt++) {
    const whole = await cost(place, textOf(place.max), 3 * attempt)
    // Quadratic time would be sixty-four times.
    if (whole < negligibleMs || whole < 24 * await cost(place, textOf(place.max / 8), 3 * attempt)) {
      return true
    }
  }
  return false
}

// Characters of patterns and separators, and letters.
const signs = fc.constantFrom(...'\\\\""\',;=:/.%&+*@-_[]{}()<> \ta0f~')
const pieces = fc.tuple(
  fc.string({ unit: signs, maxLength: 4 }),
  fc.string({ unit: signs, minLength: 1, maxLength: 3 }),
  fc.string({ unit: signs, maxLength: 2 }),
)
/** Patterns that were once quadratic, or nearly so. */
const known: [string, string, string][] = [
  ['Digest ,"', '\\"', ''],
  ['Digest a="', '\\', '"'],
  ['"', '\\"', '\\'],
  ['', '"', ''],
  ['', ' ', ';'],
  ['', ',', 'x'],
  ['[', ']:', 'x'],
  ['{"a":"b"', ' ', '}'],
  ['["', '\\"', '"]'],
  ['', '%5f', ''],
  ['', '%25', ''],
  ['', '_live_', ''],
  ['a@', 'a.', ''],
  ['a@', 'a-', '.'],
  ['1', '1', '.'],
]

for (const place of places) {
  await t.test(`${place.name} is processed in linear time`, async () => {
    const property = fc.asyncProperty(pieces, ([before, unit, after]) =>
      isLinear(place, (length) => {
        const times = Math.max(0, Math.floor((length - before.length - after.length) / unit.length))
        return before + unit.repeat(times) + after
      }))
    await fc.assert(property, { numRuns: 25, examples: known.map((one) => [one]) })
  })
}
