/** The OpenAPI document is complete and consistent with the routes; the HTTP contract compares it with responses. */
import t from 'tap'
import { createPartnerApi } from '../../core/api.ts'
import { isLocale, parseCountryCode } from '../../core/content/iso-codes.ts'
import { createServiceNames } from '../../core/http/headers.ts'
import { delay } from '../../core/lib/promise.ts'
import { type InputError, PROBLEMS } from '../../core/http/problem.ts'
import { foldWords } from '../../core/lib/text.ts'
import { WEBHOOK_EVENT_TYPES } from '../../core/ports/webhooks.ts'
import { createDocument } from '../../core/openapi/document.ts'
import type { HeaderObject, ParameterObject, ResponseObject } from '../../core/openapi/model.ts'
import { readMembers } from '../../core/routes/read-input.ts'
import type { KeyedRoute } from '../../core/routes/route.ts'
import { ROUTES } from '../../core/routes/router.ts'
import type { JsonSchema } from '../../core/schemas/json-schema.ts'
import { resolveSettings } from '../../core/settings.ts'
import { readIdempotencyKey } from '../../core/signups/idempotency.ts'
import { API_VERSION } from '../../core/model.ts'
import { asOneAssertion } from '../contract/http/checks.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { resolve as resolveIn, validatorFor } from '../support/openapi-schemas.ts'

const made = await createDocument(ROUTES, resolveSettings({}))
const operations = Object.entries(made.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation }))
)

const resolve = <T>(value: T | { readonly $ref: string }, described = made): T => resolveIn(value, described)

t.test('every route is an operation', (t) => {
  const ids = operations.map(({ operation }) => operation.operationId)
  t.equal(ids.length, ROUTES.length)
  t.equal(new Set(ids).size, ids.length, 'operation ids are unique')
  for (const route of ROUTES) {
    const path = (route.atRoot ? '' : '/service') + route.path.replace(/:(\w+)/, '{$1}')
    const operation = made.paths[path]?.[route.method.toLowerCase() as 'get' | 'post']
    t.ok(operation, path)
    const scopes = operation?.security.map((one) => Object.values(one).flat().join())
    t.strictSame(
      scopes,
      route.access === 'open' ? [] : [route.scope ?? '', route.scope ?? ''],
      'both security schemes with the scope',
    )
  }
  t.equal(made.info.version, API_VERSION)
  t.end()
})

t.test('parameters are those of the routes', (t) => {
  for (const route of ROUTES) {
    if (route.access !== 'key') continue
    const operation = made.paths[`/service${route.path.replace(/:(\w+)/, '{$1}')}`]
      ?.[route.method.toLowerCase() as 'get' | 'post']
    const all = operation?.parameters.map((one) => resolve<ParameterObject>(one)) ?? []
    t.equal(all.some(({ name }) => name === 'Idempotency-Key'), route.name === 'sign-up', route.path)
    const query = all.filter(({ in: place }) => place === 'query')
    const names = [...(route.method === 'GET' ? ['partner'] : []), ...Object.keys(route.parameters)]
    t.strictSame(query.map(({ name }) => name), names, route.path)
    for (const { name, schema, explode } of query) {
      const repeatable = route.parameters[name]?.isList ?? false
      t.equal(schema.type === 'array', repeatable, name)
      if (repeatable) t.strictSame([explode, schema['maxItems']], [true, 20], name)
    }
  }
  t.end()
})

t.test('every problem is documented exactly where it can occur', (t) => {
  const documented = new Set(operations.flatMap(({ operation }) => operation['x-problems']))
  const missing = Object.keys(PROBLEMS).filter((code) => !documented.has(code as keyof typeof PROBLEMS))
  const others = ['not_found', 'method_not_allowed', 'conflict']
  t.strictSame(missing, others, 'problems of own endpoints alone, and one of no operation')
  for (const { operation } of operations) {
    const statuses = new Set(operation['x-problems'].map((code) => String(PROBLEMS[code].status)))
    const failures = Object.keys(operation.responses).filter((status) => status >= '400')
    t.strictSame(failures.sort(), [...statuses].sort(), operation.operationId)
    for (const status of failures) {
      const { content, headers } = resolve<ResponseObject>(operation.responses[status] as ResponseObject)
      const codes = Object.keys(content?.['application/problem+json']?.examples ?? {})
      t.ok(codes.length > 0 && codes.every((code) => String(PROBLEMS[code as 'internal'].status) === status))
      const where = `${operation.operationId} ${status}`
      t.equal('Retry-After' in headers, status === '429' || status === '503', where)
      t.equal('WWW-Authenticate' in headers, status === '401' || codes.includes('scope_missing'), where)
    }
  }
  const has = (id: string) =>
    operations.find(({ operation }) => operation.operationId === id)?.operation['x-problems']
  t.ok(has('profile')?.includes('profile_not_found') && !has('banner')?.includes('profile_not_found'))
  t.ok(has('signUp')?.includes('idempotency_mismatch') && !has('verifyKey')?.includes('idempotency_mismatch'))
  t.ok(has('profiles')?.includes('invalid_cursor') && !has('recentProfiles')?.includes('invalid_cursor'))
  t.ok(!has('health')?.includes('key_missing'))
  t.end()
})

asOneAssertion(t, 'every example is valid by its schema', (t) => {
  const validate = validatorFor(made)
  let examples = 0
  const expectValid = (schema: JsonSchema, value: unknown, where: string): void => {
    examples++
    t.strictSame(validate(schema, value), [], where)
  }
  for (const { operation } of operations) {
    const id = operation.operationId
    for (const one of operation.parameters.map((one) => resolve<ParameterObject>(one))) {
      if (one.name === 'cursor') {
        t.ok(!/"examples?"/.test(JSON.stringify(one)), 'a cursor has no example')
      } else expectValid(one.schema, one.example, `${id} ${one.name}`)
    }
    for (const media of Object.values(operation.requestBody?.content ?? {})) {
      expectValid(media.schema, media.example, `${id} body`)
    }
    for (const [status, response] of Object.entries(operation.responses)) {
      const { content = {}, headers } = resolve<ResponseObject>(response)
      for (const media of Object.values(content)) {
        if (media.example !== undefined) expectValid(media.schema, media.example, `${id} ${status}`)
        for (const [code, example] of Object.entries(media.examples ?? {})) {
          expectValid(media.schema, resolve<{ value: unknown }>(example as never).value, `${id} ${code}`)
        }
        t.ok(media.example !== undefined || media.examples !== undefined, `${id} ${status} has an example`)
      }
      for (const header of Object.values(headers)) t.ok(resolve<object>(header), `${id} ${status} fields`)
    }
  }
  for (const [name, { schema, example }] of Object.entries(made.components.headers)) {
    if (example !== undefined) expectValid(schema, example, name)
  }
  t.ok(examples > 300, `${examples} examples`)
  return Promise.resolve()
})

t.test('examples of limits are those of the policies that are on', async (t) => {
  const off = { quota: 0, windowSeconds: 60 }
  const { paths, components } = await createDocument(
    ROUTES,
    resolveSettings({ limits: { key: off, verify: off } }),
  )
  t.notMatch(JSON.stringify([paths, components]), /;q=0;/)
  const headers = (path: string, status: number) => {
    const methods = paths[`/service${path}`]!
    const { responses } = methods.post ?? methods.get!
    return (responses[status] as ResponseObject).headers
  }
  t.match(headers('/partner/signups', 201), {
    'RateLimit-Policy': { example: '"signup";q=20;w=60' },
    'RateLimit': { example: '"signup";r=19;t=60' },
  })
  t.match(headers('/partner/signups', 429), { RateLimit: { example: '"signup";r=0;t=12' } })
  for (const path of ['/developer/verify-key', '/public/plans']) {
    const field = resolveIn<HeaderObject>(headers(path, 200)['RateLimit'] as HeaderObject, {
      ...made,
      components,
    })
    t.equal(field.example, undefined)
  }
})

t.test('examples of responses have no rare members', (t) => {
  const exampleOf = (path: string, method: 'get' | 'post') =>
    resolve<ResponseObject>(made.paths[path]![method]!.responses[200] as ResponseObject)
      .content!['application/json']!.example
  t.strictSame(exampleOf('/service/health', 'get'), { data: { status: 'ok' } })
  t.notMatch(JSON.stringify(exampleOf('/service/developer/verify-key', 'post')), 'stale_if_error')
  t.end()
})

t.test('request schemas forbid unknown members, and response schemas allow them', (t) => {
  t.notMatch(JSON.stringify(made), '"const":', 'client generators know enum only')
  const signup = made.paths['/service/partner/signups']?.post
  t.equal(signup?.requestBody?.content['application/json']?.schema['additionalProperties'], false)
  for (const [name, schema] of Object.entries(made.components.schemas)) {
    t.notMatch(JSON.stringify(schema), /"additionalProperties":false/, name)
  }
  const wrong = validatorFor(made)({ $ref: '#/components/schemas/Country' }, { code: 'Germany' }).join()
  t.match(wrong, /required property 'name'.*must be equal to one of/, 'the validator detects violations')
  t.end()
})

t.test('the document has the names, limits and problems of the service', async (t) => {
  const acme = await createDocument(ROUTES, {
    names: createServiceNames('acme'),
    basePath: '',
    problemBase: 'https://acme.example/problems',
    maxStalenessMs: 1000,
    allowBrowsers: true,
    limits: {
      key: { quota: 7, windowSeconds: 3 },
      signup: { quota: 0, windowSeconds: 1 },
      verify: { quota: 1, windowSeconds: 1 },
      rotate: { quota: 1, windowSeconds: 1 },
      authfail: { quota: 1, windowSeconds: 1 },
    },
  })
  const text = JSON.stringify(acme)
  t.ok(acme.paths['/acme/public/banner'] && acme.paths['/.well-known/api-catalog'])
  t.equal(acme.components.securitySchemes['partnerKey']?.['name'], 'X-Acme-Partner-Key')
  t.match(text, /"name":"Acme-Version"/)
  t.match(text, /https:\/\/acme\.example\/problems\/key-missing/)
  t.match(text, /key\\";q=7;w=3/)
  t.notMatch(text, /"browser_refused":\{/, 'browsers are allowed')
})

t.test('the document and the page describe the deployment', async (t) => {
  const deployment = {
    title: 'Acme API',
    logo: 'data:image/png;base64,iVBORw0KGgo=',
    contact: { name: 'Acme', email: 'api@acme.example' },
    terms: 'https://acme.example/terms',
    servers: [{ url: 'https://api.acme.example', description: 'Production' }],
  }
  const store = await openMemoryStore()
  const api = createPartnerApi({ store }, { deployment })
  t.teardown(() => api.close())
  const read = async (path: string) =>
    await (await api.fetch(new Request(`http://a.example/service/${path}`))).text()
  const { info, servers } = JSON.parse(await read('openapi.json'))
  t.strictSame([info.title, info.contact, servers], ['Acme API', deployment.contact, deployment.servers])
  t.equal(info.termsOfService, deployment.terms)
  const page = await read('docs')
  for (
    const part of [
      '<title>Acme API · Reference</title>',
      `<img src="${deployment.logo}"`,
      '<a href="mailto:api@acme.example">Acme</a>',
      '<a href="https://acme.example/terms">',
      'https://api.acme.example/service/health',
    ]
  ) t.ok(page.includes(part), part)
  t.notMatch(page, 'https://api.example.com')
  t.strictSame([made.info.title, made.info.contact, made.servers[0]?.url], ['Partner API', undefined, '/'])
  for (
    const wrong of [
      { title: ' ' },
      { servers: [{ url: 'http://[' }] },
      { contact: { url: 'http://[' } },
      { terms: 'http://[' },
      { terms: 'javascript:alert(1)' },
      { contact: { url: 'javascript:alert(1)' } },
      { servers: [{ url: 'data:text/html,x' }] },
      { logo: '' },
      { logo: 'https://acme.example/logo.png' },
      { logo: 'data:text/html,x' },
      { logo: `data:image/png;base64,${'A'.repeat(45_000)}` },
    ]
  ) {
    t.throws(() => createPartnerApi({ store }, { deployment: wrong }), {
      name: 'RangeError',
      message: /deployment/,
    })
  }
})

t.test('input schemas accept exactly what the service accepts', (t) => {
  const validate = validatorFor(made)
  const query = (path: string, name: string): JsonSchema =>
    made.paths[path]!.get!.parameters.map((one) => resolve<ParameterObject>(one))
      .find((one) => one.name === name)!.schema
  const signup =
    made.paths['/service/partner/signups']!.post!.requestBody!.content['application/json']!.schema
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
  const codes = letters.flatMap((one) => letters.map((other) => one + other))
  const quoted = (text: string): string => `"${text}"`
  const long = 'k'.repeat(255)
  const escapes = '\\"'.repeat(255)
  const texts:
    readonly (readonly [JsonSchema, accepts: (text: string) => boolean, texts: readonly string[]])[] = [
      [query('/service/public/countries', 'locale'), isLocale, [
        ...'de EN-gb zh-Hant-TW de-CH-1996 ar-u-nu-latn x-a I-Klingon a de_DE de-'.split(' '),
        'toolongtag',
        'de-1',
        'en-a',
        'sgn-be-fr',
        'i-other',
        '',
      ]],
      [
        query('/service/public/profiles', 'country').items!,
        (text) => parseCountryCode(text) !== undefined,
        codes.flatMap((code) => [code, code.toLowerCase(), code[0] + code[1]!.toLowerCase()]),
      ],
      [
        query('/service/public/profiles', 'q'),
        (text) => text.length >= 2 && text.length <= 100 && foldWords(text).length > 0,
        ['ab', 'a!', '42', 'øl', '東京', '!!', '  ', '-_', 'a', '`~', 'x'.repeat(100), 'x'.repeat(101)],
      ],
      [made.components.parameters['idempotencyKey']!.schema, (text) => 'key' in readIdempotencyKey(text), [
        long,
        `${long}k`,
        quoted(long),
        quoted(`${long}k`),
        quoted(escapes),
        quoted(`${escapes}\\"`),
        quoted(''),
        'a"b"c',
        'a"b',
        'a, b',
        'a,b',
        ',',
        'a,"b, c"',
        '"a, b"',
        '"a',
        'a b',
        'é',
        quoted('\\x'),
        'a\tb',
        quoted('a "b'),
      ]],
    ]
  for (const [schema, accepts, all] of texts) {
    t.strictSame(all.filter((text) => (validate(schema, text).length === 0) !== accepts(text)), [])
  }
  const pairs = (count: number, name = '', value = '') =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`${name}${n}`, value]))
  const members: readonly (readonly [string, unknown])[] = [
    ...['name', 'company', 'message', 'plan', 'profile', 'locale', 'consent_at'].flatMap((member) =>
      [0, 1, 80, 81, 200, 201, 2000, 2001].map((length) => [member, 'a'.repeat(length)] as const)
    ),
    ...['de', 'DE', 'ZZ', 'D'].map((code) => ['country', code] as const),
    ...[254, 255].map((length) => ['email', `${'a'.repeat(length - 12)}@example.com`] as const),
    // The policy checks the partner.
    ...Object.keys(signup.properties!).filter((name) => name !== 'partner').map((name) =>
      [name, null] as const
    ),
    ...[
      ...[0, 20, 21].map((count) => pairs(count)),
      ...[39, 40].map((length) => pairs(1, 'n'.repeat(length))),
      ...[500, 501].map((length) => pairs(1, 'n', 'v'.repeat(length))),
    ].map((metadata) => ['metadata', metadata] as const),
    ['unknown', ''],
  ]
  const { body } = ROUTES.find(({ name }) => name === 'sign-up') as KeyedRoute
  const errorsOf = (sent: object) => {
    const errors: InputError[] = []
    readMembers(sent as Readonly<Record<string, unknown>>, body!, errors)
    return errors
  }
  const complete = { partner: 'demo', email: 'jane@example.com', name: 'Jane' }
  for (const [member, value] of members) {
    const sent = { ...complete, [member]: value }
    const text = JSON.stringify({ [member]: value })
    t.equal(validate(signup, sent).length === 0, errorsOf(sent).length === 0, text)
  }
  for (const member of signup.required as readonly string[]) {
    const { [member as 'name']: _, ...sent } = complete
    t.equal(errorsOf(sent).length, 1, `without ${member}`)
  }
  t.end()
})

t.test('the catalog leads to the documents, which are those of the routes', async (t) => {
  const api = createPartnerApi({ store: await openMemoryStore() })
  t.teardown(() => api.close())
  const request = (path: string) => api.fetch(new Request(`http://service.example${path}`))
  const served = await (await request('/service/openapi.json')).json()
  t.strictSame(served, JSON.parse(JSON.stringify(made)), 'the served document')
  const catalog = await request('/.well-known/api-catalog')
  t.match(catalog.headers.get('link'), /<\/\.well-known\/api-catalog>; rel="api-catalog"/, 'RFC 9727 §2')
  const { linkset } = await catalog.json()
  t.match(catalog.headers.get('link'), `<${linkset[0].item[0].href}>; rel="item"`)
  t.equal(linkset[1].anchor, linkset[0].item[0].href)
  const links = { ...linkset[0], ...linkset[1] }
  for (const relation of ['item', 'service-desc', 'service-doc', 'status']) {
    const [{ href }] = links[relation]
    t.equal((await request(href)).status, 200, `${relation} leads to ${href}`)
  }
  t.equal((await request('/service/.well-known/api-catalog')).status, 404)
  const page = await request('/service/docs')
  t.match(page.headers.get('content-security-policy'), /^default-src 'none'; style-src 'sha256-/)
  t.equal(page.headers.get('referrer-policy'), 'no-referrer')
})

t.test('the reference is Markdown for a request that prefers it', async (t) => {
  const api = createPartnerApi({ store: await openMemoryStore() })
  t.teardown(() => api.close())
  const request = (path: string, accept?: string) =>
    api.fetch(new Request(`http://a.example/service/${path}`, { headers: accept ? { accept } : {} }))
  const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8'
  const negotiated = [
    ...[undefined, '*/*', 'text/*', browser, 'text/html, text/markdown;q=0.9'].map((one) => [one, 'html']),
    ...['text/markdown', 'text/markdown, text/html, */*', 'text/markdown, */*;q=0.1', 'text/html;q=0, */*']
      .map((one) => [one, 'markdown']),
  ]
  for (const [accept, type] of negotiated) {
    const { headers } = await request('docs', accept)
    t.match(headers.get('content-type'), `text/${type};`, accept ?? 'no Accept')
    t.equal(headers.get('vary'), 'Accept, Accept-Encoding')
  }
  for (const accept of ['application/json', 'text/html;q=0', 'text/markdown;q=0']) {
    t.equal((await request('docs', accept)).status, 406, accept)
  }
  t.equal((await request('docs.md', 'text/html')).status, 406)
  const [page, whole, one] = await Promise.all(
    ['docs', 'docs.md', 'docs/signUp.md'].map((path) => request(path)),
  )
  t.equal(page!.headers.get('link'), '<docs.md>; rel="alternate"; type="text/markdown"')
  t.equal(one!.headers.get('link'), '<../docs#signUp>; rel="alternate"; type="text/html"')
  t.notSame(page!.headers.get('etag'), whole!.headers.get('etag'))
  const all = await whole!.text()
  const signUp = await one!.text()
  for (const { path, method, operation } of operations) {
    const place = `### ${operation.summary}\n\n${method.toUpperCase()} \`${path}\`\n\n`
    t.ok(all.includes(place), operation.operationId)
  }
  for (const type of WEBHOOK_EVENT_TYPES) t.ok(all.includes(`\n- \`${type}\`: `), type)
  for (const code of Object.keys(PROBLEMS)) t.ok(all.includes(`\n- \`${code}\` (`), code)
  t.match(signUp, /^### Create a signup\n/)
  t.match(signUp, '\n- `email` (email) (required): E-mail address.\n')
  t.match(signUp, '\n  - `status` ("received"): The signup is stored.\n')
  t.match(signUp, '"detail": "is not a member of this body"', 'the body of a problem')
  t.match(signUp, '\nPython:\n\n```\nimport json\n', 'samples as they are')
  t.notMatch(all + signUp, /<(?:p|li|code|span|td|a)\b|&#/, 'no markup, no entities')
  for (const name of ['nothing', 'sign-up', 'constructor', 'sign%55p']) {
    const response = await request(`docs/${name}.md`)
    t.strictSame([response.status, (await response.json()).code], [404, 'route_not_found'], name)
  }
})

t.test('a document that could not be made is made for the next request', async (t) => {
  const store = await openMemoryStore()
  let requests = 0
  const sha256: typeof store.sha256 = (text) => {
    if (requests === 1) throw new Error('no digest')
    return store.sha256(text)
  }
  const api = createPartnerApi({ store: { ...store, sha256 } })
  for (const status of [500, 200]) {
    requests++
    t.equal((await api.fetch(new Request('http://api.example/service/docs'))).status, status)
  }
  await api.close()
})

t.test('the page is made once, and every part in turns with other requests', async (t) => {
  const store = await openMemoryStore()
  const hashed: string[] = []
  const sha256: typeof store.sha256 = (text) => {
    hashed.push(text)
    return store.sha256(text)
  }
  const api = createPartnerApi({ store: { ...store, sha256 } })
  t.teardown(() => api.close())
  const read = async (path: string) => {
    const response = await api.fetch(new Request(`http://api.example/service/${path}`))
    t.equal(response.status, 200, path)
  }
  for (const path of ['docs/widget.md', 'docs.md']) {
    let turns = 0
    const reading = read(path)
    for (let isRead = false; !isRead; turns++) {
      isRead = await Promise.race([reading.then(() => true), delay(0).then(() => false)])
    }
    t.ok(turns > operations.length, `${path}: ${turns} turns`)
  }
  for (const path of ['docs/profiles.md', 'docs']) await read(path)
  t.equal(new Set(hashed).size, hashed.length, 'one style, one script')
})
