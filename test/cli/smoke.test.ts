/** `verify --smoke` against the real service, alone and behind something that breaks what it answers. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
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

/** An answer on its way through. */
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
const file = join(folder.path, 'store.db')
const served = await startServing(['demo', '--port', '0', '--json'], `sqlite:${file}`)
const store = await openSqliteStore(file)
const keys = createKeyAdministration(store, { actor: 'test' })
const issue = async (environment: 'live' | 'test', scopes?: readonly string[]) =>
  (await keys.issue({ partner: 'demo', name: 'Smoke', environment, ...(scopes && { scopes }) })).text
const live = await issue('live')
const testKey = await issue('test')

let calls: Call[] = []
/** What breaks the answers; `undefined` closes the connection. */
let meddle: (call: Call, answer: Passing) => Passing | undefined = (_call, answer) => answer
const proxy = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  const { host: _host, connection: _connection, ...headers } = request.headers
  const answer = await fetch(served.url + request.url, {
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
  const passed = meddle(call, {
    status: answer.status,
    headers: new Map(answer.headers),
    body: await answer.text(),
  })
  if (passed === undefined) return void response.destroy()
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

test('the real service', async (t) => {
  const { code, rows, row } = await smoke(testKey)
  t.equal(code, 0)
  t.equal(rows.length, 11)
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
  t.match(human, { code: 0, stderr: '11 endpoints: 10 ok and 1 skipped.' })
  t.match(human.stdout, /^ENDPOINT +STATUS +MS +VERDICT\nGET \/service\/partner-widget +200 +[\d.]+ +ok\n/m)
  t.match(human.stdout, /^The key is valid\.\n/)
  t.notMatch(human.stdout + human.stderr, live)
})

test('a signup is made when it is asked for, with a test key', async (t) => {
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

test('what the key may not use is not called', async (t) => {
  const key = await issue('live', ['read:plans', 'create:partner-signups'])
  const { code, rows, row } = await smoke(key)
  t.equal(code, 0)
  t.match(row('/plans'), { verdict: 'ok' })
  t.match(row('/banner'), { verdict: 'not_allowed', status: null, reasons: [/read:banner/] })
  t.equal(rows.filter(({ verdict }) => verdict === 'not_allowed').length, 9)
  t.same([...new Set(calls.map(({ target }) => target.split('?')[0]))], [
    '/service/developer/verify-key',
    '/service/public/plans',
  ])
})

const broken: readonly (readonly [
  says: string,
  path: string,
  reason: RegExp,
  meddle: (call: Call, answer: Passing) => Passing | undefined,
])[] = [
  [
    'a status',
    '/plans',
    /answered 500 and not 200, with the HTML page "Oops"/,
    (_, answer) => ({ ...answer, status: 500, body: '<html><title>Oops</title>' }),
  ],
  ['a type', '/countries', /data\.0\.name .*expected string, received 5/, (_, answer) => ({
    ...answer,
    body: answer.body.replace(/"name":"[^"]*"/, '"name":5'),
  })],
  ['a body', '/industries', /body is not JSON/, (_, answer) => ({ ...answer, body: answer.body.slice(1) })],
  ['a request id', '/banner', /no X-Request-Id/, (_, answer) => withoutField(answer, 'x-request-id')],
  ['a tag', '/profiles/recent', /no ETag/, (_, answer) => withoutField(answer, 'etag')],
  [
    'a type of media',
    '/{slug}',
    /Content-Type is text\/html/,
    (_, answer) => withField(answer, 'content-type', 'text/html'),
  ],
  [
    'a cache',
    '/partner-widget',
    /Cache-Control is public/,
    (_, answer) => withField(answer, 'cache-control', 'public'),
  ],
  ['a condition', '/summary', /If-None-Match with 200 and not 304/, (_, answer) => ({
    ...answer,
    status: 200,
    headers: new Map([...answer.headers, ['content-type', 'application/json; charset=utf-8']]),
  })],
  [
    'a link',
    '/activity',
    /Link leads elsewhere: https:\/\/elsewhere/,
    (_, answer) => withField(answer, 'link', '<https://elsewhere.example/?cursor=1>; rel="next"'),
  ],
]

const withoutField = (answer: Passing, name: string) => {
  answer.headers.delete(name)
  return answer
}
const withField = (answer: Passing, name: string, value: string) => {
  answer.headers.set(name, value)
  return answer
}
const isFor = (path: string, { target }: Call) =>
  path === '/{slug}'
    ? /\/profiles\/(?!recent)[^?]/.test(target)
    : new URL(target, proxied).pathname.endsWith(path)

test('an endpoint that is broken is named, and no other', async (t) => {
  const [, path, reason, act] = broken[0]!
  meddle = (call, answer) => isFor(path, call) ? act(call, answer) : answer
  const alone = await smoke(live)
  t.equal(alone.code, 1)
  t.match(alone.row(path), { verdict: 'failed', status: 500, reasons: [reason] })
  t.equal(alone.rows.filter(({ verdict }) => verdict === 'ok').length, 9)
  // The others at once: each endpoint is judged by itself.
  meddle = (call, answer) =>
    broken.slice(1).find(([, path]) => isFor(path, call))?.[3](call, answer) ?? answer
  const { code, row } = await smoke(live)
  t.equal(code, 1)
  for (const [says, path, reason] of broken.slice(1)) {
    t.equal(row(path).verdict, 'failed', says)
    t.match(row(path).reasons.join('; '), reason, says)
  }
  t.match(row('/plans'), { verdict: 'ok' })
  t.match(row('/public/profiles'), { verdict: 'ok' })
})

test('fields for caches, browsers and limits', async (t) => {
  const wrong: Readonly<Record<string, readonly [RegExp, (call: Call, answer: Passing) => Passing]>> = {
    '/plans': [
      /its Vary lacks X-Service-Partner-Key/,
      (_, answer) => withField(answer, 'vary', 'Accept-Encoding, Authorization, service-version'),
    ],
    '/countries': [/it has no Vary/, (_, answer) => withoutField(answer, 'vary')],
    '/industries': [
      /it has Access-Control-Allow-Origin: \*/,
      (_, answer) => withField(answer, 'access-control-allow-origin', '*'),
    ],
    '/banner': [/it has no RateLimit;/, (_, answer) => withoutField(answer, 'ratelimit')],
    '/partner-widget': [
      /its RateLimit-Policy lacks key/,
      (_, answer) => withField(answer, 'ratelimit-policy', '"verify";q=600;w=60'),
    ],
    '/summary': [
      /on its 304, it has no RateLimit;/,
      ({ again }, answer) => again ? withoutField(answer, 'ratelimit') : answer,
    ],
    '/signups': [
      /its RateLimit lacks signup/,
      (_, answer) => withField(answer, 'ratelimit', '"key";r=599;t=41'),
    ],
  }
  meddle = (call, answer) => {
    const [path] = Object.keys(wrong).filter((path) => isFor(path, call))
    return path === undefined
      ? withField(answer, 'vary', `Origin, ${answer.headers.get('vary')}`)
      : wrong[path]![1](call, answer)
  }
  const { code, rows, row } = await smoke(testKey, '--with-signup')
  t.equal(code, 1)
  for (const [path, [reason]] of Object.entries(wrong)) {
    t.match(row(path).reasons.join(';') + ';', reason, path)
  }
  t.equal(rows.filter(({ verdict }) => verdict === 'ok').length, 4)

  // Where verify-key says that no limit is on, none of the fields is asked for.
  meddle = ({ target }, answer) =>
    target.endsWith('/verify-key')
      ? { ...answer, body: answer.body.replace(/"limits":\[.*?\]/, '"limits":[]') }
      : withoutField(withoutField(answer, 'ratelimit'), 'ratelimit-policy')
  t.equal((await smoke(live)).code, 0)
})

test('what else can be wrong, and what is not', async (t) => {
  const secondPage = new Map<string, Passing>()
  meddle = (call, answer) => {
    const { pathname, searchParams } = new URL(call.target, proxied)
    if (pathname.endsWith('/plans')) {
      return {
        ...answer,
        body: answer.body.replace('{"data":[{', '{"more":1,"data":[{"added":{"later":true},'),
      }
    }
    if (pathname.endsWith('/activity') && !call.again) {
      return { ...answer, body: answer.body + ' '.repeat(2_000_000) }
    }
    if (pathname.endsWith('/countries')) {
      return withField(answer, 'etag', `"${calls.length}"`).status === 304
        ? { ...answer, status: 200 }
        : answer
    }
    if (pathname.endsWith('/industries')) {
      answer.headers.set('retry-after', '7').set('content-type', 'application/problem+json')
      return { ...answer, status: 429, body: '{"code":"rate_limited","title":"Slow down"}' }
    }
    if (pathname.endsWith('/banner')) {
      answer.headers.set('content-type', 'application/problem+json')
      return { ...answer, status: 404, body: '{"code":"banner_not_found","title":"No banner"}' }
    }
    if (pathname.endsWith('/partner-widget')) {
      return { ...withField(answer, 'location', '/login'), status: 302 }
    }
    if (pathname.endsWith('/recent')) {
      return { ...answer, body: answer.body.replace(/"slug":"[^"]*"/g, '"slug":"\\ud800../"') }
    }
    if (pathname.endsWith('/summary')) return withField(answer, 'service-version', '2020-01-01')
    if (pathname.endsWith('/public/profiles')) {
      if (!searchParams.has('cursor')) {
        if (!call.again) secondPage.set('first', answer)
      } else return { ...answer, body: secondPage.get('first')!.body }
    }
    return pathname.endsWith('/signups') && call.again ? withoutField(answer, 'idempotent-replayed') : answer
  }
  const { code, row } = await smoke(testKey, '--with-signup')
  t.equal(code, 1)
  t.match(row('/plans'), { verdict: 'ok', reasons: [] }, 'additions are no fault')
  t.match(row('/countries').reasons, [/ETag changes with every response/])
  t.match(row('/industries').reasons, [/limit is exceeded: try again in 7 seconds/])
  t.match(row('/banner'), { verdict: 'ok', status: 404, reasons: [/none now/] })
  t.match(row('/partner-widget').reasons, [/302 .*a redirect to \/login, which is not followed/])
  t.match(row('/activity'), { verdict: 'ok' }, 'a long answer is no fault')
  t.match(row('/recent'), { verdict: 'failed', reasons: [/slug is/] })
  t.match(row('/summary').reasons, [/Service-Version is 2020-01-01/])
  t.match(row('/public/profiles').reasons, [/second page repeats/])
  t.match(row('/{slug}'), { verdict: 'skipped', reasons: [/no list has returned/] })
  t.match(row('/signups').reasons, [/lacks Idempotent-Replayed/, /it made sgn_/])
})

test('a deployment that is newer, or goes away', async (t) => {
  meddle = (call, answer) => {
    if (call.target.endsWith('/verify-key')) {
      const added =
        '"endpoints":[{"method":"DELETE","path":"/service/everything","scope":"new","allowed":true},'
      return { ...answer, body: answer.body.replace('"endpoints":[', added) }
    }
    return call.target.includes('/plans') ? undefined : answer
  }
  const { code, row } = await smoke(live)
  t.equal(code, 3)
  t.match(row('/everything'), { verdict: 'skipped', reasons: [/does not know it/] })
  t.notOk(calls.some(({ target }) => target.includes('everything')))
  t.match(row('/plans'), { verdict: 'unreachable', status: null, reasons: [/connection was closed/] })
  t.match(row('/countries'), { verdict: 'ok' })
})

test('the end', async () => {
  proxy.closeAllConnections()
  proxy.close()
  await store.close()
  await stopServing(served)
  folder.remove()
})
