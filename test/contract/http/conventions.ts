/** Section 1: what is so of every answer, and the methods that a path has. */
import { comparable, expectProblem, keyedPaths } from './expect.ts'
import { type Ask, type Service, type Suite, type Tester, withKey } from './service.ts'
import { breaches } from './universals.ts'

export const conventions: readonly Suite[] = [{
  tests: {
    'request ids': requestIds,
    'HEAD is GET without its body': heads,
    'OPTIONS is always 204': options,
    'other methods are 405': methods,
    'health': health,
  },
}]

async function requestIds(t: Tester, { root, world, send, names }: Service): Promise<void> {
  const health = { target: `${root}/health` }
  const answers = await Promise.all(Array.from({ length: 40 }, () => send(health)))
  const ids = new Set(answers.map(({ headers }) => headers.get('x-request-id')))
  t.equal(ids.size, answers.length, 'request ids are unique')
  const claimed = 'req_00000000000000000000'
  const heard = await send({ ...health, headers: { 'x-request-id': claimed } })
  t.ok(heard.headers.get('x-request-id') !== claimed, 'request ids are made by the server')
  // `send` throws if an answer breaks a convention.
  const leaking = { ...heard, text: `{"data":"${world.keys['demo full'].text}"}` }
  t.strictSame(breaches(leaking, names.version), ['nothing in the shape of a key'], 'a leak would be found')
}

async function heads(t: Tester, { send, root, world }: Service): Promise<void> {
  const targets = [
    ...keyedPaths(root).map((path) => `${path}?partner=demo`),
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
    const [length, link] = [String(whole.body.length), whole.headers.get('link')]
    t.equal(head.text, '', `HEAD has no body: ${target}`)
    t.strictSame([head.headers.get('content-length'), head.headers.get('link')], [length, link], target)
    t.strictSame(comparable(head), { ...comparable(whole), text: '' }, target)
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

async function options(t: Tester, { root, send }: Service): Promise<void> {
  for (const path of [...keyedPaths(root), `${root}/developer/verify-key`, `${root}/health`]) {
    const allow = path.endsWith('verify-key') ? 'OPTIONS, POST' : 'GET, HEAD, OPTIONS'
    for (const [target, headers] of [[path, {}], [`${path}?unknown=%zz`, unwelcome]] as const) {
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
/** Registered by RFC 9110 and others. What the client or the HTTP server can't send or pass on is not here. */
const registered = (
  'GET HEAD POST PUT PATCH DELETE TRACE ACL BIND CHECKOUT COPY LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MOVE ' +
  'PROPFIND PROPPATCH REBIND REPORT SEARCH UNBIND UNLINK UNLOCK'
).split(' ')

async function methods(t: Tester, { root, send, quirks }: Service): Promise<void> {
  const possible = registered.filter((method) =>
    !(quirks.has('knows-few-methods') && rare.includes(method)) &&
    !(quirks.has('no-trace') && method === 'TRACE')
  )
  const verify = `${root}/developer/verify-key`
  for (const path of [...keyedPaths(root), verify, `${root}/health`]) {
    const has = path === verify ? ['POST'] : ['GET', 'HEAD']
    // All of them on two routes, and the usual ones on the others.
    const tried = [verify, `${root}/public/plans`].includes(path) ? possible : possible.slice(0, 6)
    for (const method of tried.filter((method) => !has.includes(method))) {
      const heard = await send({ method, target: path })
      const allow = [...has, 'OPTIONS'].toSorted().join(', ')
      t.strictSame([heard.status, sorted(heard.headers.get('allow'))], [405, allow], `${method} ${path}`)
      if (method === 'HEAD') continue
      expectProblem(t, heard, 'method_not_allowed', `${method} ${path}`, { instance: path })
    }
  }
}

async function health(t: Tester, { root, send }: Service): Promise<void> {
  const ask = (headers: NonNullable<Ask['headers']> = {}) => send({ target: `${root}/health`, headers })
  const heard = await ask()
  t.strictSame([heard.status, heard.json], [200, { data: { status: 'ok' } }])
  t.equal(heard.headers.get('cache-control'), 'no-store')
  t.ok(!/key|authorization/i.test(heard.headers.get('vary') ?? ''), 'no key in Vary')
  t.equal((await ask({ origin: 'https://a.example', 'sec-fetch-site': 'none' })).status, 200, 'a browser')
  t.equal((await ask({ 'x-service-partner-key': 'nonsense' })).status, 200, 'a credential is not read')
  const versioned = await ask({ 'service-version': '2026-11-21' })
  expectProblem(t, versioned, 'unknown_version', 'the version is checked without a key, too')
}

function sorted(list: string | undefined): string {
  return (list ?? '').split(', ').toSorted().join(', ')
}
