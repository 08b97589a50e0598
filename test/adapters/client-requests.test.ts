/** The client: its options, and retries after each kind of response. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import {
  createCachingFetch,
  createPartnerClient,
  type PartnerClient,
  type PartnerClientOptions,
  ServiceUnreachableError,
} from '../../adapters/client/mod.ts'
import { mintKey } from '../../core/keys/format.ts'
import { MANIFEST } from '../package/installed.ts'

const key = mintKey('spk', 'live').text

function makeClient(options: Partial<PartnerClientOptions> = {}): PartnerClient {
  return createPartnerClient({ url: 'https://api.example', key, partner: 'demo', ...options })
}

type Answer = () => Response

/** A client that receives these responses and then network errors, and its requests. */
function scripted(responses: Answer[], options: Partial<PartnerClientOptions> = {}) {
  const requested: Request[] = []
  const client = makeClient({
    ...options,
    fetch(request) {
      requested.push(request)
      const answer = responses.shift()
      return answer === undefined ? Promise.reject(new TypeError('fetch failed')) : Promise.resolve(answer())
    },
  })
  return { requested, client }
}

/** How the handler of a Hono app is typed. */
const atOnce: (request: Request) => Response | Promise<Response> = () => good()

t.test('fetch may be the handler of an app, which may return a response without a promise', async (t) => {
  t.strictSame([...await makeClient({ fetch: atOnce }).plans()], [])
  t.strictSame([...await makeClient({ fetch: createCachingFetch(new Map(), atOnce) }).plans()], [])
})

const good: Answer = () => Response.json({ data: [] })

const problem = (code: string, status: number, retryAfter?: string): Answer => () =>
  Response.json({ code, status, detail: 'A detail.', request_id: 'req_1' }, {
    status,
    headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
  })

/** Makes delays immediate until the test ends. @returns Their milliseconds. */
function recordDelays(t: Test): number[] {
  const { setTimeout } = globalThis
  t.teardown(() => Object.assign(globalThis, { setTimeout }))
  const delays: number[] = []
  Object.assign(globalThis, {
    setTimeout(act: () => void, ms: number) {
      delays.push(ms)
      return setTimeout(act, 0)
    },
  })
  return delays
}

t.test('a client can be created on servers only', (t) => {
  const navigator = Object.getOwnPropertyDescriptor(globalThis, 'navigator')!
  t.teardown(() => Object.defineProperty(globalThis, 'navigator', navigator))
  const value = { userAgent: 'Mozilla/5.0 (X11; Linux x86_64)' }
  Object.defineProperty(globalThis, 'navigator', { configurable: true, value })
  t.throws(() => makeClient(), /secret/)
  Object.defineProperty(globalThis, 'navigator', { configurable: true, value: undefined })
  t.doesNotThrow(() => makeClient(), 'some runtimes have no navigator')
  t.end()
})

t.test('invalid options are named without showing a key', (t) => {
  const unset = undefined as unknown as string
  const invalid: Readonly<Record<string, readonly [error: string, ...values: readonly unknown[]]>> = {
    // A misplaced key may be in any of them.
    url: [
      'TypeError',
      'nowhere',
      'localhost:8787',
      'file:///etc',
      '',
      key,
      'https://api.example/v1/service/',
    ],
    key: ['TypeError', unset, '', ' ', `${key}\n${key}`, `${key}…`],
    partner: ['TypeError', unset, '', key],
    timeoutMs: ['RangeError', 0, -1, NaN, 2 ** 31],
    retries: ['RangeError', -1, NaN, 1.5, Infinity],
    maxRetryAfterSeconds: ['RangeError', -1, NaN, 2_147_484],
  }
  for (const [name, [error, ...values]] of Object.entries(invalid)) {
    for (const value of values) {
      const thrown = t.throws(() => makeClient({ [name]: value }), {
        name: error,
        message: new RegExp(`^${name} must be `),
      })
      t.notOk(inspect(thrown).includes(key.slice(-20)), name)
    }
  }
  t.end()
})

t.test('a key may come from a file, and a URL may have a path', async (t) => {
  const expected = 'https://api.example/below/it/acme/public/plans?partner=demo'
  const file = Buffer.from(`${key}\n`) as unknown as string
  for (const read of [`${key}\n`, `\ufeff${key}\r\n`, ` ${key}\f`, file]) {
    for (const url of ['https://api.example/below/it/', 'https://api.example/below/it?x=1#y']) {
      const { requested, client } = scripted([good], { key: read, url, serviceName: 'acme' })
      t.strictSame(await client.plans(), [])
      const sent = requested.map((request) => [request.url, request.headers.get('x-acme-partner-key')])
      t.strictSame(sent, [[expected, key]])
    }
  }
})

t.test('a slug or query without a value asks for nothing else', async (t) => {
  const { requested, client } = scripted([good])
  for (const slug of ['', '.', '..', undefined as unknown as string]) {
    await t.rejects(client.profile(slug), { name: 'TypeError', message: "slug must not be '', '.' or '..'." })
  }
  await client.countries({ locale: null, in_use: true } as object)
  t.same(requested.map(({ url }) => url), [
    'https://api.example/service/public/countries?partner=demo&in_use=true',
  ])
})

t.test('a list whose cursor does not advance is an error', async (t) => {
  for (
    const [cursors, requests] of [[['same', 'same', 'x'], 2], [['a', 'b', 'a', 'x'], 3], [['0'], 1], [
      [null],
      1,
    ]] as const
  ) {
    const pages = cursors.map((next_cursor) => () =>
      Response.json({ data: [{}], page: { limit: 1, has_more: true, next_cursor } })
    )
    const { requested, client } = scripted(pages, { retries: 0 })
    await t.rejects(Array.fromAsync(client.profiles({ cursor: '0' })), {
      message: 'The list does not advance.',
    })
    t.equal(requested.length, requests)
  }
  const another = (data: unknown, next_cursor: unknown) => () =>
    Response.json({ data, page: { limit: 1, has_more: next_cursor !== null, next_cursor } })
  for (
    const answers of [[good], [another(null, null)], [another('text', null)], Array(3).fill(another([], {}))]
  ) {
    const { requested, client } = scripted(answers)
    await t.rejects(Array.fromAsync(client.profiles()), { name: 'ServiceUnreachableError' }, 'without pages')
    t.equal(requested.length, 1)
  }
})

t.test('temporary errors are retried after Retry-After', async (t) => {
  const delays = recordDelays(t)
  const html = (status: number, headers: Record<string, string> = {}): Answer => () =>
    new Response('<h1>Hello</h1>', { status, headers })
  const broken: Answer = () =>
    new Response(
      new ReadableStream({
        start(body) {
          body.enqueue(new TextEncoder().encode('{"data":'))
          body.error(new TypeError('terminated'))
        },
      }),
    )
  const unreachable = (status?: number) => ({ name: 'ServiceUnreachableError', status })
  const past = new Date(0).toUTCString()
  const later = new Date(Date.now() + 90_000).toUTCString()
  const foreign = (body: object): Answer => () => Response.json(body, { status: 404 })

  const cases: readonly (readonly [
    name: string,
    responses: Answer[],
    error: Readonly<Record<string, unknown>> | undefined,
    delays: readonly number[] | 1,
    options?: Partial<PartnerClientOptions>,
  ])[] = [
    [
      'seconds',
      [problem('rate_limited', 429, '1'), problem('store_unavailable', 503, '0'), good],
      undefined,
      [1000, 0],
    ],
    ['a date', [problem('store_unavailable', 503, past), good], undefined, [0]],
    ['too long', [problem('rate_limited', 429, '61'), good], {
      code: 'rate_limited',
      retryAfterSeconds: 61,
    }, []],
    ['no retries', [problem('store_unavailable', 503), good], { code: 'store_unavailable' }, [], {
      retries: 0,
    }],
    ['a gateway, too long', [html(503, { 'retry-after': '61' }), good], unreachable(503), []],
    ['a gateway, a date', [html(503, { 'retry-after': later }), good], unreachable(503), []],
    ['no response', [], unreachable(), 1, { retries: 1 }],
    ['an incomplete response', [broken, good], undefined, 1],
    ['an incomplete response, no retries', [broken], unreachable(), [], { retries: 0 }],
    ['a redirect', [() => Response.redirect('https://other.example/')], unreachable(302), []],
    [
      'another service',
      [foreign({ code: 'NOT_FOUND', detail: 'No such page.' }), good],
      unreachable(404),
      [],
    ],
    [
      'a problem of another service',
      [foreign({ code: 'x', detail: 'y', status: 503 }), good],
      unreachable(404),
      [],
    ],
    ['a page', [html(200)], unreachable(200), []],
  ]
  for (const [name, responses, error, expected, options] of cases) {
    delays.length = 0
    const { requested, client } = scripted(responses, options)
    if (error === undefined) t.strictSame(await client.plans(), [], name)
    else t.match(await client.plans().catch((error: unknown) => error), error, name)
    if (expected === 1) t.equal(delays.length, 1, name)
    else t.strictSame(delays, expected, name)
    t.equal(requested.length, delays.length + 1, name)
    t.ok(requested.every(({ redirect, url }) => redirect === 'manual' && !url.includes(key)))
  }

  delays.length = 0
  const error = await scripted([], { retries: 40 }).client.plans().catch((error: unknown) => error)
  t.ok(error instanceof ServiceUnreachableError && error.cause instanceof TypeError)
  t.equal(delays.length, 40)
  for (const [attempt, ms] of delays.entries()) {
    const mean = Math.min(250 * 2 ** attempt, 20_000)
    t.ok(mean / 2 <= ms && ms < mean * 1.5 && ms <= 30_000, `${ms} ms after attempt ${attempt + 1}`)
  }
})

t.test('requests name version and program, and keep their own headers', async (t) => {
  const { requested, client } = scripted([good, good], { serviceName: 'acme', userAgent: 'acme-website/2.1' })
  const headers = {
    traceparent: '00-1-2-01',
    'X-Acme-Partner-Key': 'other',
    'User-Agent': 'other',
    'Acme-Version': '1999-01-01',
    Accept: 'text/html',
  }
  await client.plans({ headers })
  t.match(Object.fromEntries(requested[0]!.headers), {
    traceparent: '00-1-2-01',
    'x-acme-partner-key': key,
    'user-agent': `partner-api-client/${MANIFEST.version} acme-website/2.1`,
    'acme-version': '2026-11-20',
    accept: 'application/json, application/problem+json',
  })
  t.throws(() => makeClient({ userAgent: 'a\nb' }), { message: 'userAgent must be printable ASCII.' })
})

t.test('limits of a call take precedence', async (t) => {
  const delays = recordDelays(t)
  const failing = Array(4).fill(problem('overloaded', 503))
  const { requested, client } = scripted(failing)
  await t.rejects(client.plans({ retries: 0 }), { code: 'overloaded' })
  await t.rejects(async () => await client.profiles({}, { retries: 1 }), { code: 'overloaded' })
  t.strictSame([requested.length, delays.length], [3, 1])
  await t.rejects(client.request('POST /orders', { retries: 1 }), { code: 'overloaded' })
  t.equal(requested.length, 4, 'what is not safe to repeat has no retries')
  for (const wrong of [{ timeoutMs: 0 }, { retries: -1 }]) {
    await t.rejects(client.plans(wrong), { name: 'RangeError', message: /^(?:timeoutMs|retries) must be / })
  }
  t.equal(requested.length, 4)
  const keptAlive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(keptAlive))
  const silent = makeClient({ retries: 0, fetch: () => new Promise(() => {}) })
  await t.rejects(silent.plans({ timeoutMs: 20 }), { message: /within 20 ms/ })
})

t.test('hooks see every attempt without the key, and cannot break a request', async (t) => {
  recordDelays(t)
  const seen: unknown[] = []
  const { client } = scripted([problem('overloaded', 503), good], {
    onRequest: (...words) => {
      seen.push(...words)
      throw new Error('a bug')
    },
    onResponse: (...words) => {
      seen.push(...words)
      return Promise.reject(new Error('a bug'))
    },
  })
  const { response } = await client.plans({ headers: { authorization: 'Basic secret' } })
  const url = 'https://api.example/service/public/plans?partner=demo'
  const method = 'GET'
  const first = { method, url, attempt: 0 }
  const second = { method, url, attempt: 1 }
  t.match(seen, [
    first,
    first,
    Number,
    { status: 503 },
    { code: 'overloaded' },
    second,
    second,
    Number,
    response,
  ])
  t.notMatch(inspect(seen, { depth: 9, showHidden: true }), /spk_|secret/)
})

t.test('await reads the first page of a list, once', async (t) => {
  const page = { limit: 1, has_more: true, next_cursor: 'a' }
  const { requested, client } = scripted([() => Response.json({ data: [{ id: 1 }], page }), good])
  const list = client.paginate('GET /orders')
  t.equal(requested.length, 0, 'nothing is sent before')
  t.strictSame(await list, { data: [{ id: 1 }], page })
  t.equal(await list, await list)
  t.equal(requested.length, 1)
  t.equal(await client.profiles().catch(({ message }) => message), 'The response is not a page.')
})

t.test('all errors of a problem are in the message', async (t) => {
  const errors = [{ parameter: 'limit', detail: 'a' }, { pointer: '', detail: 'b' }, {
    pointer: '/x',
    detail: 'c',
  }, null]
  const body = { code: 'invalid_parameter', status: 400, detail: 'Wrong.', request_id: 'req_1', errors }
  const { client } = scripted([() => Response.json(body, { status: 400 })])
  const message = 'Wrong. limit: a; the body: b; /x: c. (invalid_parameter, req_1)'
  await t.rejects(client.plans(), { message })
  const hostile = [{ pointer: { toString: 1 }, detail: [{ valueOf: 1, toString: 1 }] }]
  const { client: misled } = scripted([() => Response.json({ ...body, errors: hostile }, { status: 400 })])
  await t.rejects(misled.plans(), { name: 'PartnerProblem', problem: { errors: hostile } })
})

t.test('rate limits are those that both fields name', async (t) => {
  const parse = async (policy: string, limit: string) => {
    const headers = { 'ratelimit-policy': policy, ratelimit: limit }
    const { client } = scripted([() => Response.json({ data: [] }, { headers })])
    return (await client.plans()).response.rateLimits.map((limit) => Object.values(limit))
  }
  t.strictSame(
    await parse('"key";q=600;w=60, "month";q=9;w=2678400', '"month";r=0;t=7, "key";r=599;t=41'),
    [['key', 600, 60, 599, 41], ['month', 9, 2678400, 0, 7]],
  )
  t.strictSame(await parse('100, 100;w=60', 'limit=100, remaining=50'), [], 'of an older draft')
})

t.test('a call can be aborted, even during a delay', async (t) => {
  const aborting = new AbortController()
  const { requested, client } = scripted([problem('rate_limited', 429, '30'), good])
  const call = client.plans({ signal: aborting.signal })
  setTimeout(() => aborting.abort(new Error('enough')), 20)
  await t.rejects(call, { message: 'enough' })
  await t.rejects(client.plans({ signal: AbortSignal.abort(new Error('before')) }), { message: 'before' })
  t.equal(requested.length, 1)
})

t.test('an attempt that times out is retried', async (t) => {
  const requested: string[] = []
  // The timer of an AbortSignal does not keep the process running.
  const keptAlive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(keptAlive))
  const slow = makeClient({
    timeoutMs: 50,
    retries: 1,
    fetch({ url, signal }) {
      requested.push(url)
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
  })
  await t.rejects(slow.profile('x'), {
    name: 'ServiceUnreachableError',
    message: /did not respond within 50 ms\.$/,
    status: undefined,
    cause: { name: 'TimeoutError' },
  })
  t.equal(requested.length, 2)
})

t.test('time limit and signal hold whatever an own fetch does', async (t) => {
  const keptAlive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(keptAlive))
  const never = () => new Promise(() => {})
  const silent = () => new Response(new ReadableStream())
  const fails = () => {
    throw new TypeError('no')
  }
  for (const fetch of [never, silent, fails, () => undefined] as never[]) {
    const call = makeClient({ fetch, timeoutMs: 50, retries: 0 }).plans()
    await t.rejects(call, { name: 'ServiceUnreachableError', message: 'https://api.example did not respond' })
  }
  for (const fetch of [never, silent] as never[]) {
    const aborting = new AbortController()
    const call = makeClient({ fetch }).plans({ signal: aborting.signal })
    aborting.abort(new Error('enough'))
    await t.rejects(call, { message: 'enough' })
  }
})

t.test('at most 16 MiB of a response are read', async (t) => {
  let chunks = 0
  let isCancelled = false
  const body = new ReadableStream({
    pull: (controller) => chunks++ < 100 ? controller.enqueue(new Uint8Array(1_048_576)) : controller.close(),
    cancel: () => void (isCancelled = true),
  })
  const { requested, client } = scripted([() => new Response(body)])
  const message = 'The response of https://api.example is longer than 16 MiB.'
  await t.rejects(client.plans(), { name: 'ServiceUnreachableError', message, status: 200 })
  t.match({ chunks, isCancelled, requests: requested.length }, { chunks: 18, isCancelled: true, requests: 1 })
})

/** Endpoints of a host's own: orders in pages of two, and what was requested of them. */
async function serveOrders(t: Test) {
  const requested: string[] = []
  const failures: number[] = []
  const server = createServer(async (request, response) => {
    const body = (await request.toArray()).join('')
    requested.push([request.method, request.url, request.headers['idempotency-key'], body].join(' ').trim())
    const { pathname, searchParams } = new URL(request.url!, 'http://127.0.0.1')
    const send = (status: number, value: object) =>
      response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '0' }).end(
        JSON.stringify(value),
      )
    const failure = failures.shift()
    if (request.headers['x-service-partner-key'] !== key) send(401, {})
    else if (failure !== undefined) {
      send(failure, { status: failure, code: 'overloaded', detail: 'Too much.', request_id: 'req_1' })
    } else if (!/^\/service\/(?:service\/)?orders$/.test(pathname)) {
      send(200, { data: { id: decodeURIComponent(pathname.split('/').at(-1)!) } })
    } else if (request.method === 'POST') send(200, { data: { id: 'new' } })
    else {
      const start = Number(searchParams.get('cursor') ?? 0)
      const page = { limit: 2, has_more: start < 2, next_cursor: start < 2 ? String(start + 2) : null }
      send(200, { data: ['a', 'b', 'c'].slice(start, start + 2).map((id) => ({ id })), page })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close().closeAllConnections())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { requested, failures, client: makeClient({ url }) }
}

interface Order {
  readonly id: string
}

t.test('endpoints of a host are called by their path', async (t) => {
  const { client, requested } = await serveOrders(t)
  const { data: { id }, page } = await client.request<Order>('GET /orders/{id}', {
    params: { id: 'ä/../1?x#' },
  })
  t.strictSame([id, page], ['ä/../1?x#', undefined])
  const query = { state: ['open', 'paid'], from: undefined, limit: 2 }
  await client.request('GET /service/a/:id/{other}', { params: { id: 7, other: '%2e%2e' }, query })
  const body = { item: 'x', partner: 'other' }
  const answer = await client.request<Order>('POST /orders', {
    body,
    query: { dry: true },
    idempotencyKey: 'k1',
  })
  t.strictSame(answer, { data: { id: 'new' } })
  await client.request('POST /orders')
  t.strictSame((await client.request<readonly Order[]>('GET /orders')).page?.next_cursor, '2')
  await client.request('GET /service/service/orders')
  t.strictSame(requested, [
    'GET /service/orders/%C3%A4%2F..%2F1%3Fx%23?partner=demo',
    'GET /service/a/7/%252e%252e?partner=demo&state=open&state=paid&limit=2',
    'POST /service/orders?dry=true k1 {"item":"x","partner":"demo"}',
    'POST /service/orders  {"partner":"demo"}',
    'GET /service/orders?partner=demo',
    'GET /service/service/orders?partner=demo',
  ])
})

t.test('paths may begin with the base path, as those of verifyKey do', async (t) => {
  const { requested, client } = scripted(Array(4).fill(good), { url: 'https://api.example/shop/api/' })
  await client.request('GET /api/service/orders')
  await client.request('GET /shop/api/service/orders')
  await client.request('GET /service/orders')
  await client.request('GET /other/service/orders')
  t.same(requested.map(({ url }) => new URL(url).pathname), [
    '/shop/api/service/orders',
    '/shop/api/service/orders',
    '/shop/api/service/orders',
    '/shop/api/service/other/service/orders',
  ])
})

t.test('a service may have the name of a first segment', async (t) => {
  const { requested, client } = scripted([good, good, good], { serviceName: 'partner' })
  await client.reportSummary()
  await client.request('GET /partner/partner/reports/summary')
  await client.request('GET /orders')
  t.same(requested.map(({ url }) => new URL(url).pathname), [
    '/partner/partner/reports/summary',
    '/partner/partner/reports/summary',
    '/partner/orders',
  ])
})

t.test('a list of a host is read in pages', async (t) => {
  const { client, requested } = await serveOrders(t)
  const ids = (orders: readonly Order[]) => orders.map(({ id }) => id).join('')
  const query = { state: 'open' }
  t.equal(ids(await Array.fromAsync(client.paginate<Order>('GET /service/orders', { query }))), 'abc')
  t.strictSame(requested, [
    'GET /service/orders?partner=demo&state=open',
    'GET /service/orders?partner=demo&state=open&cursor=2',
  ])
  const [first] = await Array.fromAsync(client.paginate<Order>('GET /orders').pages())
  const cursor = first?.page.next_cursor
  const rest = await Array.fromAsync(client.paginate<Order>('GET /orders', { query: { cursor } }))
  t.strictSame([ids(first!.data), ids(rest)], ['ab', 'c'])
  await t.rejects(Array.fromAsync(client.paginate('GET /orders/1')), {
    message: 'The response is not a page.',
  })
  const signal = AbortSignal.abort(new Error('enough'))
  await t.rejects(Array.fromAsync(client.paginate('GET /orders', { signal })), { message: 'enough' })
})

t.test('a request is retried only where it is safe', async (t) => {
  const { client, requested, failures } = await serveOrders(t)
  const attempts = async (call: () => Promise<unknown>) => {
    requested.length = 0
    failures.splice(0, 2, 503, 503)
    const error = await call().then(() => undefined, (error) => error)
    return [error?.code, requested.length]
  }
  t.strictSame(await attempts(() => client.request('GET /orders')), [undefined, 3])
  t.strictSame(await attempts(() => client.request('POST /orders', { idempotencyKey: 'k' })), [undefined, 3])
  t.strictSame(new Set(requested).size, 1, 'with the same key')
  t.strictSame(await attempts(() => client.request('POST /orders')), ['overloaded', 1])
  t.strictSame(await attempts(() => client.request('POST /orders', { idempotencyKey: undefined })), [
    'overloaded',
    1,
  ])
  t.strictSame(await attempts(() => client.verifyKey()), [undefined, 3])
  const aborted = { signal: AbortSignal.abort(new Error('enough')) }
  await t.rejects(client.request('GET /orders', aborted), { message: 'enough' })
})

t.test('a path that leads elsewhere is refused before the key is sent', async (t) => {
  const { client, requested } = scripted([good])
  const refused = [
    undefined,
    '/orders',
    'GET',
    'GET ',
    'GET orders',
    'GET  /orders',
    'get /orders',
    'DELETE /orders',
    'GET /',
    'GET /orders/',
    'GET //other.example',
    'GET //other.example/service/orders',
    'GET https://other.example/orders',
    'GET /https://other.example',
    'GET @other.example/',
    'GET /\\other.example',
    'GET /a//b',
    'GET /..',
    'GET /../x',
    'GET /a/../x',
    'GET /a/./x',
    'GET /a/..',
    'GET /service/..',
    'GET /service/../x',
    'GET /%2e%2e/x',
    'GET /.%2E/x',
    'GET /a%2fb',
    'GET /.\t./x',
    'GET /..\\x',
    'GET /a?key=1',
    'GET /a#b',
    'GET /a\n',
    'GET /a b',
    'GET /ä',
    'GET /a/{id',
    'GET /a/id}',
    'GET /a/{}',
    'GET /a/x{id}',
    'POST /a\r\nx: y',
  ] as never[]
  for (const route of refused) {
    await t.rejects(client.request(route, { params: { id: 'x' } }), { name: 'TypeError' }, route)
    await t.rejects(async () => await Array.fromAsync(client.paginate(route)), { name: 'TypeError' }, route)
  }
  for (const id of ['', '.', '..', null, undefined] as never[]) {
    for (const route of ['GET /a/{id}', 'POST /a/:id', 'GET /service/:id/b'] as const) {
      const message = "id must not be '', '.' or '..'."
      await t.rejects(client.request(route, { params: { id } }), { name: 'TypeError', message })
    }
  }
  await t.rejects(client.request('GET /a/:id'), { message: /^id must not be / })
  await t.rejects(client.request('GET /a', { body: {} }), {
    message: 'body is for POST only, not for GET /a.',
  })
  t.strictSame(requested, [])
})

t.test('any path that is accepted stays below the service', async () => {
  const { requested, client } = scripted([])
  const piece = fc.constantFrom(
    ...'/ . .. ~ a : {id} :id % %2e %2F \\ ? # @ \t é // service GET'.split(' '),
    ' ',
  )
  await fc.assert(fc.asyncProperty(fc.array(piece, { maxLength: 6 }), fc.string(), async (pieces, id) => {
    requested.length = 0
    await client.request(`GET /${pieces.join('')}`, { params: { id } }).catch(() => {})
    return requested.every(({ url }) => {
      const { origin, pathname, search } = new URL(url)
      const segments = (path: string) => path.split('/').length
      const written = segments(`/${pieces.join('')}`.replace(/^\/service(?=\/)/, '')) + 1
      return origin === 'https://api.example' && pathname.startsWith('/service/') &&
        search === '?partner=demo' &&
        segments(pathname) === written
    })
  }))
})

t.test('network errors are explained', async (t) => {
  const server = createServer((request) => request.socket.resetAndDestroy()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const messageOf = (url: string): Promise<string> =>
    makeClient({ url, retries: 0 }).plans().then(() => '', ({ message }) => message)
  t.equal(
    await messageOf(`http://${address}`),
    `http://${address} did not respond: the connection was closed.`,
  )
  t.match(await messageOf(`https://${address}`), / the TLS handshake failed/)
  t.match(
    await messageOf('http://tls.invalid'),
    / its host name could not be resolved \(DNS\)(?: \(EAI_AGAIN\))?\.$/,
  )
  server.close()
  await once(server, 'close')
  t.match(await messageOf(`http://${address}`), / the connection was refused\.$/)
  t.match(await messageOf('http://127.0.0.1:10080'), / fetch refuses to connect to this port\.$/)

  // Deno's errors have no codes, but quote the URL with its query.
  for (
    const [words, meaning] of [
      ['tcp connect error: Connection refused (os error 111)', ': the connection was refused'],
      ['dns error: failed to lookup address information', ': its host name could not be resolved (DNS)'],
      ['Requests to port 6000 are blocked', ': fetch refuses to connect to this port'],
      ['invalid peer certificate: UnknownIssuer', ': the TLS handshake failed'],
      ['something else', ''],
    ]
  ) {
    const cause = new Error(`error sending request for url (https://tls.example/?q=ENOTFOUND): ${words}`)
    const fetch = () => Promise.reject(new TypeError('fetch failed', { cause }))
    const message = `https://api.example did not respond${meaning}.`
    await t.rejects(makeClient({ retries: 0, fetch }).plans(), { message })
  }
})
