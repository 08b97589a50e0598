/** Step 3: version, media type and browsers; and the settings that rename what is on the wire. */
import { expectProblem, keyedPaths } from './expect.ts'
import {
  type Ask,
  type Deploy,
  type Heard,
  post,
  type Service,
  type Tester,
  VERSION,
  withKey,
} from './service.ts'

export async function negotiation(t: Tester, deploy: Deploy): Promise<void> {
  await deploy({}, async (service) => {
    await t.test('the version may be asked for', (t) => versions(t, service))
    await t.test('Accept decides whether there is an answer', (t) => media(t, service))
    await t.test('documents are compressed for clients that accept it', (t) => codings(t, service))
    await t.test('browsers are refused where a key is needed', (t) => browsers(t, service))
  })
  await t.test('a setting lets browsers through', async (t) => {
    await deploy({ allowBrowsers: true }, async (service) => {
      for (const headers of fromBrowsers) {
        const heard = await plans(service, headers)
        t.equal(heard.status, 200, JSON.stringify(headers))
      }
    })
  })
  await t.test('the name of the service stands in paths, fields and realm', async (t) => {
    await deploy({ serviceName: 'acme' }, (service) => named(t, service, 'Acme'))
    await deploy({ serviceName: 'acme-2-go' }, (service) => named(t, service, 'Acme-2-Go'))
  })
  await t.test('the base of problem types is a setting', async (t) => {
    const problemBase = 'https://docs.acme.example/errors'
    await deploy({ problemBase }, async ({ send, root }) => {
      const missing = await send({ target: `${root}/public/plans` })
      expectProblem(t, missing, 'key_missing', 'with a route', { base: problemBase })
      expectProblem(t, await send({ target: '/' }), 'route_not_found', 'without one', { base: problemBase })
    })
  })
}

/** GET of the plans with the full key of `demo`. */
function plans({ send, root, world }: Service, headers: NonNullable<Ask['headers']>): Promise<Heard> {
  return send({
    target: `${root}/public/plans?partner=demo`,
    headers: { ...withKey(world.keys['demo full']), ...headers },
  })
}

async function versions(t: Tester, service: Service): Promise<void> {
  const { root, send } = service
  t.equal((await plans(service, { 'service-version': VERSION })).status, 200, 'the current one')
  const posted = await post(service, '{"partner":"demo"}', { headers: { 'service-version': VERSION } })
  t.equal(posted.status, 200, 'of a POST')
  for (const version of ['2026-11-21', '2025-01-01', 'latest', '1', 'v2026-11-20', `${VERSION} x`]) {
    const headers = { 'service-version': version }
    expectProblem(t, await plans(service, headers), 'unknown_version', version)
    expectProblem(
      t,
      await send({ target: `${root}/health`, headers }),
      'unknown_version',
      `${version}, no key`,
    )
    expectProblem(
      t,
      await post(service, '{"partner":"demo"}', { headers }),
      'unknown_version',
      `${version}, POST`,
    )
  }
  const twice = await plans(service, { 'service-version': [VERSION, VERSION] })
  expectProblem(t, twice, 'unknown_version', 'two values are none that exists')
}

const acceptable = [
  '*/*',
  'application/json',
  'application/*',
  'APPLICATION/JSON',
  'application/json; charset=utf-8',
  'text/html, application/json;q=0.1',
  'text/html,*/*;q=0.001',
  'application/json;q=1.0, */*;q=0',
  'application/*;q=0, application/json',
  ' text/html ,  application/json ; q=0.5 ',
]

const unacceptable = [
  'text/html',
  'application/xml',
  'text/*',
  'application/json;q=0',
  'application/json;q=0.000, text/html',
  '*/*;q=0',
  'application/json;q=0, */*',
  'application/*;q=0, */*',
  'application/jsonp',
  // What is only said of errors is no media type that the route produces.
  'application/problem+json',
]

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

const takesGzip = [
  'gzip',
  'br, gzip',
  'x-gzip',
  'GZIP;q=0.5',
  '*',
  'gzip, identity',
  'identity;q=0.5, gzip;q=0.5',
]
const takesPlain = [
  '',
  'br',
  'identity',
  'gzip;q=0',
  '*;q=0',
  'gzip;q=0, *',
  'identity, gzip;q=0.9',
  'identity;q=0, br',
]

async function codings(t: Tester, { send, root }: Service): Promise<void> {
  for (const path of ['/openapi.json', '/docs']) {
    const ask = (accepted: string | undefined, more: Partial<Ask> = {}) =>
      send({
        target: root + path,
        ...more,
        headers: { ...(accepted !== undefined && { 'accept-encoding': accepted }), ...more.headers },
      })
    const fieldsOf = ({ headers }: Heard) =>
      ['content-encoding', 'content-length', 'content-type', 'etag', 'vary'].map((name) => headers.get(name))
    const plain = await ask(undefined)
    t.strictSame([plain.headers.get('content-encoding'), plain.headers.get('vary')], [
      undefined,
      'Accept-Encoding',
    ])
    for (const accepted of takesPlain) {
      const heard = await ask(accepted)
      t.strictSame(fieldsOf(heard), fieldsOf(plain), `${path} Accept-Encoding: ${accepted}`)
      t.equal(heard.body.length, plain.body.length, 'as it is')
    }
    const zipped = await ask('gzip')
    const tag = zipped.headers.get('etag') ?? ''
    t.ok(/^"[0-9a-f]+"$/.test(tag) && tag !== plain.headers.get('etag'), 'a strong tag of its own')
    t.ok(zipped.body.length < plain.body.length / 3, `${zipped.body.length} of ${plain.body.length} bytes`)
    for (const accepted of takesGzip) {
      const heard = await ask(accepted)
      t.equal(heard.headers.get('content-encoding'), 'gzip', `${path} Accept-Encoding: ${accepted}`)
      t.strictSame([heard.text === plain.text, fieldsOf(heard)], [true, fieldsOf(zipped)])
      const head = await ask(accepted, { method: 'HEAD' })
      t.strictSame([head.body.length, fieldsOf(head)], [0, fieldsOf(zipped)], 'HEAD')
    }
    const known = await ask('gzip', { headers: { 'if-none-match': tag } })
    t.strictSame([known.status, known.body.length], [304, 0])
    t.strictSame(
      fieldsOf(known),
      [undefined, undefined, undefined, tag, 'Accept-Encoding'],
      'nothing of a body',
    )
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
  const { send, root, world } = service
  for (const headers of fromBrowsers) {
    for (const path of keyedPaths(service)) {
      const ask = {
        target: `${path}?partner=demo`,
        headers: { ...withKey(world.keys['demo full']), ...headers },
      }
      expectProblem(t, await send(ask), 'browser_refused', `${path} ${JSON.stringify(headers)}`, {
        instance: path,
      })
    }
    const posted = await post(service, '{"partner":"demo"}', { headers })
    expectProblem(t, posted, 'browser_refused', `verify-key ${JSON.stringify(headers)}`)
    t.equal((await send({ target: `${root}/health`, headers })).status, 200, 'keyless documents are open')
  }
  const preflight = await send({
    method: 'OPTIONS',
    target: `${root}/public/plans`,
    headers: { origin: 'https://browser.example', 'access-control-request-method': 'GET' },
  })
  t.equal(preflight.status, 204, 'a preflight is answered like any OPTIONS, without Access-Control-*')
  const head = await send({ method: 'HEAD', target: `${root}/public/plans`, headers: fromBrowsers[0] ?? {} })
  t.equal(head.status, 403, 'HEAD as well')
}

async function named(t: Tester, { send, world, names, root }: Service, title: string): Promise<void> {
  const target = `${root}/public/plans?partner=demo`
  const key = world.keys['demo full'].text
  const keyField = `x-${title.toLowerCase()}-partner-key`
  const versionField = `${title.toLowerCase()}-version`
  t.strictSame([names.key, names.version], [`X-${title}-Partner-Key`, `${title}-Version`])

  const heard = await send({ target, headers: { [keyField]: key, [versionField]: VERSION } })
  t.equal(heard.status, 200, 'its own fields')
  t.ok(!heard.headers.has('service-version'), 'and no others')
  t.equal(heard.headers.get('vary'), `Authorization, X-${title}-Partner-Key, ${title}-Version`)
  const bearer = await send({ target, headers: { authorization: `Bearer ${key}` } })
  t.equal(bearer.status, 200, 'a bearer')

  const unnamed = await send({ target, headers: { 'x-service-partner-key': key } })
  expectProblem(t, unnamed, 'key_missing', 'the field of another name is nothing')
  t.equal(unnamed.headers.get('www-authenticate'), `Bearer realm="${names.realm}"`)
  const unknown = await send({ target, headers: { [keyField]: key, [versionField]: '2000-01-01' } })
  expectProblem(t, unknown, 'unknown_version', 'its version')
  const ignored = await send({ target, headers: { [keyField]: key, 'service-version': '2000-01-01' } })
  t.equal(ignored.status, 200, 'the version of another name is nothing')
  const elsewhere = await send({ target: '/service/public/plans?partner=demo', headers: { [keyField]: key } })
  expectProblem(t, elsewhere, 'route_not_found', 'the path of another name', {
    instance: '/service/public/plans',
  })

  const verified = await send({
    method: 'POST',
    target: `${root}/developer/verify-key`,
    headers: { [keyField]: key, 'content-type': 'application/json' },
    body: '{"partner":"demo"}',
  })
  const paths: readonly { path: string }[] = verified.json?.data?.endpoints ?? []
  t.ok(
    paths.length > 0 && paths.every(({ path }) => path.startsWith(`${root}/`)),
    'verify-key names its paths',
  )
}
