/** Section 1: what is so of every answer, and the methods that a path has. */
import { comparable, expectProblem, keyedPaths } from './expect.ts'
import {
  type Ask,
  type Deploy,
  get,
  type Heard,
  post,
  type Service,
  type Tester,
  withKey,
} from './service.ts'
import { breaches } from './universals.ts'

export async function conventions(t: Tester, deploy: Deploy): Promise<void> {
  await deploy({}, async (service) => {
    await t.test('every kind of answer is as every answer is', (t) => everyAnswer(t, service))
    await t.test('a problem says which path it is about', (t) => instances(t, service))
    await t.test('HEAD is GET without its body', (t) => heads(t, service))
    await t.test('OPTIONS is always 204', (t) => options(t, service))
    await t.test('a path has the methods that it has', (t) => methods(t, service))
    await t.test('health', (t) => health(t, service))
  })
  await deploy({ limits: { key: { quota: 1, windowSeconds: 60 } } }, async (service) => {
    await t.test('an answer that a limit refuses is as every answer is', async (t) => {
      await get(service, '/public/plans?partner=demo')
      const heard = await get(service, '/public/plans?partner=demo')
      t.equal(heard.status, 429)
      t.strictSame(breaches(heard, service.names.version), [])
    })
  })
}

async function everyAnswer(t: Tester, service: Service): Promise<void> {
  const { root, world, send } = service
  const plans = await get(service, '/public/plans?partner=demo')
  const etag = plans.headers.get('etag') ?? ''
  const answers: readonly [number, Promise<Heard>][] = [
    [200, get(service, '/public/profiles?partner=demo')],
    [200, post(service, '{"partner":"demo"}')],
    [200, send({ target: `${root}/health` })],
    [204, send({ method: 'OPTIONS', target: `${root}/health` })],
    [304, get(service, '/public/plans?partner=demo', { headers: { 'if-none-match': etag } })],
    [400, get(service, '/public/plans')],
    [401, send({ target: `${root}/public/plans` })],
    [403, get(service, '/public/plans?partner=acme')],
    [404, get(service, '/public/profiles/no-such?partner=demo')],
    [404, send({ target: '/' })],
    [405, send({ method: 'PUT', target: `${root}/health` })],
    [406, get(service, '/public/plans?partner=demo', { headers: { accept: 'text/html' } })],
    [413, post(service, ' '.repeat(32_769))],
    [415, post(service, '{}', { headers: { 'content-type': 'text/plain' } })],
    [422, post(service, '[]')],
  ]
  const ids = new Set<string | undefined>()
  for (const [status, answer] of answers) {
    const heard = await answer
    t.equal(heard.status, status)
    t.strictSame(breaches(heard, service.names.version), [], `as every answer is: ${status}`)
    ids.add(heard.headers.get('x-request-id'))
  }
  for (let count = 0; count < 100; count++) {
    ids.add((await send({ target: `${root}/health` })).headers.get('x-request-id'))
  }
  t.equal(ids.size, answers.length + 100, 'no two answers have one request id')
  const claimed = 'req_00000000000000000000'
  const heard = await send({ target: `${root}/health`, headers: { 'x-request-id': claimed } })
  t.ok(heard.headers.get('x-request-id') !== claimed, 'request ids are made by the server')
  const leaking = { ...heard, text: `{"data":"${world.keys['demo full'].text}"}` }
  t.strictSame(
    breaches(leaking, service.names.version),
    ['nothing in the shape of a key'],
    'a leak would be seen',
  )
}

async function instances(t: Tester, service: Service): Promise<void> {
  const { root, send } = service
  const path = `${root}/public/profiles/no-such`
  expectProblem(
    t,
    await get(service, '/public/profiles/no-such?partner=demo&'),
    'profile_not_found',
    'no query',
    {
      instance: path,
    },
  )
  expectProblem(
    t,
    await get(service, '/public/profiles/caf%C3%A9?partner=demo'),
    'profile_not_found',
    'as sent',
    {
      instance: `${root}/public/profiles/caf%C3%A9`,
    },
  )
  expectProblem(t, await send({ target: `${root}/nothing?a=b` }), 'route_not_found', 'an unknown path', {
    instance: `${root}/nothing`,
  })
  expectProblem(t, await send({ target: path }), 'key_missing', 'before anybody is known', { instance: path })
  expectProblem(t, await send({ method: 'PATCH', target: path }), 'method_not_allowed', 'a wrong method', {
    instance: path,
  })
}

async function heads(t: Tester, service: Service): Promise<void> {
  const { send, root, world } = service
  const targets = [
    ...keyedPaths(service).map((path) => `${path}?partner=demo`),
    `${root}/public/profiles?partner=demo&limit=3&sort=-published_at`,
    `${root}/public/profiles/no-such?partner=demo`,
    `${root}/public/plans?partner=demo&limit=1`,
    `${root}/public/plans`,
    `${root}/health`,
    '/nothing',
  ]
  for (const target of targets) {
    const ask: Ask = { target, headers: withKey(world.keys['demo full']) }
    const [whole, head] = [await send(ask), await send({ ...ask, method: 'HEAD' })]
    t.equal(head.text, '', `HEAD has no body: ${target}`)
    t.equal(head.headers.get('content-length'), String(whole.body.length), `but its length: ${target}`)
    t.strictSame(
      { ...comparable(head) as object, text: '' },
      { ...comparable(whole) as object, text: '' },
      target,
    )
    t.equal(head.headers.get('link'), whole.headers.get('link'), `and its links: ${target}`)
  }
}

const unwelcome: NonNullable<Ask['headers']> = {
  'service-version': '1999-01-01',
  accept: 'text/html',
  origin: 'https://browser.example',
  'sec-fetch-site': 'cross-site',
  authorization: 'Bearer nonsense',
  'x-service-partner-key': 'other nonsense',
}

async function options(t: Tester, service: Service): Promise<void> {
  const { root, send } = service
  const paths = [...keyedPaths(service), `${root}/developer/verify-key`, `${root}/health`]
  for (const path of paths) {
    const allow = path.endsWith('verify-key') ? 'OPTIONS, POST' : 'GET, HEAD, OPTIONS'
    for (const [target, headers] of [[path, {}], [`${path}?unknown=%zz`, unwelcome]] as const) {
      const { status, headers: fields, text } = await send({ method: 'OPTIONS', target, headers })
      t.strictSame([status, sorted(fields.get('allow')), text], [204, allow, ''], `OPTIONS ${target}`)
      t.ok(!fields.has('content-length'), '204 has no Content-Length (RFC 9110 §8.6)')
    }
  }
  expectProblem(
    t,
    await send({ method: 'OPTIONS', target: `${root}/nothing` }),
    'route_not_found',
    'elsewhere',
    { instance: `${root}/nothing` },
  )
}

/** As rare as they are registered. */
const rare = ['BIND', 'LINK', 'MKCALENDAR', 'REBIND', 'UNBIND', 'UNLINK']
/** Registered by RFC 9110 and others. What the client or the HTTP server can't send or pass on is not here. */
const registered = (
  'PUT PATCH DELETE ACL BIND CHECKOUT COPY LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MOVE PROPFIND PROPPATCH ' +
  'REBIND REPORT SEARCH UNBIND UNLINK UNLOCK'
).split(' ')

async function methods(t: Tester, service: Service): Promise<void> {
  const { root, send, quirks } = service
  const paths = [...keyedPaths(service), `${root}/developer/verify-key`, `${root}/health`]
  for (const path of paths) {
    const has = path.endsWith('verify-key') ? ['POST'] : ['GET', 'HEAD']
    const others = [
      'GET',
      'HEAD',
      'POST',
      ...registered.filter((method) => !(quirks.has('knows-few-methods') && rare.includes(method))),
      ...(quirks.has('no-trace') ? [] : ['TRACE']),
    ]
    for (const method of others.filter((method) => !has.includes(method))) {
      const heard = await send({ method, target: path })
      const allow = sorted(heard.headers.get('allow'))
      t.strictSame(
        [heard.status, allow],
        [405, [...has, 'OPTIONS'].toSorted().join(', ')],
        `${method} ${path}`,
      )
      if (method !== 'HEAD') {
        expectProblem(t, heard, 'method_not_allowed', `${method} ${path}`, { instance: path })
      }
    }
  }
}

async function health(t: Tester, { root, send }: Service): Promise<void> {
  const target = `${root}/health`
  const heard = await send({ target })
  t.strictSame([heard.status, heard.json], [200, { data: { status: 'ok' } }])
  t.equal(heard.headers.get('cache-control'), 'no-store')
  t.ok(!/key|authorization/i.test(heard.headers.get('vary') ?? ''), 'no key in Vary')
  t.equal(
    (await send({ target, headers: { origin: 'https://a.example', 'sec-fetch-site': 'none' } })).status,
    200,
  )
  t.equal((await send({ target, headers: { 'x-service-partner-key': 'nonsense' } })).status, 200)
  const versioned = await send({ target, headers: { 'service-version': '2026-11-21' } })
  expectProblem(t, versioned, 'unknown_version', 'versions hold without a key, too')
}

function sorted(list: string | undefined): string {
  return (list ?? '').split(', ').toSorted().join(', ')
}
