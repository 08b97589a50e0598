/** Step 3: version, media type and browsers; and the settings that rename paths, fields and problem types. */
import { expectProblem, keyedPaths } from './expect.ts'
import {
  get,
  post,
  type Service,
  type Suite,
  type TestContext,
  type TestRequest,
  type TestResponse,
  VERSION,
  withKey,
} from './service.ts'

const problemBase = 'https://docs.acme.example/errors'

export const negotiation: readonly Suite[] = [{
  tests: {
    'a version other than the current one is refused': serviceVersion,
    'an Accept that excludes JSON is refused with 406': acceptedMediaTypes,
    'documents are compressed for clients that accept gzip': contentCodings,
    'endpoints that need a key refuse browsers': browsersRefused,
  },
}, {
  settings: { allowBrowsers: true, problemBase },
  tests: {
    async 'allowBrowsers allows browsers'(t, service) {
      for (const headers of fromBrowsers) {
        t.equal((await getPlans(service, headers)).status, 200, JSON.stringify(headers))
      }
    },
    async 'problemBase sets the base of problem types'(t, { send, root }) {
      const missing = await send({ target: `${root}/public/plans` })
      expectProblem(t, missing, 'key_missing', 'on a known route', { base: problemBase })
      expectProblem(t, await send({ target: '/' }), 'route_not_found', 'without a route', {
        base: problemBase,
      })
    },
  },
}, {
  settings: { serviceName: 'acme-2-go' },
  tests: { 'serviceName sets the names of paths, fields and realm': renamedService },
}]

/** GET of the plans with the full key of `demo`. */
function getPlans(service: Service, headers: NonNullable<TestRequest['headers']>): Promise<TestResponse> {
  return get(service, '/public/plans?partner=demo', { headers })
}

async function serviceVersion(t: TestContext, service: Service): Promise<void> {
  const { root, send } = service
  const verify = (headers: NonNullable<TestRequest['headers']>) =>
    post(service, '{"partner":"demo"}', { headers })
  t.equal((await getPlans(service, { 'service-version': VERSION })).status, 200, 'the current version')
  t.equal((await verify({ 'service-version': VERSION })).status, 200, 'the current version in a POST')
  for (const version of ['2026-11-21', '2025-01-01', 'latest', '1', 'v2026-11-20', `${VERSION} x`]) {
    const headers = { 'service-version': version }
    expectProblem(t, await getPlans(service, headers), 'unknown_version', version)
    const health = await send({ target: `${root}/health`, headers })
    expectProblem(t, health, 'unknown_version', `${version}, no key`)
    expectProblem(t, await verify(headers), 'unknown_version', `${version}, POST`)
  }
  const twice = await getPlans(service, { 'service-version': [VERSION, VERSION] })
  expectProblem(t, twice, 'unknown_version', 'a repeated field is not a known version')
}

const acceptable = (
  '*/* | application/json | application/* | APPLICATION/JSON | application/json; charset=utf-8 | ' +
  'text/html, application/json;q=0.1 | text/html,*/*;q=0.001 | application/json;q=1.0, */*;q=0 | ' +
  'application/*;q=0, application/json |  text/html ,  application/json ; q=0.5 | , | ,,, | ,application/json, | ' +
  'application/json;a=";q=0" | text/html;a="\\", x", application/json | application/json;a="'
).split(' | ')

// The last one is the media type of problems, which no route produces on success.
const unacceptable = (
  'text/html | application/xml | text/* | application/json;q=0 | application/json;q=0.000, text/html | */*;q=0 | ' +
  'application/json;q=0, */* | application/*;q=0, */* | application/jsonp | text/html;a=", */*" | application/problem+json'
).split(' | ')

async function acceptedMediaTypes(t: TestContext, service: Service): Promise<void> {
  const { root, send } = service
  t.equal((await getPlans(service, {})).status, 200, 'no Accept')
  for (const accept of acceptable) {
    t.equal((await getPlans(service, { accept })).status, 200, `Accept: ${accept}`)
    t.equal((await send({ target: `${root}/health`, headers: { accept } })).status, 200, `health, ${accept}`)
  }
  for (const accept of unacceptable) {
    expectProblem(t, await getPlans(service, { accept }), 'not_acceptable', `Accept: ${accept}`)
    const health = await send({ target: `${root}/health`, headers: { accept } })
    expectProblem(t, health, 'not_acceptable', `health, Accept: ${accept}`)
    const posted = await post(service, '{"partner":"demo"}', { headers: { accept } })
    expectProblem(t, posted, 'not_acceptable', `verify-key, Accept: ${accept}`)
  }
}

const gzipAccepted = 'gzip | br, gzip | x-gzip | GZIP;q=0.5 | * | gzip, identity | identity;q=0.5, gzip;q=0.5'
  .split(' | ')
const gzipRefused =
  ' | br | identity | gzip;q=0 | *;q=0 | gzip;q=0, * | identity, gzip;q=0.9 | identity;q=0, br'.split(' | ')

async function contentCodings(t: TestContext, { send, root }: Service): Promise<void> {
  for (const path of ['/openapi.json', '/docs', '/docs.md']) {
    const isFirst = path === '/openapi.json'
    const request = (acceptEncoding?: string, { headers, ...more }: Partial<TestRequest> = {}) =>
      send({
        target: root + path,
        ...more,
        headers: { ...(acceptEncoding !== undefined && { 'accept-encoding': acceptEncoding }), ...headers },
      })
    const fieldsOf = ({ headers }: TestResponse) =>
      ['content-encoding', 'content-length', 'content-type', 'etag', 'vary'].map((name) => headers.get(name))
    const plain = await request()
    t.equal(plain.headers.get('content-encoding'), undefined)
    const vary = isFirst ? 'Accept-Encoding' : 'Accept, Accept-Encoding'
    t.equal(plain.headers.get('vary'), vary)
    for (const acceptEncoding of gzipRefused.slice(0, isFirst ? undefined : 1)) {
      const response = await request(acceptEncoding)
      t.strictSame(fieldsOf(response), fieldsOf(plain), `${path} Accept-Encoding: ${acceptEncoding}`)
      t.equal(response.body.length, plain.body.length, 'not compressed')
    }
    const zipped = await request('gzip')
    const tag = zipped.headers.get('etag') ?? ''
    t.ok(/^"[0-9a-f]+"$/.test(tag) && tag !== plain.headers.get('etag'), 'gzip has its own strong tag')
    t.equal(zipped.headers.get('content-type'), plain.headers.get('content-type'))
    t.ok(zipped.body.length < plain.body.length / 3, `${zipped.body.length} of ${plain.body.length} bytes`)
    for (const acceptEncoding of gzipAccepted.slice(0, isFirst ? undefined : 1)) {
      const response = await request(acceptEncoding)
      t.equal(response.headers.get('content-encoding'), 'gzip', `${path} Accept-Encoding: ${acceptEncoding}`)
      t.strictSame([response.text === plain.text, fieldsOf(response)], [true, fieldsOf(zipped)])
    }
    const head = await request('gzip', { method: 'HEAD' })
    t.strictSame([head.body.length, fieldsOf(head)], [0, fieldsOf(zipped)], 'HEAD')
    const known = await request('gzip', { headers: { 'if-none-match': tag } })
    t.strictSame([known.status, known.body.length], [304, 0])
    const remaining = [undefined, undefined, undefined, tag, vary]
    t.strictSame(fieldsOf(known), remaining, 'a 304 has no representation metadata')
    const other = await request('gzip', { headers: { 'if-none-match': plain.headers.get('etag')! } })
    t.equal(other.status, 200, 'the tag of the uncompressed document does not match')
  }
}

const fromBrowsers: readonly NonNullable<TestRequest['headers']>[] = [
  { origin: 'https://browser.example' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-origin' },
  { 'sec-fetch-site': 'none' },
  { origin: 'https://browser.example', 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' },
]

async function browsersRefused(t: TestContext, service: Service): Promise<void> {
  const { send, root } = service
  const origin = 'https://browser.example'
  for (const path of keyedPaths()) {
    const response = await get(service, `${path}?partner=demo`, { headers: { origin } })
    expectProblem(t, response, 'browser_refused', path, { instance: root + path })
  }
  for (const headers of fromBrowsers) {
    expectProblem(t, await getPlans(service, headers), 'browser_refused', JSON.stringify(headers))
    const posted = await post(service, '{"partner":"demo"}', { headers })
    expectProblem(t, posted, 'browser_refused', `verify-key ${JSON.stringify(headers)}`)
    t.equal((await send({ target: `${root}/health`, headers })).status, 200, 'health allows browsers')
  }
  for (const path of ['/openapi.json', '/docs', '/docs.md']) {
    t.equal((await send({ target: root + path, headers: { origin } })).status, 200, `${path} allows browsers`)
  }
  const target = `${root}/public/plans`
  const preflight = { origin, 'access-control-request-method': 'GET' }
  const response = await send({ method: 'OPTIONS', target, headers: preflight })
  t.equal(response.status, 204, 'a preflight gets the plain OPTIONS response, without Access-Control-*')
  t.equal((await send({ method: 'HEAD', target, headers: { origin } })).status, 403, 'HEAD is refused too')
}

async function renamedService(t: TestContext, { send, world, names, root }: Service): Promise<void> {
  const key = world.keys['demo full'].text
  const plans = (headers: NonNullable<TestRequest['headers']>) =>
    send({ target: `${root}/public/plans?partner=demo`, headers })
  t.strictSame([root, names.key, names.version], [
    '/acme-2-go',
    'X-Acme-2-Go-Partner-Key',
    'Acme-2-Go-Version',
  ])

  const own = { 'x-acme-2-go-partner-key': key }
  const response = await plans({ ...own, 'acme-2-go-version': VERSION })
  t.equal(response.status, 200, 'the renamed fields are read')
  t.ok(!response.headers.has('service-version'), 'the default version field is absent')
  t.equal(response.headers.get('vary'), 'Authorization, X-Acme-2-Go-Partner-Key, Acme-2-Go-Version')
  t.equal((await plans({ authorization: `Bearer ${key}` })).status, 200, 'a bearer token')

  const unnamed = await plans(withKey(world.keys['demo full']))
  expectProblem(t, unnamed, 'key_missing', 'the default key field is ignored')
  t.equal(unnamed.headers.get('www-authenticate'), 'Bearer realm="acme-2-go"')
  const unknown = await plans({ ...own, 'acme-2-go-version': '2000-01-01' })
  expectProblem(t, unknown, 'unknown_version', 'the renamed version field is checked')
  const ignored = await plans({ ...own, 'service-version': '2000-01-01' })
  t.equal(ignored.status, 200, 'the default version field is ignored')
  const elsewhere = await send({ target: '/service/public/plans?partner=demo', headers: own })
  expectProblem(t, elsewhere, 'route_not_found', 'the default path does not exist', {
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
    'verify-key reports the renamed paths',
  )
}
