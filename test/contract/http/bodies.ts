/** Steps 9 and 12 of a POST: media type, size, JSON, members. */
import { expectInvalid, expectProblem } from './expect.ts'
import { post, type Service, type Suite, type TestContext, withKey } from './service.ts'

const good = '{"partner":"demo"}'

export const bodies: readonly Suite[] = [{
  tests: {
    'a POST takes application/json in UTF-8 and no other media type': mediaTypes,
    'a body over 32,768 bytes is refused with 413': sizes,
    'malformed JSON is refused with 400, and a body that is no object with 422': malformedJson,
    'unknown members are reported by JSON pointer': members,
  },
}]

async function mediaTypes(t: TestContext, service: Service): Promise<void> {
  const accepted = [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json ; charset="utf-8"',
    'application/json; version=1; charset=utf-8',
  ]
  for (const type of accepted) {
    t.equal((await post(service, good, { headers: { 'content-type': type } })).status, 200, type)
  }
  const refused = [
    '',
    'json',
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/problem+json',
    'application/jsonp',
    'application/json; charset=latin1',
    'application/json; charset=utf-16',
    'application/json; charset=xutf-8',
    'application/json; charset=utf-8x',
    'application/json; charset=x utf-8',
    'application/json; charset=',
    'application/json; charset',
    'application/json; charset=utf-8; charset=latin1',
    'application/json; version=1; charset=latin1',
    'application/json, text/plain',
  ]
  for (const type of refused) {
    const response = await post(service, good, { headers: { 'content-type': type } })
    expectProblem(t, response, 'unsupported_media_type', type)
  }
  const { send, root, world } = service
  const headers = withKey(world.keys['demo full'])
  const untyped = await send({ method: 'POST', target: `${root}/developer/verify-key`, headers, body: good })
  expectProblem(t, untyped, 'unsupported_media_type', 'no media type')
  for (const coding of ['gzip', 'br', 'identity', 'x-unknown', 'gzip, gzip']) {
    const response = await post(service, good, { headers: { 'content-encoding': coding } })
    expectProblem(t, response, 'unsupported_media_type', `Content-Encoding: ${coding}`)
  }
}

async function sizes(t: TestContext, service: Service): Promise<void> {
  const largest = good + ' '.repeat(32_768 - good.length)
  for (const chunked of [false, true]) {
    const how = chunked ? 'in chunks' : 'of a known length'
    t.equal((await post(service, largest, { chunked })).status, 200, `32,768 bytes ${how}`)
    const over = await post(service, `${largest} `, { chunked })
    expectProblem(t, over, 'body_too_large', `32,769 bytes ${how}`)
    const far = await post(service, ' '.repeat(300_000), { chunked })
    expectProblem(t, far, 'body_too_large', `300,000 bytes ${how}`)
  }
  // 10,923 characters of three bytes each.
  const wide = `{"partner":"demo","x":"${'字'.repeat(10_923)}"}`
  expectProblem(t, await post(service, wide), 'body_too_large', 'the limit counts bytes, not characters')
  t.equal((await post(service, good)).status, 200, 'the next request succeeds')
  const many = Object.fromEntries(Array.from({ length: 1_500 }, (_, n) => [`é${n}`, 1]))
  const refused = await post(service, JSON.stringify({ partner: 'demo', ...many }))
  t.strictSame([refused.status, refused.json?.errors?.length], [422, 1_500], 'a long response is complete')
  t.ok(refused.body.length > 65_536, 'the response exceeds 64 KiB')
  t.equal(refused.headers.get('content-length'), String(refused.body.length), 'Content-Length counts bytes')
}

async function malformedJson(t: TestContext, service: Service): Promise<void> {
  const malformed: Readonly<Record<string, string | Uint8Array>> = {
    'an empty body': '',
    'white space': ' \n',
    'half an object': '{"partner":"demo"',
    'two objects': `${good}${good}`,
    'text after the object': `${good}x`,
    'a trailing comma': '{"partner":"demo",}',
    'single quotes': "{'partner':'demo'}",
    'a bare name': '{partner:"demo"}',
    'a comment': '{"partner":"demo"/**/}',
    'NaN': '{"partner":"demo","x":NaN}',
    'a control character in a string': '{"partner":"de\nmo"}',
    'a byte-order mark': `\uFEFF${good}`,
    'invalid UTF-8': Buffer.from('{"partner":"demo\xff"}', 'latin1'),
    'an overlong encoding': Buffer.from('{"partner":"demo\xc0\xaf"}', 'latin1'),
    'an encoded surrogate': Buffer.from('{"partner":"demo\xed\xa0\x80"}', 'latin1'),
    'UTF-16': Buffer.from(good, 'utf16le'),
    'a member twice': '{"partner":"demo","partner":"demo"}',
    'a member twice, with an escape': '{"partner":"demo","p\\u0061rtner":"acme"}',
    'a member twice, in a nested object': '{"partner":"demo","x":[{"a":1,"b":{"c":1,"c":2}}]}',
    'a member twice, in an unknown member': '{"x":{"y":1,"y":1},"partner":"demo"}',
    'an empty name twice': '{"partner":"demo","":1,"":1}',
    '__proto__ twice': '{"partner":"demo","__proto__":1,"__proto__":1}',
  }
  for (const [what, body] of Object.entries(malformed)) {
    expectProblem(t, await post(service, body), 'malformed_request', what)
  }
  for (const body of ['[]', '[{"partner":"demo"}]', '"demo"', '1', 'true', 'null', '[{"a":1},{"a":1}]']) {
    expectProblem(t, await post(service, body), 'invalid_body', `not an object: ${body}`, { errors: [''] })
  }
  const spaced = ` \r\n\t{ "p\\u0061rtner" : "d\\u0065mo" } \n`
  t.equal((await post(service, spaced)).status, 200, 'escapes and white space are accepted')
}

async function members(t: TestContext, service: Service): Promise<void> {
  const wrong: readonly [object | string, readonly string[]][] = [
    [{ partner: 'demo', other: 1 }, ['/other']],
    [{ a: 1, partner: 'demo', b: null, c: { d: 1 } }, ['/a', '/b', '/c']],
    [{ 'partner': 'demo', 'a/b~c': 1 }, ['/a~1b~0c']],
    [{ 'partner': 'demo', '': 1 }, ['/']],
    [{ 'partner': 'demo', 'naïve "x" \\ ': 1 }, ['/naïve "x" \\ ']],
    [{ partner: 'demo', Partner: 'demo', PARTNER: 'demo' }, ['/PARTNER', '/Partner']],
    ['{"partner":"demo","__proto__":{"x":1}}', ['/__proto__']],
    ['{"partner":"demo","constructor":1,"toString":1}', ['/constructor', '/toString']],
    [{ partner: 'demo', key: 'x', scopes: [] }, ['/key', '/scopes']],
  ]
  for (const [body, errors] of wrong) {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    expectProblem(t, await post(service, text), 'invalid_body', text, { errors })
  }
  const target = `${service.root}/developer/verify-key`
  for (const [query, names] of [['partner=demo', ['partner']], ['x=1&y=%zz', ['x', 'y']]] as const) {
    expectInvalid(t, await post(service, good, { target: `${target}?${query}` }), names, `a query: ${query}`)
  }
  t.equal((await post(service, good, { target: `${target}?` })).status, 200, 'an empty query is allowed')
}
