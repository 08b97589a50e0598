/** Section 1: conventions of all responses, and the methods of each path. */
import { comparable, expectProblem, keyedPaths } from './expect.ts'
import { type Service, type Suite, type TestContext, type TestRequest, withKey } from './service.ts'
import { conventionViolations } from './universals.ts'

export const conventions: readonly Suite[] = [{
  tests: {
    'the server generates a unique request id for each response': requestIds,
    'HEAD has the status and fields of GET, and no body': headRequests,
    'OPTIONS on a known path gets 204 with Allow': optionsRequests,
    'other methods get 405 with Allow': otherMethods,
    'health needs no key and is not cached': health,
    'documents are revalidated, and refuse what other endpoints refuse': documentFaults,
  },
}]

async function requestIds(t: TestContext, { root, world, send, names }: Service): Promise<void> {
  const health = { target: `${root}/health` }
  const responses = await Promise.all(Array.from({ length: 40 }, () => send(health)))
  const ids = new Set(responses.map(({ headers }) => headers.get('x-request-id')))
  t.equal(ids.size, responses.length, 'request ids are unique')
  const claimed = 'req_00000000000000000000'
  const response = await send({ ...health, headers: { 'x-request-id': claimed } })
  t.ok(response.headers.get('x-request-id') !== claimed, 'a request id of the client is ignored')
  // `send` throws if a response breaks a convention.
  const leaking = { ...response, text: `{"data":"${world.keys['demo full'].text}"}` }
  t.strictSame(
    conventionViolations(leaking, names.version),
    ['no text in the format of a key'],
    'the check finds a leaked key',
  )
}

const documents = (root: string) => [
  `${root}/openapi.json`,
  `${root}/docs`,
  `${root}/docs.md`,
  `${root}/docs/signUp.md`,
  '/.well-known/api-catalog',
]

async function headRequests(t: TestContext, { send, root, world }: Service): Promise<void> {
  const targets = [
    ...keyedPaths(root).map((path) => `${path}?partner=demo`),
    `${root}/public/profiles?partner=demo&limit=3&sort=-published_at`,
    `${root}/public/profiles/no-such?partner=demo`,
    `${root}/public/plans?partner=demo&limit=1`,
    `${root}/public/plans`,
    `${root}/health`,
    ...documents(root),
    '/nothing',
  ]
  for (const target of targets) {
    const request: TestRequest = { target, headers: withKey(world.keys['demo full']) }
    const full = await send(request)
    const head = await send({ ...request, method: 'HEAD' })
    const length = String(full.body.length)
    const link = full.headers.get('link')
    t.equal(head.text, '', `HEAD has no body: ${target}`)
    t.strictSame([head.headers.get('content-length'), head.headers.get('link')], [length, link], target)
    t.strictSame(comparable(head), { ...comparable(full), text: '' }, target)
  }
}

const refusedElsewhere: NonNullable<TestRequest['headers']> = {
  'service-version': '1999-01-01',
  accept: 'text/html',
  origin: 'https://browser.example',
  'sec-fetch-site': 'cross-site',
  authorization: 'Bearer nonsense',
  'x-service-partner-key': 'other nonsense',
}

async function optionsRequests(t: TestContext, { root, send }: Service): Promise<void> {
  for (const path of [...keyedPaths(root), `${root}/developer/verify-key`, `${root}/health`]) {
    const allow = path.endsWith('verify-key') ? 'OPTIONS, POST' : 'GET, HEAD, OPTIONS'
    for (const [target, headers] of [[path, {}], [`${path}?unknown=%zz`, refusedElsewhere]] as const) {
      const { status, headers: fields, text } = await send({ method: 'OPTIONS', target, headers })
      t.strictSame([status, sorted(fields.get('allow')), text], [204, allow, ''], `OPTIONS ${target}`)
      t.ok(!fields.has('content-length'), '204 has no Content-Length (RFC 9110 §8.6)')
    }
  }
  const instance = `${root}/nothing`
  const elsewhere = await send({ method: 'OPTIONS', target: instance })
  expectProblem(t, elsewhere, 'route_not_found', 'an unknown path', { instance })
}

const rare = 'BIND LINK MKCALENDAR REBIND UNBIND UNLINK'.split(' ')
/** Registered methods, except those that Node's client or a server cannot send or pass on. */
const registered = (
  'GET HEAD POST PUT PATCH DELETE TRACE ACL BIND CHECKOUT COPY LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MOVE ' +
  'PROPFIND PROPPATCH REBIND REPORT SEARCH UNBIND UNLINK UNLOCK'
).split(' ')

async function otherMethods(t: TestContext, { root, send, quirks }: Service): Promise<void> {
  const possible = registered.filter((method) =>
    !(quirks.has('knows-few-methods') && rare.includes(method)) &&
    !(quirks.has('no-trace') && method === 'TRACE')
  )
  const verify = `${root}/developer/verify-key`
  for (const path of [...keyedPaths(root), ...documents(root), verify, `${root}/health`]) {
    const has = path === verify ? ['POST'] : ['GET', 'HEAD']
    // All of them on two routes, the common ones on the others.
    const tried = [verify, `${root}/public/plans`].includes(path) ? possible : possible.slice(0, 6)
    for (const method of tried.filter((method) => !has.includes(method))) {
      const response = await send({ method, target: path })
      const allow = [...has, 'OPTIONS'].toSorted().join(', ')
      t.strictSame(
        [response.status, sorted(response.headers.get('allow'))],
        [405, allow],
        `${method} ${path}`,
      )
      if (method === 'HEAD') continue
      expectProblem(t, response, 'method_not_allowed', `${method} ${path}`, { instance: path })
    }
  }
}

async function health(t: TestContext, { root, send }: Service): Promise<void> {
  const getHealth = (headers: NonNullable<TestRequest['headers']> = {}) =>
    send({ target: `${root}/health`, headers })
  const response = await getHealth()
  t.strictSame([response.status, response.json], [200, { data: { status: 'ok' } }])
  t.equal(response.headers.get('cache-control'), 'no-store')
  t.ok(!/key|authorization/i.test(response.headers.get('vary') ?? ''), 'Vary does not name a credential')
  t.equal(
    (await getHealth({ origin: 'https://a.example', 'sec-fetch-site': 'none' })).status,
    200,
    'browsers are allowed',
  )
  t.equal((await getHealth({ 'x-service-partner-key': 'nonsense' })).status, 200, 'credentials are ignored')
  const versioned = await getHealth({ 'service-version': '2026-11-21' })
  expectProblem(t, versioned, 'unknown_version', 'the version is checked')
}

async function documentFaults(t: TestContext, { root, send }: Service): Promise<void> {
  const faults = {
    invalid_parameter: ['?a=1', {}],
    unknown_version: ['', { 'service-version': '1' }],
    not_acceptable: ['', { accept: 'image/png' }],
  } as const
  for (const target of [...documents(root), `${root}/health`]) {
    for (const [code, [query, headers]] of Object.entries(faults)) {
      const response = await send({ target: target + query, headers })
      expectProblem(t, response, code as keyof typeof faults, target, { instance: target })
    }
    const tag = (await send({ target })).headers.get('etag')
    if (tag === undefined) continue
    t.equal((await send({ target, headers: { 'if-none-match': tag } })).status, 304, target)
  }
}

function sorted(list: string | undefined): string {
  return (list ?? '').split(', ').toSorted().join(', ')
}
