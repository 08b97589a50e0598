/** The service keeps running when a log, a store or a directory fails or does not respond. */
import t from 'tap'
import { createPartnerApi } from '../../core/api.ts'
import { directoryOf } from '../../core/content/custom-directory.ts'
import type { HttpRequest } from '../../core/http/message.ts'
import { internalsOf } from '../../core/internals.ts'
import type { LogEvent } from '../../core/log.ts'
import type { Directory } from '../../core/ports/directory.ts'
import type { CompletedRequest } from '../../core/ports/observer.ts'
import type { Store } from '../../core/ports/store.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { until } from '../postgres/until.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { serveStore } from '../support/partner-service.ts'
import { createPartner } from '../support/partner.ts'

async function createAcme() {
  const store: Store = await openMemoryStore()
  const { keys, issue } = await createPartner(store)
  const { key: { id }, text } = await issue()
  return { store, key: text, id, keys }
}

function get(target: string, key: string | undefined, headers: Record<string, string> = {}): HttpRequest {
  const all: Record<string, string> = key === undefined
    ? headers
    : { 'x-service-partner-key': key, ...headers }
  return {
    method: 'GET',
    target,
    header: (name) => all[name],
    body: () => new Uint8Array(),
    address: '192.0.2.1',
  }
}

const page = '/service/public/profiles?partner=acme'

t.test('an observer may be an instance of a class, and throw when a response is ready', async (t) => {
  class Counter {
    readonly calls: string[] = []
    readonly statuses: number[] = []
    requestCompleted({ status }: CompletedRequest): void {
      this.statuses.push(status)
      throw new Error('full')
    }
    storeCall<T>(operation: string, call: () => T): T {
      this.calls.push(operation)
      return call()
    }
    traceId(): string {
      return `trace ${this.statuses.length}`
    }
  }
  for (const count of [1, 2]) {
    const { store, key } = await createAcme()
    const observers = Array.from({ length: count }, () => new Counter())
    const log: LogEvent[] = []
    const api = createPartnerApi({ store }, { observers, logLevel: 'all', log: (event) => log.push(event) })
    t.equal((await api.handle(get(page, key))).status, 200)
    t.equal((await api.handle(get(page, undefined))).status, 401)
    t.equal(internalsOf(api).refuse('malformed_request').status, 400)
    for (const { calls, statuses } of observers) {
      t.strictSame(statuses, [200, 401, 400])
      t.ok(calls.includes('listProfiles'))
    }
    t.strictSame(log.map(({ trace_id }) => trace_id), ['trace 0', 'trace 1', undefined])
    await api.close()
  }
})

t.test('whatever a host, a log or an observer does, a request gets its response', async (t) => {
  const fail = (): never => {
    throw new Error('full')
  }
  const failLater = () => Promise.reject(new Error('full'))
  const failing = (name: 'method' | 'header' | 'address') => Object.defineProperty({}, name, { get: fail })
  type Case = readonly [string, Partial<PartnerApiOptions>, object, statuses?: readonly number[]]
  const cases: readonly Case[] = [
    ['a log that throws', { log: fail }, {}],
    ['a log that rejects', { log: failLater as () => void }, {}],
    ['an observer that rejects', { observers: [{ requestCompleted: failLater, request: failLater }] }, {}],
    ['an observer that throws', { observers: [{ request: fail, traceId: fail }] }, {}],
    ['one that fails afterwards', { observers: [{ request: (_, handle) => (handle(), fail()) }] }, {}],
    ['a number as address', { observers: [] }, { address: 7 }],
    ['an object as address', {}, { address: { hostname: '::1' } }],
    ['no headers', {}, failing('header'), [500, 500]],
    ['no method', {}, failing('method'), [500, 500]],
    ['an address that throws', {}, failing('address'), [500, 401]],
  ]
  for (const [name, options, request, statuses = [200, 401]] of cases) {
    const { store, key } = await createAcme()
    const events: LogEvent[] = []
    const api = createPartnerApi({ store }, {
      logLevel: 'all',
      log: (event) => events.push(event),
      ...options,
    })
    for (const [index, text] of [key, undefined].entries()) {
      const hostile = Object.defineProperties(
        { ...get(page, text) },
        Object.getOwnPropertyDescriptors(request),
      )
      t.equal((await api.handle(hostile)).status, statuses[index], name)
      if (options.log === undefined) t.equal(events.pop()?.status, statuses[index], `${name} is logged`)
    }
    await api.close()
  }
})

t.test('what is no request is a 500, and the log says so', async (t) => {
  const { store } = await createAcme()
  const events: LogEvent[] = []
  const api = createPartnerApi({ store }, { log: (event) => events.push(event) })
  const route = {
    name: 'invoice',
    method: 'GET',
    path: '/invoice',
    scope: 'read:plans',
    summary: 'Get it',
  } as const
  const invoice = api.protect(route, () => new Response())
  for (const request of [undefined, null, `http://x.example${page}`, new URL(`http://x.example${page}`)]) {
    for (const handler of [api.fetch, invoice]) {
      t.equal((await handler(request as never)).status, 500)
      t.match(events.at(-1)?.error, /^TypeError: The request must be a Request of the Fetch standard, /)
    }
  }
  await api.close()
})

t.test('the default log level omits successful requests and logs refused credentials', async (t) => {
  const { store, key } = await createAcme()
  const events: LogEvent[] = []
  const limits = { authfail: { quota: 2, windowSeconds: 60 } }
  const api = createPartnerApi({ store }, {
    limits,
    trustedProxies: 1,
    maxStalenessMs: 0,
    log: (event) => events.push(event),
  })
  const from = { 'x-forwarded-for': '203.0.113.9' }
  await api.handle(get(page, key, from))
  internalsOf(api).refuse('malformed_request', '192.0.2.2')
  t.same(events, [], 'successful responses and framing errors are not logged')
  await api.handle(get(page, `${key},${key}`, from))
  await api.handle(get(page, 'nothing', from))
  await api.handle(get(page, 'nothing', from))
  t.match(events, [
    { event: 'request', status: 400, code: 'ambiguous_credentials', address: '203.0.113.9', level: 'warn' },
    { event: 'request', status: 401, code: 'key_invalid', address: '203.0.113.9' },
    { event: 'request', status: 429, code: 'rate_limited', address: '203.0.113.9' },
  ], 'every refused credential is logged with the address of the client')
  events.length = 0
  await api.handle(get(page.replace('=acme', '=other'), key, from))
  t.match(events, [{ status: 403, code: 'partner_mismatch', partner: 'acme', key_id: key.split('_')[2] }])
})

t.test('without a log, errors are lines on the console, and nothing else is', async (t) => {
  const { store, key } = await createAcme()
  const failing: Store = {
    ...store,
    listProfiles() {
      const cause = new Error('the disk is full')
      throw new Error('Failed query: select name from company\nparams: ada@example.com', { cause })
    },
  }
  const printed = t.capture(console, 'error', () => {})
  const errors = async (options: PartnerApiOptions) => {
    const api = createPartnerApi({ store: failing }, options)
    t.equal((await api.handle(get(page, key))).status, 503)
    t.equal((await api.handle(get(page, 'wrong'))).status, 401)
    await api.close()
    return printed().map(({ args }) => args)
  }
  const [line, ...more] = await errors({ logLevel: 'all' })
  t.match(JSON.parse(line![0]), {
    level: 'error',
    event: 'request',
    status: 503,
    error: 'Error: Failed query: select name from company; cause: Error: the disk is full',
  })
  t.strictSame([line!.length, more], [1, []])
  t.strictSame(await errors({ log: () => {} }), [], 'a log that drops events')
})

t.test('a closed service says so, and not that its store is unavailable', async (t) => {
  const { store, key } = await createAcme()
  const events: LogEvent[] = []
  const api = createPartnerApi({ store }, { log: (event) => events.push(event) })
  t.equal((await api.handle(get(page, key))).status, 200)
  await api.close()
  const response = await api.fetch(
    new Request(`http://x.example${page}`, { headers: { 'x-service-partner-key': key } }),
  )
  t.match(await response.json(), { status: 503, code: 'store_unavailable', detail: 'The service is closed.' })
  t.equal(response.headers.get('retry-after'), '1')
  t.match(events, [{ event: 'request', status: 503, error: 'Error: The service is closed.' }])
  t.equal(events.length, 1)
})

t.test('client input is not logged unvalidated', async (t) => {
  const { store, key } = await createAcme()
  const events: LogEvent[] = []
  const api = createPartnerApi({ store }, {
    trustedProxies: 1,
    logLevel: 'all',
    log: (event) => events.push(event),
  })
  const last = (): LogEvent => events.at(-1)!
  for (const made of [key, key.replaceAll('_', '%5F'), 'x'.repeat(20_000), '192.0.2.1 or so', '']) {
    await api.handle({ ...get('/service/nowhere', key, { 'x-forwarded-for': made }), method: made })
    t.match(last(), { status: 404, path: '/service/nowhere', method: undefined, address: undefined })
    internalsOf(api).refuse('malformed_request', made)
    t.match(last(), { status: 400, address: undefined })
    if (made !== '') t.notMatch(JSON.stringify(events), made)
  }
  await api.handle({ ...get(page, key, { 'x-forwarded-for': '[fe80::1%eth0]:4711' }), method: 'PATCH' })
  t.match(last(), { status: 405, method: 'PATCH', address: 'fe80::1' })
  await api.handle(get(`/${key}`, key))
  t.strictSame([last().status, last().path], [404, '/'])
})

t.test('a browser that is allowed has a line in the log', async (t) => {
  const { store, key } = await createAcme()
  const events: LogEvent[] = []
  const api = createPartnerApi({ store }, { allowBrowsers: true, log: (event) => events.push(event) })
  const fromBrowsers: Record<string, string>[] = [
    { origin: 'https://browser.example' },
    { 'sec-fetch-site': 'none' },
  ]
  for (const headers of [...fromBrowsers, {}]) {
    t.equal((await api.handle(get(page, key, headers))).status, 200)
  }
  const line = { event: 'browser_allowed', level: 'warn', path: '/service/public/profiles' }
  t.match(events, [line, line])
  t.equal(events.length, 2)
})

t.test('the log has the trace id of a valid traceparent', async (t) => {
  const { store, key } = await createAcme()
  const events: LogEvent[] = []
  const api = createPartnerApi({ store }, { logLevel: 'all', log: (event) => events.push(event) })
  const trace = '0af7651916cd43dd8448eb211c80319c'
  const parent = 'b7ad6b7169203331'
  const valid = [`00-${trace}-${parent}-01`, `00-${trace}-${parent}-ff`, `cc-${trace}-${parent}-01-later`]
  const invalid = [
    '',
    key,
    `ff-${trace}-${parent}-01`,
    `00-${trace}-${parent}-01-later`,
    `00-${trace.toUpperCase()}-${parent}-01`,
    `00-${trace}0-${parent}-01`,
    `00-${'0'.repeat(32)}-${parent}-01`,
    `00-${trace}-${'0'.repeat(16)}-01`,
    `00-${trace}-${parent}`,
  ]
  for (const traceparent of [...valid, ...invalid]) {
    await api.handle(get(page, key, { traceparent }))
    const expected = valid.includes(traceparent) ? trace : undefined
    t.equal(events.at(-1)?.trace_id, expected, JSON.stringify(traceparent.replace(key, 'a key')))
  }
})

t.test('a search that is given up is 503 overloaded, and the store counts as available', async (t) => {
  const { store, key } = await createAcme()
  const listProfiles = () => {
    throw Object.assign(new Error('a search took too long'), { code: 'overloaded' })
  }
  const codes: unknown[] = []
  const api = createPartnerApi({ store: { ...store, listProfiles } }, {
    observers: [{ requestCompleted: ({ code }) => void codes.push(code) }],
  })
  const { status, headers, body } = await api.handle(get(page, key))
  t.match([status, JSON.parse(String(body)).code], [503, 'overloaded'])
  t.match(headers[headers.indexOf('Retry-After') + 1], /^\d+$/)
  t.equal((await api.handle(get('/service/health', undefined))).status, 200)
  t.equal((await internalsOf(api).measurements()).isStoreAvailable, true)
  t.strictSame(codes, ['overloaded', undefined])
})

t.test('with stale-if-error, known keys work while the store is down, and responses report it', async (t) => {
  const { store: memory, key } = await createAcme()
  let isDown = false
  const unlessDown = <A extends unknown[], R>(call: (...args: A) => R) => (...args: A): R => {
    if (isDown) throw new Error('unreachable')
    return call(...args)
  }
  const store: Store = {
    ...memory,
    revision: unlessDown(memory.revision),
    findKey: unlessDown(memory.findKey),
    check: unlessDown(memory.check),
    listProfiles: unlessDown(memory.listProfiles),
  }
  const events: LogEvent[] = []
  const api = createPartnerApi({ store }, {
    maxStalenessMs: 0,
    staleIfErrorSeconds: 30,
    log: (event) => events.push(event),
  })
  const data = async (request: HttpRequest): Promise<Record<string, unknown>> => {
    const { status, body } = await api.handle(request)
    return { status, ...JSON.parse(String(body)).data }
  }
  const health = get('/service/health', undefined)
  const verify: HttpRequest = {
    ...get('/service/developer/verify-key', key, { 'content-type': 'application/json' }),
    method: 'POST',
    body: () => new TextEncoder().encode('{"partner":"acme"}'),
  }
  const other = key.replace(/.{38}$/, '0'.repeat(38))

  t.strictSame(await data(health), { status: 'ok' })
  t.strictSame((await data(verify)).stale_if_error, { seconds: 30, since: null })
  t.equal((await api.handle(get(page, key))).status, 200)
  isDown = true
  t.equal((await api.handle(get(`${page}&limit=7`, key))).status, 503, 'an uncached page gets 503')
  t.equal((await api.handle(get('/service/public/countries?partner=acme', key))).status, 200)
  t.equal((await api.handle(get(page, other))).status, 401)
  t.match(await data(health), { status: 'stale', since: /Z$/, until: /Z$/ })
  t.match((await data(verify)).stale_if_error, { seconds: 30, since: /Z$/ })
  isDown = false
  // The store is read again within a second, in the background of requests.
  for (let round = 0; events.at(-1)?.event !== 'store_recovered' && round < 200; round++) {
    await api.handle(get(page, key))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.equal((await api.handle(get(`${page}&limit=7`, key))).status, 200)
  t.strictSame(await data(health), { status: 'ok' })
  t.strictSame((await data(verify)).stale_if_error, { seconds: 30, since: null })
  t.strictSame(
    events.filter(({ event }) => event.startsWith('store_')).map(({ event }) => event),
    ['store_unavailable', 'store_recovered'],
  )
  t.throws(() => createPartnerApi({ store }, { staleIfErrorSeconds: 3601 }), /staleIfErrorSeconds/)
})

t.test('administrative changes are logged by the server that applies them', async (t) => {
  const { store, key, id, keys } = await createAcme()
  const changes: LogEvent[] = []
  let arrived: () => void
  const api = createPartnerApi({ store }, {
    maxStalenessMs: 0,
    log(event) {
      if (event.event !== 'administration') return
      changes.push(event)
      arrived()
    },
  })
  const next = (): Promise<void> => new Promise((resolve) => arrived = resolve)
  const scopes = ['read:profiles']
  // Reading starts at the end of the audit log, so changes are repeated until the first one is logged.
  await api.handle(get(page, key))
  let seen = false
  const first = next().then(() => seen = true)
  for (let round = 0; !seen && round < 200; round++) {
    await (round % 2 === 0 ? keys.remove(id, scopes) : keys.grant(id, scopes))
    await api.handle(get(page, key))
    await Promise.race([first, new Promise((resolve) => setTimeout(resolve, 20))])
  }
  t.match(changes[0], { event: 'administration', actor: 'test', partner: 'acme', key_id: id, level: 'info' })
  t.match(changes[0]?.type, /^scope\.(removed|granted)$/)
  t.match(changes[0]?.subject, 'read:profiles')
  const at = Date.parse(changes[0]?.decided_at ?? '')
  t.ok(at <= Date.now() && at > Date.now() - 60_000, 'with its instant')
})

t.test('a revoked key is no longer a known key', async (t) => {
  const { store, key, id, keys } = await createAcme()
  let reads = 0
  const revision = () => (reads++, store.revision())
  const api = createPartnerApi({ store: { ...store, revision } }, {
    maxStalenessMs: 0,
    limits: { authfail: { quota: 3, windowSeconds: 60 } },
  })
  const retiring = await keys.issue({ partner: 'acme', name: 'retiring', environment: 'live' })
  await keys.rotate(retiring.key.id)
  for (const used of [key, retiring.text]) t.equal((await api.handle(get(page, used))).status, 200)
  await keys.revoke(id)
  reads = 0
  const statuses = []
  for (let time = 0; time < 6; time++) statuses.push((await api.handle(get(page, key))).status)
  t.same(statuses, [401, 401, 401, 429, 429, 429])
  t.equal(reads, 3, 'the last three cost the store no query')
  t.equal((await api.handle(get(page, retiring.text))).status, 200, 'one that retires is in force')
})

t.test('without a client address, failures are not counted', async (t) => {
  const { store, key } = await createAcme()
  const api = createPartnerApi({ store }, { limits: { authfail: { quota: 1, windowSeconds: 60 } } })
  const request = (given: string, info?: { remoteAddr: { hostname: string } }) =>
    api.fetch(new Request(`http://localhost${page}`, { headers: { authorization: `Bearer ${given}` } }), info)
  for (let time = 0; time < 3; time++) t.equal((await request('wrong')).status, 401)
  t.equal((await request(key)).status, 200, 'keys are not limited by failures of others')
  const info = { remoteAddr: { hostname: '192.0.2.9' } }
  t.equal((await request('wrong', info)).status, 401)
  t.equal((await request('wrong', info)).status, 429, 'with an address they are limited')
})

t.test('options out of range throw', async (t) => {
  const store = await openMemoryStore()
  const refused: [PartnerApiOptions, RegExp][] = [
    [{ serviceName: 'Acme' }, /named "Acme"/],
    [{ maxStalenessMs: 10_001 }, /maxStalenessMs .* 0 to 10000/],
    [{ maxStalenessMs: Number.NaN }, /maxStalenessMs/],
    [{ storeTimeoutMs: 0 }, /storeTimeoutMs .* 1 to 60000/],
    [{ trustedProxies: -1 }, /trustedProxies/],
    [{ responseCacheBytes: -1 }, /responseCacheBytes/],
    [{ problemBase: 'nowhere' }, /problemBase/],
    [{ logLevel: 'al' as 'all' }, /logLevel/],
    [{ onInvalidRow: 'drop' as 'skip' }, /^onInvalidRow must be skip or fail, not "drop"\.$/],
    [{ limits: { key: { quota: -1, windowSeconds: 1 } } }, /limits\.key\.quota/],
    [{ limits: { key: { quota: 1, windowSeconds: 0 } } }, /limits\.key\.windowSeconds/],
  ]
  for (const [options, message] of refused) {
    t.throws(() => createPartnerApi({ store }, options), { name: 'RangeError', message })
  }
  const ports: readonly (readonly [unknown, RegExp])[] = [
    [undefined, /^createPartnerApi: no store; pass \{ store: /],
    [store, /^createPartnerApi: no store; /],
    [{ store: Promise.resolve(store) }, /^createPartnerApi: store is a promise; await it first\.$/],
    [{ store: 'partner-api.db' }, /^createPartnerApi: store has no method revision\.$/],
    [{ store, directory: { listProfiles: () => [] } }, /directory has no method findProfile\.$/],
  ]
  for (const [given, message] of ports) {
    t.throws(() => createPartnerApi(given as { store: Store }), { name: 'TypeError', message })
  }
  createPartnerApi({ store, directory: null, signups: null } as never)
  t.end()
})

t.test('a directory without a revision fails nothing that does not need it', async (t) => {
  let fault: (() => never) | undefined
  const own = directoryOf([])
  const directory: Directory = {
    ...own,
    listProfiles: (...query) => fault === undefined ? own.listProfiles(...query) : fault(),
    directoryRevision: () => fault === undefined ? 'first' : fault(),
  }
  const events: LogEvent[] = []
  const log = (event: LogEvent): void => void events.push(event)
  const { api, post, request } = await serveStore(
    await openMemoryStore(),
    { log, maxStalenessMs: 0, storeTimeoutMs: 20 },
    { directory },
  )
  const statuses = async () => {
    const signup = { partner: 'demo', email: 'ada@example.com', name: 'Ada' }
    const responses = await Promise.all([
      post('/developer/verify-key', { partner: 'demo' }),
      post('/partner/signups', signup),
      request('/public/plans?partner=demo'),
      request('/public/profiles?partner=demo'),
    ])
    const { json } = await request('/health')
    return [...responses.map(({ status, json }) => json.code ?? status), json.data]
  }
  t.strictSame(await statuses(), [200, 201, 200, 200, { status: 'ok' }])
  const overloaded = Object.assign(new Error('busy'), { code: 'overloaded' })
  const faults: readonly (readonly [string, () => never])[] = [
    ['store_unavailable', () => Promise.reject(new Error('away')) as never],
    ['store_unavailable', () => ({ then: () => {} }) as never],
    ['overloaded', () => {
      throw overloaded
    }],
  ]
  for (const [code, present] of faults) {
    events.length = 0
    fault = present
    const unhealthy = { status: 'ok', directory: 'unavailable' }
    t.strictSame(await statuses(), [200, 201, 200, code, unhealthy])
    const errors = events.map(({ event, error }) => `${event} ${error?.split(': ')[1]}`)
    t.strictSame(errors, ['store_unavailable directory.directoryRevision', 'request directory.listProfiles'])
    fault = undefined
    await until(
      async () => !('directory' in (await request('/health')).json.data),
      'the directory to recover',
    )
    t.equal(events.at(-1)?.event, 'store_recovered')
  }
  await api.close()
})
