/** Requests of every kind, and their normalized responses, which must be equal on every runtime. */
import { PROBLEMS } from '../../core/http/problem.ts'
import { keyedPaths } from '../contract/http/expect.ts'
import { forge } from '../contract/http/forgery.ts'
import type { Service, TestContext, TestRequest, TestResponse } from '../contract/http/service.ts'
import { FENCE, type KeyName } from '../support/world.ts'
import type { Runtime } from './runtimes.ts'

/** Normalized responses by request: status, header fields by name and body, one line each. */
export type CanonicalAnswers = ReadonlyMap<string, string>

/** Problems that these requests cannot cause. */
const UNASKED: readonly string[] = [
  // Caused by the parser, the clock or the store: see the tests of adapters and resilience.
  'headers_too_large',
  'request_timeout',
  'internal',
  'store_unavailable',
  'overloaded',
  // Need another request at the same time, or a key that no two runtimes would have.
  'idempotency_conflict',
  'rotation_conflict',
  'claim_spent',
  // Returned by endpoints of the host's own alone.
  'not_found',
  'conflict',
]

/** The required settings of the service. */
export const CANONICAL_SETTINGS = { limits: { verify: { quota: 5, windowSeconds: 600 } } }

type CanonicalRequest = readonly [path: string, more?: Partial<TestRequest>, key?: KeyName | 'none']

const demo = 'partner=demo'
const signup = (more: object): string =>
  JSON.stringify({ partner: 'demo', email: 'jane@example.com', name: 'Jane Döe', ...more })

function post(body: string, headers: TestRequest['headers'] = {}): Partial<TestRequest> {
  return { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } }
}

function requestsFor({ world }: Service, etag: string, cursor: string): readonly CanonicalRequest[] {
  const verify = '/developer/verify-key'
  const signups = '/partner/signups'
  const plans = `/public/plans?${demo}`
  const paths = keyedPaths()
  const open = ['/health', '/openapi.json', '/docs', '/docs.md', '/docs/signUp.md']
  return [
    ...paths.map((path): CanonicalRequest => [`${path}?${demo}`]),
    ...paths.map((path): CanonicalRequest => [`${path}?${demo}`, { method: 'HEAD' }]),
    ...open.map((path): CanonicalRequest => [path, {}, 'none']),
    ...open.map((path): CanonicalRequest => [path, { method: 'HEAD' }, 'none']),
    [`/public/profiles?${demo}&limit=3&country=de&country=FR&sort=-published_at`],
    [`/public/profiles?${demo}&limit=3&cursor=${cursor}`],
    [`/public/profiles?${demo}&q=universit%C3%A9`],
    [`/public/countries?${demo}&in_use=true&locale=de`],
    [`/public/industries?${demo}&in_use=true`],
    [`/partner/reports/summary?${demo}&from=2024-01-01&to=2024-01-03`],
    // Ids and instants of rows differ by store.
    [`/partner/reports/activity?${demo}&type=signup.created`],
    [verify, post('{"partner":"demo"}')],
    [verify, post('{"partner":"acme"}'), 'acme full'],
    [signups, post(signup({ country: 'de', message: 'Grüße 👋' }), { 'idempotency-key': 'first' })],
    [signups, post(signup({ country: 'de', message: 'Grüße 👋' }), { 'idempotency-key': 'first' })],
    [signups, post(signup({}), { 'idempotency-key': 'first' })],

    [plans, { headers: { 'if-none-match': etag } }],
    [plans, { method: 'HEAD', headers: { 'if-none-match': etag } }],
    ['/docs', { headers: { 'if-none-match': '*' } }, 'none'],
    ['/docs', { headers: { accept: 'text/markdown' } }, 'none'],
    ['/docs/nothing.md', {}, 'none'],
    [plans, { method: 'OPTIONS' }],
    [verify, { method: 'OPTIONS' }],
    [plans, { method: 'DELETE' }],
    [verify, {}],

    ['/public/profiles/%zz?partner=demo'],
    [verify, post('{"partner":')],
    [plans, { headers: { authorization: 'Bearer other' } }],
    [`${plans}&x=1&limit=2`],
    [`${plans}&${demo}`],
    [`/public/profiles?${demo}&limit=0&country=xx&sort=size&q=a`],
    [`/public/profiles?${demo}&cursor=nonsense`],
    ['/public/plans'],
    [plans, { headers: { 'service-version': '1999-01-01' } }],
    [plans, {}, 'none'],
    [plans, { headers: { 'x-service-partner-key': forge('spk_live', 'Nobody000000') } }],
    [plans, {}, 'demo revoked'],
    [plans, {}, 'demo expired'],
    [plans, {}, 'demo disabled'],
    ['/public/plans?partner=acme'],
    ['/public/plans?partner=hush', {}, 'hush full'],
    [plans, {}, 'demo profiles'],
    ['/public/plans?partner=acme', {}, 'acme full'],
    ['/developer/rotate-key', post('{"partner":"demo"}')],
    [plans, {}, 'demo fenced'],
    [plans, {}, 'demo local'],
    [plans, { headers: { origin: 'https://browser.example' } }],
    ['/nowhere'],
    [`/claim/${'A'.repeat(32)}`, {}, 'none'],
    [`/public/profiles/no-such?${demo}`],
    [plans, { headers: { accept: 'text/html' } }],
    [verify, { ...post(`{"partner":"demo"${' '.repeat(32_768)}}`) }],
    [verify, { ...post(`{"partner":"demo"${' '.repeat(32_768)}}`), chunked: true }],
    [`${plans}&q=${'a'.repeat(8192)}`],
    [signups, post(signup({}), { 'content-type': 'text/plain' })],
    [signups, post(signup({ email: 'nobody', plan: 'none', other: FENCE.range }))],
    [signups, post('[]')],
    [verify, post('{"partner":"demo"}')],
    [verify, post('{"partner":"demo"}')],
    [`/public/plans?partner=demo&key=${world.keys['demo full'].text}`, {}, 'none'],
  ]
}

/** Sends all requests in order. */
export async function canonicalAnswers(service: Service): Promise<CanonicalAnswers> {
  const startedAt = Date.now()
  const { root, send, world } = service
  const answers = new Map<string, string>()

  async function request(
    [path, { headers, ...more } = {}, name = 'demo full']: CanonicalRequest,
  ): Promise<TestResponse> {
    const key: TestRequest['headers'] = name === 'none'
      ? {}
      : { 'x-service-partner-key': world.keys[name].text }
    const target = path.startsWith('/.') ? path : root + path
    const response = await send({ target, ...more, headers: { ...key, ...headers } })
    const count = String(answers.size + 1).padStart(2, '0')
    answers.set(`${count} ${more.method ?? 'GET'} ${target.slice(0, 100)}`, canonical(response, startedAt))
    return response
  }

  const { headers } = await request([`/public/plans?${demo}`])
  const { json } = await request([`/public/profiles?${demo}&limit=3`])
  const cursor = encodeURIComponent(json.page.next_cursor)
  for (const one of requestsFor(service, headers.get('etag') ?? '', cursor)) await request(one)
  await request(['/.well-known/api-catalog', {}, 'none'])
  await world.remove('banners', ['demo'])
  await request([`/public/banner?${demo}`])
  return answers
}

/** The runtime whose responses the others must equal. */
const reference = 'Node 26'

/** Checks that the responses of all runtimes are equal, and include every problem that requests can cause. */
export function equalAnswers(t: TestContext, answersOf: ReadonlyMap<Runtime, CanonicalAnswers>): void {
  const wanted = [...answersOf].find(([{ name }]) => name === reference)![1]
  const possible = Object.keys(PROBLEMS).filter((code) => !UNASKED.includes(code))
  t.strictSame(codesIn(wanted), possible, 'the responses include every problem that requests can cause')
  for (const [{ name }, answers] of answersOf) {
    t.strictSame([...answers], [...wanted], `${name}: ${answers.size} answers`)
  }
}

/** The problem codes in responses. */
function codesIn(answers: CanonicalAnswers): readonly string[] {
  const refusals = [...answers.values()].filter((answer) => /^[45]/.test(answer)).join('\n')
  return Object.keys(PROBLEMS).filter((code) => refusals.includes(`"code":"${code}"`))
}

/** Normalizes a response: drops fields of the runtime and of HTTP/1.1, and replaces times. */
const passing = ['date', 'connection', 'keep-alive', 'x-request-id']

function canonical({ status, headers, repeated, body }: TestResponse, startedAt: number): string {
  const fields = [...headers].filter(([name]) => !passing.includes(name))
    .map(([name, value]) => `${name}: ${name === 'retry-after' ? 'SECONDS' : steady(value)}`).toSorted()
  const text = Buffer.from(body).toString('latin1')
    .replaceAll(headers.get('x-request-id') ?? 'none', 'REQUEST')
    .replace(/\b(sgn|act)_\w+/g, '$1_ID')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (instant) => Date.parse(instant) < startedAt ? instant : 'NOW')
    .replace(/"resets_in_seconds":\d+/g, '"resets_in_seconds":SECONDS')
  return [status, ...fields, ...repeated.map((name) => `${name} twice`), '', text].join('\n')
}

function steady(value: string): string {
  return value.replace(/;t=\d+/g, ';t=SECONDS')
}
