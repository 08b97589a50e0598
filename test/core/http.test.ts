/** What the parts of `core/http` return for values that the contract sees only in part. */
import t from 'tap'
import { pointer, readBody } from '../../core/http/body.ts'
import { parseClientAddress } from '../../core/http/client-address.ts'
import { accepts, createServiceNames, entityTag, matchesNone, prefersGzip } from '../../core/http/headers.ts'
import { byteLength } from '../../core/http/message.ts'
import { Problem, problemDocument } from '../../core/http/problem.ts'
import { readPartner, readQuery, valueError } from '../../core/http/query.ts'
import { formatValue, redactKeys, redactPath } from '../../core/http/redact.ts'
import { createResponseWriter, respondCached } from '../../core/http/response.ts'
import { forge } from '../contract/http/forgery.ts'

const key = forge('partner_live', '0'.repeat(12))

t.test('a problem has the title of its code, and keeps its cause for the log', (t) => {
  const titles = {
    uri_too_long: 'URI too long',
    internal: 'Internal error',
    key_missing: 'Key missing',
    unsupported_media_type: 'Unsupported media type',
  } as const
  for (const [code, title] of Object.entries(titles)) {
    t.match(problemDocument(code as keyof typeof titles, {}, 'https://a.example', '/', 'req_1'), {
      title,
      code,
    })
  }
  const cause = new Error('no')
  t.match(new Problem('internal', { detail: 'Why' }, cause), { name: 'Problem', message: 'Why', cause })
  t.equal(new Problem('key_missing').message, 'The request carries no key.')
  t.end()
})

t.test('a refused body has a detail that says why', (t) => {
  const read = (body: string | Uint8Array, headers: Record<string, string> = {}): unknown => {
    const all: Record<string, string> = { 'content-type': 'application/json', ...headers }
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    try {
      const header = (name: string) => all[name]
      return readBody({ method: 'POST', target: '/', header, body: () => bytes, address: undefined })
    } catch (error) {
      return error
    }
  }
  const type = /^The body must be application\/json in UTF-8\.$/
  const cases: [body: string | Uint8Array, headers: Record<string, string>, code: string, detail: RegExp][] =
    [
      [
        '{}',
        { 'content-encoding': 'gzip' },
        'unsupported_media_type',
        /^The body must not have a Content-Encoding\.$/,
      ],
      ['{}', { 'content-type': 'text/plain' }, 'unsupported_media_type', type],
      ...['xutf-8', 'utf-8x', 'x utf-8', 'utf-8 x', ''].map((
        charset,
      ): [string, Record<string, string>, string, RegExp] => [
        '{}',
        { 'content-type': `application/json; charset=${charset}` },
        'unsupported_media_type',
        type,
      ]),
      ['{}', { 'content-type': 'application/json; charset' }, 'unsupported_media_type', type],
      ['{', {}, 'malformed_request', /^The body is not JSON\.$/],
      [
        '{"a":1,"a":1}',
        {},
        'malformed_request',
        /^The body contains an object with duplicate member names\.$/,
      ],
      [Buffer.from([0x22, 0xff, 0x22]), {}, 'malformed_request', /^The body is not UTF-8\.$/],
    ]
  for (const [body, headers, code, detail] of cases) {
    t.match(read(body, headers), { code, members: { detail } })
  }
  t.match(read('[]'), {
    code: 'invalid_body',
    members: { errors: [{ pointer: '', detail: 'must be an object' }] },
  })
  for (const charset of [' utf-8 ', '"UTF-8"']) {
    t.match(read('{}', { 'content-type': `application/json; charset=${charset}` }), { value: {} })
  }
  t.equal(pointer(['a', 0, 'b/~c']), '/a/0/b~1~0c')
  t.end()
})

t.test('a refused parameter has a detail that says why', (t) => {
  const query = readQuery(`a=1&a=${key}&b=%zz&b=%&c=1&c=2&c=3&&d`)
  t.strictSame(query.values.get('b'), ['', ''])
  t.strictSame(query.values.get('d'), [''])
  t.equal(query.values.size, 4)
  const error = (name: string, most: number) => valueError(query, name, query.values.get(name)!, most)
  t.equal(error('a', 2), 'looks like a key, which must not be sent in a URL')
  t.equal(error('b', 2), 'is not percent-encoded UTF-8')
  t.equal(error('c', 1), 'must not be repeated')
  t.equal(error('c', 2), 'must not have more than 2 values')
  t.equal(error('c', 3), undefined)
  const errors = [{ parameter: 'partner', detail: 'must not be repeated' }]
  t.throws(() => readPartner(readQuery('partner=a&partner=b')), {
    code: 'invalid_parameter',
    members: { errors },
  })
  t.equal(readPartner(readQuery('a=b')), undefined)
  t.end()
})

t.test('names, ranges, codings and tags of headers', (t) => {
  t.match(createServiceNames('my-api'), {
    keyHeader: 'X-My-Api-Partner-Key',
    versionHeaderLowerCase: 'my-api-version',
  })
  for (const name of ['', 'Api', '1a', '-a', 'a_b', 'a b', 'aB']) {
    const message = `The service can't be named ${JSON.stringify(name)}: ` +
      'use lower-case letters, digits and "-", a letter first.'
    t.throws(() => createServiceNames(name), new RangeError(message))
  }
  const type = 'application/json'
  for (const accept of [undefined, '', ' , ', '*/*', type, `${type};xq=0`, `text/html, ${type} ; Q = 0.5`]) {
    t.equal(accepts(accept, type), true, String(accept))
  }
  for (
    const accept of [
      `${type};q=0`,
      `${type}; q =0`,
      `${type};a=1;q=0`,
      `${type};q=x`,
      'text/*',
      ' ,text/html',
    ]
  ) {
    t.equal(accepts(accept, type), false, accept)
  }
  t.strictSame([undefined, '', 'gzip', 'gzip;q=0', '*', 'identity, gzip;q=0.5'].map(prefersGzip), [
    ...[false, false, true, false, true, false],
  ])
  t.equal(entityTag('a', (text) => text.repeat(64)), `"${'a'.repeat(32)}"`)
  for (const value of ['"a"', ' * ', 'W/"a"', '"b", "a"']) t.ok(matchesNone(value, '"a"'), value)
  t.end()
})

t.test('limits count by the address of a client, or by its /64', (t) => {
  // Addresses are kept by their text, so each run has others.
  const part = () => 1 + Math.floor(Math.random() * 9999)
  for (let round = 0; round < 3; round++) {
    const [v4, v6] = [`198.18.${part() % 256}.${part() % 256}`, `2001:db8:${part()}:${part()}::${part()}`]
    const network = v6.split('::')[0]
    for (const [hop, text] of [[`[${v4}]`, v4], [`[${v6}%eth0]:4711`, v6]] as const) {
      const first = parseClientAddress(hop)
      t.equal(first.text, text, hop)
      t.equal(parseClientAddress(hop), first, 'it is kept')
    }
    const subject = (hop: string) => parseClientAddress(hop).subject
    t.equal(subject(`${network}::1`), subject(v6), 'the /64 counts')
    t.not(subject(`2001:db9:${part()}:${part()}::1`), subject(v6))
    t.not(subject(`198.19.${part() % 256}.1`), subject(v4))
    for (
      const hop of [
        `${v4}:`,
        `${v4}:x`,
        `x${v4}:1`,
        `[${v4}]x`,
        `[${v4}]:`,
        `[${v4}]:1x`,
        `x[${v4}]`,
        `a${v4}`,
      ]
    ) {
      t.strictSame(
        parseClientAddress(hop),
        { text: undefined, address: undefined, subject: 'unreadable' },
        hop,
      )
    }
  }
  t.strictSame(parseClientAddress(undefined), { text: undefined, address: undefined, subject: undefined })
  t.end()
})

t.test('a value in a message is quoted, short, visible and never a key', (t) => {
  const values: [unknown, string][] = [
    ['a', '"a"'],
    ['', '""'],
    [key, 'a value that looks like a key'],
    [[], 'a list'],
    [undefined, 'nothing'],
    [{}, 'an object'],
    [null, 'null'],
    [7, '7'],
    [false, 'false'],
    ['a'.repeat(60), `"${'a'.repeat(60)}"`],
    ['a'.repeat(61), `"${'a'.repeat(60)}…"`],
    ['👋'.repeat(60), `"${'👋'.repeat(60)}"`],
    ['👋'.repeat(61), `"${'👋'.repeat(60)}…"`],
    ['a\x9b\u202e\u2028\u2029b', '"a\\u{9b}\\u{202e}\\u{2028}\\u{2029}b"'],
  ]
  for (const [value, text] of values) t.equal(formatValue(value), text)
  let encoded = key
  for (const times of [0, 1, 2, 3]) {
    t.equal(redactKeys(`a${encoded}`), '[redacted]', `encoded ${times} times`)
    encoded = encoded.replaceAll('%', '%25').replaceAll('_', '%5F')
  }
  const broken = `${key.slice(0, 20)}\r\n ${key.slice(20)}`
  t.strictSame([redactKeys(broken), redactPath(`/${broken}`), redactPath('/a')], ['[redacted]', '/', '/a'])
  for (const text of ['', 'a', 'a%', '%zz', '%25'.repeat(9)]) t.equal(redactKeys(text), text)
  const token = 'aB3'.padEnd(32, 'x')
  const paths = {
    [`/service/claim/${token}`]: '/service/claim/…',
    [`/service/claims/${token}.`]: '/service/claims/…',
    [`/${token}/x`]: '/…/x',
    [`/service/claim%25252525252f${token}`]: '/service/…',
    [`/a/x%61${token.slice(0, 10)}%0A${token.slice(10)}`]: '/a/…',
    [`/a/${token.slice(0, 28)}`]: '/a/…',
    '/service/insurance/claim/77/items': undefined,
    [`/service/orders/${'0123456789abcdef'.repeat(4)}`]: undefined,
    [`/service/profiles/${'a-long-slug-'.repeat(6)}b`]: undefined,
  }
  for (const [path, shown = path] of Object.entries(paths)) t.equal(redactPath(path), shown)
  t.end()
})

t.test('a response has the fields of its content, its request and its limits', async (t) => {
  const json = 'application/json; charset=utf-8'
  const names = createServiceNames('service')
  const writer = createResponseWriter(names, '7', 'https://a.example', (text) => text.padEnd(64, '0'))
  const common = { 'X-Content-Type-Options': 'nosniff', 'Service-Version': '7' }
  const fields = ({ headers }: { readonly headers: readonly string[] }) =>
    Object.fromEntries(headers.flatMap((name, index) => index % 2 === 0 ? [[name, headers[index + 1]]] : []))
  const rateLimit = { policy: '"key";q=1', limit: '"key";r=0' }
  const limits = { 'RateLimit-Policy': rateLimit.policy, 'RateLimit': rateLimit.limit }
  const request = { method: 'GET', header: (_: string): string | undefined => undefined }
  const meta = { requestId: 'req_1', request }
  const own = { 'X-Request-Id': 'req_1' }

  const page = { limit: 2, has_more: true, next_cursor: 'c/2' }
  const result = { data: ['é'], page, headers: ['A', '1'] }
  const query = readQuery('partner=acme&cursor=c1&limit=2&a=1&a=2')
  const body = writer.toCachedBody(result, '/service/list', query)
  const text = JSON.stringify({ data: ['é'], page })
  const cached = {
    'ETag': `"${text.slice(0, 32)}"`,
    'Cache-Control': 'private, no-cache',
    'Vary': 'Authorization, X-Service-Partner-Key, Service-Version',
    ...common,
    'Link': '<list?partner=acme&limit=2&a=1&a=2&cursor=c%2F2>; rel="next"',
    'A': '1',
  }
  const content = { 'Content-Type': json, 'Content-Length': String(text.length + 1) }
  const whole = respondCached(body, { ...meta, rateLimit })
  t.strictSame([whole.status, whole.body, fields(whole)], [200, text, {
    ...content,
    ...cached,
    ...own,
    ...limits,
  }])
  t.strictSame(fields(respondCached(body, meta)), { ...content, ...cached, ...own })
  t.equal(respondCached(body, { requestId: 'req_1', request: undefined }).body, text)
  t.equal(respondCached(body, { ...meta, request: { ...request, method: 'HEAD' } }).body, undefined)
  const knowing = { ...request, header: (name: string) => name === 'if-none-match' ? body.etag : undefined }
  const unchanged = respondCached(body, { ...meta, request: knowing, rateLimit })
  t.strictSame([unchanged.status, unchanged.body, fields(unchanged)], [
    304,
    undefined,
    { ...cached, ...own, ...limits },
  ])
  t.notOk(body.headers.includes('req_1'), 'the cached fields stay as they are')
  for (const last of [{}, { page: { limit: 2, has_more: false, next_cursor: null } }]) {
    const response = writer.toCachedBody({ data: [], ...last }, '/service/list', query)
    t.strictSame(Object.keys(fields(response)).filter((name) => !Object.hasOwn(limits, name)), [
      ...Object.keys({ ...content, ...cached, ...own }).filter((name) => name !== 'Link' && name !== 'A'),
    ])
    t.equal(response.body, JSON.stringify({ data: [], ...last }))
  }

  t.strictSame(['é', 'é'.repeat(40_000)].map(byteLength), [2, 80_000])
  const document = writer.toCachedDocument({ text: '<p>é', headers: ['A', '1'] }, 'text/html')
  const documented = { 'Cache-Control': 'no-cache', 'Vary': 'Accept-Encoding', ...common, 'A': '1' }
  t.strictSame(fields(respondCached(document, meta)), {
    'Content-Type': 'text/html',
    'Content-Length': '5',
    'ETag': `"${'<p>é'.padEnd(32, '0')}"`,
    ...documented,
    ...own,
  })
  const gzip = await writer.compress(document)
  t.equal(
    await new Response(
      new Blob([gzip.body as Uint8Array<ArrayBuffer>]).stream()
        .pipeThrough(new DecompressionStream('gzip')),
    ).text(),
    '<p>é',
  )
  t.strictSame(fields(respondCached(gzip, meta)), {
    'Content-Type': 'text/html',
    'Content-Length': String(gzip.body.length),
    'Content-Encoding': 'gzip',
    'ETag': gzip.etag,
    ...documented,
    ...own,
  })
  t.not(gzip.etag, document.etag)

  const uncached = { 'Cache-Control': 'no-store', ...common, ...own }
  const made = writer.respondUncached({ data: 'é' }, 201, { ...meta, rateLimit })
  t.strictSame([made.status, made.body, fields(made)], [
    201,
    '{"data":"é"}',
    { 'Content-Type': json, 'Content-Length': '13', ...uncached, ...limits },
  ])
  t.strictSame(fields(writer.respondUncached({ data: 'é', headers: ['A', '1'] }, 200, meta)), {
    ...{ 'Content-Type': json, 'Content-Length': '13', ...uncached, 'A': '1' },
  })
  t.equal(
    writer.respondUncached({}, 200, { ...meta, request: { ...request, method: 'HEAD' } }).body,
    undefined,
  )

  const challenges = [
    [new Problem('key_missing'), { 'WWW-Authenticate': 'Bearer realm="service"' }],
    [new Problem('key_revoked'), { 'WWW-Authenticate': 'Bearer realm="service", error="invalid_token"' }],
    [new Problem('scope_missing', { required_scope: 'read:a' }), {
      'WWW-Authenticate': 'Bearer realm="service", error="insufficient_scope", scope="read:a"',
    }],
    [new Problem('method_not_allowed', { allow: 'GET' }), { 'Allow': 'GET' }],
    [new Problem('rate_limited', { retryAfterSeconds: 0 }), { 'Retry-After': '0' }],
    [new Problem('internal'), {}],
  ] as const
  for (const [problem, more] of challenges) {
    const { code } = problem
    const response = writer.respondProblem(problem, { requestId: 'req_1', request: undefined }, '/a b')
    t.match(JSON.parse(response.body as string), { code, instance: '/a%20b', status: response.status })
    t.strictSame(fields(response), {
      'Content-Type': 'application/problem+json',
      'Content-Length': String((response.body as string).length),
      ...uncached,
      'Referrer-Policy': 'no-referrer',
      ...more,
    }, code)
  }
  t.strictSame(writer.respondOptions('GET', 'req_1'), {
    status: 204,
    headers: ['Allow', 'GET', ...Object.entries(common).flat(), 'X-Request-Id', 'req_1'],
    body: undefined,
  })
})
