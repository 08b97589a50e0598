/** `verify --smoke` against the service, directly and behind a proxy that alters responses. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { documentOf, runProgram, startServing, stopServing, temporaryFolder } from '../support/cli-program.ts'

interface Row {
  readonly method: string
  readonly path: string
  readonly status: number | null
  readonly ms: number | null
  readonly verdict: string
  readonly reasons: readonly string[]
}

/** A response that the proxy may change. */
interface Passing {
  status: number
  readonly headers: Map<string, string>
  body: string
}

interface Call {
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly again: boolean
}

const folder = temporaryFolder()
const file = join(folder, 'store.db')
const served = await startServing(['demo', '--port', '0', '--json'], `sqlite:${file}`)
const store = await openSqliteStore(file)
const keys = createKeyAdministration(store, { actor: 'test' })
const issue = async (environment: 'live' | 'test', scopes?: readonly string[]) =>
  (await keys.issue({ partner: 'demo', name: 'Smoke', environment, ...(scopes && { scopes }) })).text
const live = await issue('live')
const testKey = await issue('test')

let calls: Call[] = []
/** Changes a response; `true` closes the connection instead. */
type Change = (response: Passing, call: Call) => unknown
let change: Change = () => {}
let upstream = served.url
const proxy = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  const { host: _host, connection: _connection, ...headers } = request.headers
  const answer = await fetch(upstream + request.url!.replace(/^\/(?:proxy|service(?=\/service\/))/, ''), {
    method: request.method!,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
    ...(body !== '' && { body }),
  })
  const call = {
    method: request.method!,
    target: request.url!,
    again: calls.some(({ target }) => target === request.url),
  }
  calls.push(call)
  const passed = { status: answer.status, headers: new Map(answer.headers), body: await answer.text() }
  if (change(passed, call) === true) return void response.destroy()
  passed.headers.delete('content-length')
  response.writeHead(passed.status, Object.fromEntries(passed.headers)).end(passed.body)
}).listen(0, '127.0.0.1')
await once(proxy, 'listening')
const proxied = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`

const verify = (url: string, key: string, ...args: string[]) =>
  runProgram(['verify', '--url', url, '--partner', 'demo', ...args], { env: { PARTNER_API_KEY: key } })

async function smoke(key: string, ...args: string[]) {
  calls = []
  const ended = await verify(proxied, key, '--smoke', '--json', ...args)
  const rows: readonly Row[] = documentOf(ended).data.smoke
  return { ...ended, rows, row: (part: string) => rows.find(({ path }) => path.endsWith(part))! }
}

test('the unaltered service passes', async (t) => {
  const { code, rows, row } = await smoke(testKey)
  t.equal(code, 0)
  t.equal(rows.length, 12)
  for (const { path, verdict, status, ms, reasons } of rows.slice(0, -1)) {
    t.match({ verdict, status, reasons }, { verdict: 'ok', status: 200, reasons: [] }, path)
    t.ok(ms! > 0)
  }
  t.match(row('/signups'), { method: 'POST', verdict: 'skipped', status: null, ms: null })
  t.match(row('/signups').reasons[0], '--with-signup')
  t.ok(calls.every(({ method, target }) => method === 'GET' || target.endsWith('/verify-key')))
  const targets = calls.map(({ target }) => target)
  t.ok(targets.some((target) => /\/public\/profiles\?.*&cursor=/.test(target)), 'a second page')
  t.ok(targets.some((target) => /\/public\/profiles\/[a-z]/.test(target)), 'a profile')
  t.equal((await store.listSignups(undefined, undefined, 9)).length, 0)

  const human = await verify(served.url, live, '--smoke', '--module', 'profiles')
  t.match(human, { code: 0, stderr: '12 endpoints: 11 ok and 1 skipped.' })
  t.match(
    human.stdout,
    /^ENDPOINT +STATUS +MS +VERDICT\nGET \/service\/developer\/problems +200 +[\d.]+ +ok\n/m,
  )
  t.match(human.stdout, /^The key is valid\.\n/)
  t.notMatch(human.stdout + human.stderr, live)
})

test('--signup sends a signup, with a test key only', async (t) => {
  const refused = await smoke(live, '--with-signup')
  t.equal(refused.code, 1)
  t.match(refused.row('/signups'), { verdict: 'failed', status: null, reasons: [/test key/] })
  t.equal((await store.listSignups(undefined, undefined, 9)).length, 0)

  const made = await smoke(testKey, '--with-signup')
  t.equal(made.code, 0)
  t.match(made.row('/signups'), { verdict: 'ok', status: 201 })
  t.equal(calls.filter(({ method, target }) => method === 'POST' && target.endsWith('/signups')).length, 2)
  const signups = await store.listSignups('demo', undefined, 9)
  t.match(signups, [{ environment: 'test', email: 'smoke-test@example.com' }])
  t.match(made.row('/signups').reasons[0], signups[0]!.id)
  t.equal((await verify(proxied, testKey, '--with-signup')).code, 2)
})

test('a service below a base path is found and tested', async (t) => {
  t.teardown(() => upstream = served.url)
  // The end of a path, or what a proxy removes, may look like the service.
  for (const [basePath, name] of [['/api', 'service'], ['/service', 'service'], ['/v1.0/acme', 'acme']]) {
    const options = ['--base-path', basePath!, '--service-name', name!]
    const below = await startServing(['serve', '--port', '0', ...options], `sqlite:${file}`)
    t.teardown(() => stopServing(below))
    upstream = below.url
    for (const base of [below.url, `${proxied}/proxy`]) {
      const ended = await verify(base + basePath, live, '--smoke', '--json')
      const rows: readonly Row[] = documentOf(ended).data.smoke
      t.equal(ended.code, 0, base + basePath)
      t.equal(rows.filter(({ verdict }) => verdict === 'ok').length, 11)
      for (const { path } of rows) t.ok(path.startsWith(`${basePath}/${name}/`), path)
    }
    const { code, stderr } = await verify(below.url, live)
    t.equal(code, 3)
    t.match(stderr, 'The base path in --url is /, and the service name')
    const { headers } = await fetch(below.url, { redirect: 'manual' })
    t.equal(headers.get('location'), `${basePath}/${name}/docs`)
  }
  upstream = served.url
  const removed = await verify(`${proxied}/service`, live, '--smoke')
  t.match(removed, { code: 0, stderr: '11 ok' }, 'a proxy removes /service')
  for (const args of [['--base-path', 'api'], ['--base-path', '/api', '--public-url', 'https://a.example']]) {
    const { code, stderr } = await runProgram(['openapi', ...args])
    t.match({ code, stderr }, { code: 2, stderr: /must/ })
  }
})

test('endpoints that the key may not use are skipped', async (t) => {
  const key = await issue('live', ['read:plans', 'create:partner-signups'])
  const { code, rows, row } = await smoke(key)
  t.equal(code, 0)
  t.match(row('/plans'), { verdict: 'ok' })
  t.match(row('/banner'), { verdict: 'not_allowed', status: null, reasons: [/read:banner/] })
  t.equal(rows.filter(({ verdict }) => verdict === 'not_allowed').length, 9)
  t.same([...new Set(calls.map(({ target }) => target.split('?')[0]))], [
    '/.well-known/api-catalog',
    '/service/developer/verify-key',
    '/service/developer/problems',
    '/service/public/plans',
  ])
})

/** The change of each endpoint by path suffix, and the expected reason. */
type Faults = Readonly<Record<string, readonly [reason: RegExp, change: Change]>>

const set = (name: string, value: string): Change => ({ headers }) => headers.set(name, value)
const drop = (name: string): Change => ({ headers }) => void headers.delete(name)
const replace = (pattern: RegExp | string, text: string): Change => (response) => {
  response.body = response.body.replace(pattern, text)
}
const respond = (status: number, body: string, type = 'application/problem+json'): Change => (response) => {
  Object.assign(response, { status, body })
  response.headers.set('content-type', type)
}
const isFor = (path: string, { target }: Call) =>
  path === '/{slug}'
    ? /\/profiles\/(?!recent)[^?]/.test(target)
    : new URL(target, proxied).pathname.endsWith(path)

/** Expects exactly these endpoints to fail. */
async function expectFaults(t: Test, faults: Faults, others: Change, ...args: [string, ...string[]]) {
  change = (response, call) => {
    const [path] = Object.keys(faults).filter((path) => isFor(path, call))
    return path === undefined ? others(response, call) : faults[path]![1](response, call)
  }
  const { code, rows, row } = await smoke(...args)
  t.equal(code, 1)
  for (const [path, [reason]] of Object.entries(faults)) {
    t.equal(row(path).verdict, 'failed', path)
    t.match(`${row(path).reasons.join('; ')};`, reason, path)
  }
  const failed = rows.filter(({ verdict }) => verdict === 'failed')
  t.equal(failed.length, Object.keys(faults).length, 'no other endpoint fails')
  return { row }
}

test('a wrong status is reported', async (t) => {
  const oops = respond(500, '<html><title>Oops</title>', 'text/html')
  const reason = /answered 500 instead of 200, with the HTML page "Oops"/
  const { row } = await expectFaults(t, { '/plans': [reason, oops] }, () => {}, live)
  t.match(row('/plans'), { status: 500 })
})

test('invalid bodies and fields are reported', async (t) => {
  const faults: Faults = {
    '/countries': [/data\.0\.name .*expected string, received 5/, replace(/"name":"[^"]*"/, '"name":5')],
    '/industries': [/body is not JSON/, replace('{', '')],
    '/banner': [/no X-Request-Id/, drop('x-request-id')],
    '/profiles/recent': [/no ETag/, drop('etag')],
    '/plans': [/Content-Type is text\/html/, set('content-type', 'text/html')],
    '/{slug}': [
      /website_url violates .*received "javascript:alert\(1\)"; data\.links\.0\.url violates/,
      (response) => {
        const url = 'javascript:alert(1)'
        const { data } = JSON.parse(response.body)
        response.body = JSON.stringify({
          data: { ...data, website_url: url, links: [{ rel: 'press', url }] },
        })
      },
    ],
    '/partner-widget': [/Cache-Control is public/, set('cache-control', 'public')],
    '/summary': [/If-None-Match with 200 instead of 304/, (response) => {
      response.status = 200
      response.headers.set('content-type', 'application/json; charset=utf-8')
    }],
    '/activity': [
      /Link points elsewhere: https:\/\/elsewhere/,
      set('link', '<https://elsewhere.example/?cursor=1>; rel="next"'),
    ],
  }
  await expectFaults(t, faults, () => {}, live)
})

test('wrong Vary, CORS and RateLimit fields are reported', async (t) => {
  const faults: Faults = {
    '/plans': [
      /its Vary lacks X-Service-Partner-Key/,
      set('vary', 'Accept-Encoding, Authorization, service-version'),
    ],
    '/countries': [/it has no Vary/, drop('vary')],
    '/industries': [/it has Access-Control-Allow-Origin: \*/, set('access-control-allow-origin', '*')],
    '/banner': [/it has no RateLimit;/, drop('ratelimit')],
    '/partner-widget': [/its RateLimit-Policy lacks key/, set('ratelimit-policy', '"verify";q=600;w=60')],
    '/summary': [
      /on its 304, it has no RateLimit;/,
      (response, call) => call.again && drop('ratelimit')(response, call),
    ],
    '/signups': [/its RateLimit lacks signup/, set('ratelimit', '"key";r=599;t=41')],
  }
  const more: Change = ({ headers }) => headers.set('vary', `Origin, ${headers.get('vary')}`)
  await expectFaults(t, faults, more, testKey, '--with-signup')

  // If verify-key reports no limits, no RateLimit fields are expected.
  change = (response, call) => {
    if (call.target.endsWith('/verify-key')) return replace(/"limits":\[.*?\]/, '"limits":[]')(response, call)
    for (const name of ['ratelimit', 'ratelimit-policy']) response.headers.delete(name)
  }
  t.equal((await smoke(live)).code, 0)
})

test('redirects, wrong tags, versions, pages and repeated signups are reported', async (t) => {
  let firstPage = ''
  const faults: Faults = {
    '/countries': [/ETag changes with every response/, (response) => {
      response.headers.set('etag', `"${calls.length}"`)
      if (response.status === 304) response.status = 200
    }],
    '/partner-widget': [/302 .*a redirect to \/login, which is not followed/, (response) => {
      response.status = 302
      response.headers.set('location', '/login')
    }],
    '/recent': [/slug is/, replace(/"slug":"[^"]*"/g, '"slug":"\\ud800../"')],
    '/summary': [/Service-Version is 2020-01-01/, set('service-version', '2020-01-01')],
    '/public/profiles': [/second page repeats/, (response, { target, again }) => {
      if (target.includes('cursor=')) response.body = firstPage
      else if (!again) firstPage = response.body
    }],
    '/signups': [
      /lacks Idempotent-Replayed.*it made sgn_/,
      (response, call) => call.again && drop('idempotent-replayed')(response, call),
    ],
  }
  const valid: Change = (response, call) => {
    if (isFor('/banner', call)) {
      respond(404, '{"code":"banner_not_found","title":"No banner"}')(response, call)
    }
    if (isFor('/activity', call) && !call.again) response.body += ' '.repeat(2_000_000)
    if (isFor('/plans', call)) {
      replace('{"data":[{', '{"more":1,"data":[{"added":{"later":true},')(response, call)
    }
  }
  const { row } = await expectFaults(t, faults, valid, testKey, '--with-signup')
  t.match(row('/plans'), { verdict: 'ok', reasons: [] }, 'additions are allowed')
  t.match(row('/banner'), { verdict: 'ok', status: 404, reasons: [/no content at present/] })
  t.match(row('/activity'), { verdict: 'ok' }, 'a long response is allowed')
  t.match(row('/{slug}'), { verdict: 'skipped', reasons: [/no list has returned/] })
})

test('after a 429 of the service nothing else is called', async (t) => {
  const slowDown: Change = (response, call) => {
    if (!call.again) return
    response.headers.set('retry-after', 'Sun, 06 Nov 2050 08:49:37 GMT')
    respond(429, '{"code":"rate_limited","title":"Slow down"}')(response, call)
  }
  const reason = /^its rate limit is exceeded\. Try again at Sun, 06 Nov 2050 08:49:37 GMT\.;$/
  const { row } = await expectFaults(t, { '/partner-widget': [reason, slowDown] }, () => {}, live)
  t.match(row('/plans'), { verdict: 'skipped', reasons: [/limit was exceeded/] })
  t.equal(
    calls.filter(({ method }) => method === 'GET').length,
    5,
    'the catalog, problems twice, the widget and its 429',
  )
})

test('a hostile deployment cannot occupy the program', async (t) => {
  change = (response, call) => {
    if (isFor('/plans', call)) response.body = `{"data":[${'1,'.repeat(500_000)}1]}`
    if (!isFor('/verify-key', call)) return
    const { data } = JSON.parse(response.body)
    const endpoints = Array(1_000).fill(data.endpoints.find(({ path }: Row) => path.endsWith('/plans')))
    response.body = JSON.stringify({ data: { ...data, endpoints } })
  }
  const { rows } = await smoke(live)
  t.match(rows.slice(1), [{ verdict: 'failed', reasons: { length: 11, 10: 'and more members are wrong' } }])
  t.equal(calls.filter((call) => isFor('/plans', call)).length, 1)
})

test('a newer deployment is accepted, and one that stops is reported', async (t) => {
  change = (response, call) => {
    if (call.target.includes('/plans')) return true
    if (!call.target.endsWith('/verify-key')) return false
    const added = '{"method":"PURGE","path":"/service/everything","scope":"read:everything","allowed":true}'
    return replace('"endpoints":[', `"endpoints":[${added},`)(response, call)
  }
  const { code, row } = await smoke(live)
  t.equal(code, 3)
  t.match(row('/everything'), { verdict: 'skipped', reasons: [/does not know it/] })
  t.notOk(calls.some(({ target }) => target.includes('everything')))
  t.match(row('/plans'), { verdict: 'unreachable', status: null, reasons: [/connection was closed/] })
  t.match(row('/countries'), { verdict: 'ok' })
})

test('a deployment that lists them does not make the program rotate or revoke its key', async (t) => {
  const paths = ['/service/developer/rotate-key', '/service/developer/revoke-key']
  const added = paths.map((path) => ({
    method: 'POST',
    path,
    scope: 'create:partner-signups',
    allowed: true,
  }))
  change = (response, call) => {
    if (!call.target.endsWith('/verify-key')) return
    replace('"endpoints":[', `"endpoints":[${JSON.stringify(added).slice(1, -1)},`)(response, call)
  }
  const { code, row } = await smoke(testKey, '--with-signup')
  t.equal(code, 0)
  for (const path of paths) t.match(row(path), { verdict: 'skipped', status: null })
  t.notOk(calls.some(({ target }) => /(?:rotate|revoke)-key/.test(target)))
})

test('the end', async () => {
  proxy.closeAllConnections()
  proxy.close()
  await store.close()
  await stopServing(served)
})
