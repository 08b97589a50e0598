/** Step 3: version, media type and browsers; and the settings that rename what is on the wire. */
import { expectProblem, keyedPaths } from './expect.ts'
import {
  type Ask,
  get,
  type Heard,
  post,
  type Service,
  type Suite,
  type Tester,
  VERSION,
  withKey,
} from './service.ts'

const problemBase = 'https://docs.acme.example/errors'

export const negotiation: readonly Suite[] = [{
  tests: {
    'the version may be asked for': versions,
    'Accept that excludes what the route produces is refused': media,
    'documents are compressed for clients that accept it': codings,
    'browsers are refused where a key is needed': browsers,
  },
}, {
  settings: { allowBrowsers: true, problemBase },
  tests: {
    async 'a setting allows browsers'(t, service) {
      for (const headers of fromBrowsers) {
        t.equal((await plans(service, headers)).status, 200, JSON.stringify(headers))
      }
    },
    async 'the base of problem types is a setting'(t, { send, root }) {
      const missing = await send({ target: `${root}/public/plans` })
      expectProblem(t, missing, 'key_missing', 'with a route', { base: problemBase })
      expectProblem(t, await send({ target: '/' }), 'route_not_found', 'without one', { base: problemBase })
    },
  },
}, {
  settings: { serviceName: 'acme-2-go' },
  tests: { 'paths, fields and realm have the name of the service': named },
}]

/** GET of the plans with the full key of `demo`. */
function plans(service: Service, headers: NonNullable<Ask['headers']>): Promise<Heard> {
  return get(service, '/public/plans?partner=demo', { headers })
}

async function versions(t: Tester, service: Service): Promise<void> {
  const { root, send } = service
  const verify = (headers: NonNullable<Ask['headers']>) => post(service, '{"partner":"demo"}', { headers })
  t.equal((await plans(service, { 'service-version': VERSION })).status, 200, 'the current one')
  t.equal((await verify({ 'service-version': VERSION })).status, 200, 'of a POST')
  for (const version of ['2026-11-21', '2025-01-01', 'latest', '1', 'v2026-11-20', `${VERSION} x`]) {
    const headers = { 'service-version': version }
    expectProblem(t, await plans(service, headers), 'unknown_version', version)
    const health = await send({ target: `${root}/health`, headers })
    expectProblem(t, health, 'unknown_version', `${version}, no key`)
    expectProblem(t, await verify(headers), 'unknown_version', `${version}, POST`)
  }
  const twice = await plans(service, { 'service-version': [VERSION, VERSION] })
  expectProblem(t, twice, 'unknown_version', 'two values are none that exists')
}

const acceptable = (
  '*/* | application/json | application/* | APPLICATION/JSON | application/json; charset=utf-8 | ' +
  'text/html, application/json;q=0.1 | text/html,*/*;q=0.001 | application/json;q=1.0, */*;q=0 | ' +
  'application/*;q=0, application/json |  text/html ,  application/json ; q=0.5 '
).split(' | ')

// The last one is the media type of errors, which no route produces.
const unacceptable = (
  'text/html | application/xml | text/* | application/json;q=0 | application/json;q=0.000, text/html | */*;q=0 | ' +
  'application/json;q=0, */* | application/*;q=0, */* | application/jsonp | application/problem+json'
).split(' | ')

async function media(t: Tester, service: Service): Promise<void> {
  const { root, send } = service
  t.equal((await plans(service, {})).status, 200, 'no Accept')
  for (const accept of acceptable) {
    t.equal((await plans(service, { accept })).status, 200, `Accept: ${accept}`)
    t.equal((await send({ target: `${root}/health`, headers: { accept } })).status, 200, `health, ${accept}`)
  }
  for (const accept of unacceptable) {
    expectProblem(t, await plans(service, { accept }), 'not_acceptable', `Accept: ${accept}`)
    const health = await send({ target: `${root}/health`, headers: { accept } })
    expectProblem(t, health, 'not_acceptable', `health, Accept: ${accept}`)
    const posted = await post(service, '{"partner":"demo"}', { headers: { accept } })
    expectProblem(t, posted, 'not_acceptable', `verify-key, Accept: ${accept}`)
  }
}

const takesGzip = 'gzip | br, gzip | x-gzip | GZIP;q=0.5 | * | gzip, identity | identity;q=0.5, gzip;q=0.5'
  .split(' | ')
const takesPlain =
  ' | br | identity | gzip;q=0 | *;q=0 | gzip;q=0, * | identity, gzip;q=0.9 | identity;q=0, br'.split(' | ')

async function codings(t: Tester, { send, root }: Service): Promise<void> {
  for (const path of ['/openapi.json', '/docs']) {
    const isFirst = path === '/openapi.json'
    const ask = (accepted?: string, { headers, ...more }: Partial<Ask> = {}) =>
      send({
        target: root + path,
        ...more,
        headers: { ...(accepted !== undefined && { 'accept-encoding': accepted }), ...headers },
      })
    const fieldsOf = ({ headers }: Heard) =>
      ['content-encoding', 'content-length', 'content-type', 'etag', 'vary'].map((name) => headers.get(name))
    const plain = await ask()
    t.equal(plain.headers.get('content-encoding'), undefined)
    t.equal(plain.headers.get('vary'), 'Accept-Encoding')
    for (const accepted of takesPlain.slice(0, isFirst ? undefined : 1)) {
      const heard = await ask(accepted)
      t.strictSame(fieldsOf(heard), fieldsOf(plain), `${path} Accept-Encoding: ${accepted}`)
      t.equal(heard.body.length, plain.body.length, 'not compressed')
    }
    const zipped = await ask('gzip')
    const tag = zipped.headers.get('etag') ?? ''
    t.ok(/^"[0-9a-f]+"$/.test(tag) && tag !== plain.headers.get('etag'), 'a strong tag of its own')
    t.ok(zipped.body.length < plain.body.length / 3, `${zipped.body.length} of ${plain.body.length} bytes`)
    for (const accepted of takesGzip.slice(0, isFirst ? undefined : 1)) {
      const heard = await ask(accepted)
      t.equal(heard.headers.get('content-encoding'), 'gzip', `${path} Accept-Encoding: ${accepted}`)
      t.strictSame([heard.text === plain.text, fieldsOf(heard)], [true, fieldsOf(zipped)])
    }
    const head = await ask('gzip', { method: 'HEAD' })
    t.strictSame([head.body.length, fieldsOf(head)], [0, fieldsOf(zipped)], 'HEAD')
    const known = await ask('gzip', { headers: { 'if-none-match': tag } })
    t.strictSame([known.status, known.body.length], [304, 0])
    const remaining = [undefined, undefined, undefined, tag, 'Accept-Encoding']
    t.strictSame(fieldsOf(known), remaining, 'no field about a body')
    const other = await ask('gzip', { headers: { 'if-none-match': plain.headers.get('etag')! } })
    t.equal(other.status, 200, 'the tag of other bytes')
  }
}

const fromBrowsers: readonly NonNullable<Ask['headers']>[] = [
  { origin: 'https://browser.example' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-origin' },
  { 'sec-fetch-site': 'none' },
  { origin: 'https://browser.example', 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' },
]

async function browsers(t: Tester, service: Service): Promise<void> {
  const { send, root } = service
  const origin = 'https://browser.example'
  for (const path of keyedPaths()) {
    const heard = await get(service, `${path}?partner=demo`, { headers: { origin } })
    expectProblem(t, heard, 'browser_refused', path, { instance: root + path })
  }
  for (const headers of fromBrowsers) {
    expectProblem(t, await plans(service, headers), 'browser_refused', JSON.stringify(headers))
    const posted = await post(service, '{"partner":"demo"}', { headers })
    expectProblem(t, posted, 'browser_refused', `verify-key ${JSON.stringify(headers)}`)
    t.equal((await send({ target: `${root}/health`, headers })).status, 200, 'keyless documents are open')
  }
  const target = `${root}/public/plans`
  const preflight = { origin, 'access-control-request-method': 'GET' }
  const heard = await send({ method: 'OPTIONS', target, headers: preflight })
  t.equal(heard.status, 204, 'a preflight is answered like any OPTIONS, without Access-Control-*')
  t.equal((await send({ method: 'HEAD', target, headers: { origin } })).status, 403, 'HEAD as well')
}

async function named(t: Tester, { send, world, names, root }: Service): Promise<void> {
  const key = world.keys['demo full'].text
  const plans = (headers: NonNullable<Ask['headers']>) =>
    send({ target: `${root}/public/plans?partner=demo`, headers })
  t.strictSame([root, names.key, names.version], [
    '/acme-2-go',
    'X-Acme-2-Go-Partner-Key',
    'Acme-2-Go-Version',
  ])

  const own = { 'x-acme-2-go-partner-key': key }
  const heard = await plans({ ...own, 'acme-2-go-version': VERSION })
  t.equal(heard.status, 200, 'its own fields')
  t.ok(!heard.headers.has('service-version'), 'and no others')
  t.equal(heard.headers.get('vary'), 'Authorization, X-Acme-2-Go-Partner-Key, Acme-2-Go-Version')
  t.equal((await plans({ authorization: `Bearer ${key}` })).status, 200, 'a bearer')

  const unnamed = await plans(withKey(world.keys['demo full']))
  expectProblem(t, unnamed, 'key_missing', 'the field of another name is ignored')
  t.equal(unnamed.headers.get('www-authenticate'), 'Bearer realm="acme-2-go"')
  const unknown = await plans({ ...own, 'acme-2-go-version': '2000-01-01' })
  expectProblem(t, unknown, 'unknown_version', 'its version')
  const ignored = await plans({ ...own, 'service-version': '2000-01-01' })
  t.equal(ignored.status, 200, 'the version of another name is ignored')
  const elsewhere = await send({ target: '/service/public/plans?partner=demo', headers: own })
  expectProblem(t, elsewhere, 'route_not_found', 'the path of another name', {
    instance: '/service/public/plans',
  })

  const verified = await send({
    method: 'POST',
    target: `${root}/developer/verify-key`,
    headers: { ...own, 'content-type': 'application/json' },
    body: '{"partner":"demo"}',
  })
  const listed: readonly { path: string }[] = verified.json?.data?.endpoints ?? []
  t.ok(
    listed.length > 0 && listed.every(({ path }) => path.startsWith(`${root}/`)),
    'verify-key names its paths',
  )
}
