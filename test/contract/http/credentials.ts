/** Section 2: forms of the credential, the problem for each, and its challenge. */
import { comparable, expectInvalid, expectProblem } from './expect.ts'
import {
  post,
  type Service,
  type Suite,
  type TestContext,
  type TestRequest,
  type TestResponse,
  withKey,
} from './service.ts'
import { forge, tamper } from './forgery.ts'

const plain = 'Bearer realm="service"'
const invalid = 'Bearer realm="service", error="invalid_token"'

export const credentials: readonly Suite[] = [{
  tests: {
    'a request without a credential is refused with 401 key_missing': missingCredential,
    'a credential that is not a key is refused with 401 key_invalid': invalidKey,
    'a revoked, expired or disabled key is refused with its own code': keyStates,
    'different or repeated credentials are refused with 400 ambiguous_credentials': multipleCredentials,
    'a key in the query is not a credential': keyInQuery,
    'the named partner must be that of the key': partnerOfKey,
  },
}]

/** GET of the plans with these header fields only. */
function getPlans(
  { send, root }: Service,
  headers: NonNullable<TestRequest['headers']>,
  query = 'partner=demo',
): Promise<TestResponse> {
  return send({ target: `${root}/public/plans?${query}`, headers })
}

function challengeOf({ headers }: TestResponse): string | undefined {
  return headers.get('www-authenticate')
}

async function missingCredential(t: TestContext, service: Service): Promise<void> {
  const { text } = service.world.keys['demo full']
  // Each with what the detail says about it.
  const forms: readonly (readonly [NonNullable<TestRequest['headers']>, RegExp])[] = [
    [{}, none],
    [{ 'x-service-partner-key': '' }, none],
    [{ authorization: '' }, none],
    [{ authorization: 'Bearer' }, /the scheme Bearer/],
    [{ authorization: 'Bearer ' }, /the scheme Bearer/],
    [{ authorization: 'bearer    ' }, /the scheme Bearer/],
    [{ authorization: 'Basic c3RhZ2luZzpzZWNyZXQ=' }, /the scheme Bearer/],
    [{ authorization: 'Digest username="staging", realm="x", uri="/"' }, /the scheme Bearer/],
    [{ authorization: `Bearerx ${text}` }, /the scheme Bearer/],
    [{ authorization: `xBearer ${text}` }, /the scheme Bearer/],
    [{ authorization: text }, /the scheme Bearer/],
    [{ 'x-partner-key': text }, none],
    [{ 'x-api-key': text }, /in X-API-Key is not read/],
    [{ cookie: `x-service-partner-key=${text}` }, none],
    [{ 'proxy-authorization': `Bearer ${text}` }, none],
  ]
  for (const [headers, detail] of forms) {
    const response = await getPlans(service, headers)
    expectProblem(t, response, 'key_missing', JSON.stringify(headers).slice(0, 60))
    t.equal(challengeOf(response), plain, 'no error code (RFC 6750 §3)')
    expectAdvice(t, response, detail)
  }
}

const none = /^The request carries no key\.$/

/** Checks that the detail says where the key belongs, and does not echo it. */
function expectAdvice(t: TestContext, { json: { detail }, text }: TestResponse, expected: RegExp): void {
  t.ok(expected.test(detail), `${expected}: ${detail}`)
  t.equal(detail.includes('Send the key in X-Service-Partner-Key, or as'), expected !== none)
  t.ok(!/spk_|c3Rh/.test(text), 'nothing is echoed')
}

async function invalidKey(t: TestContext, service: Service): Promise<void> {
  const { text, id } = service.world.keys['demo full']
  const forms = {
    'arbitrary text': 'nonsense',
    'cut short': text.slice(0, -1),
    'too long': `${text}x`,
    'another prefix': `abc${text.slice(3)}`,
    'another environment': text.replace('_live_', '_prod_'),
    'live as test': text.replace('_live_', '_test_'),
    'a wrong checksum': tamper(text, text.length - 1),
    'a wrong secret with the old checksum': tamper(text, 25),
    'a wrong id with the old checksum': tamper(text, 10),
    'in upper case': text.toUpperCase(),
    'an unknown id': forge('spk_live', 'Nobody000000'),
    'a wrong secret': forge('spk_live', id),
    'the environment and checksum of a test key': forge('spk_test', id),
    'two keys in one value': `${text} ${text}`,
    'quoted': `"${text}"`,
  }
  const bodies = new Map<string, string>()
  for (const [what, credential] of Object.entries(forms)) {
    const presented: readonly NonNullable<TestRequest['headers']>[] = [
      { 'x-service-partner-key': credential },
      { authorization: `Bearer ${credential}` },
    ]
    for (const headers of presented) {
      const response = await getPlans(service, headers)
      expectProblem(t, response, 'key_invalid', what)
      t.equal(challengeOf(response), invalid, what)
      bodies.set(JSON.stringify(comparable(response)), what)
    }
  }
  t.strictSame([...bodies.values()].slice(1), [], 'all responses have the same bytes')
}

async function keyStates(t: TestContext, service: Service): Promise<void> {
  for (const state of ['revoked', 'expired', 'disabled'] as const) {
    const key = service.world.keys[`demo ${state}`]
    for (const headers of [withKey(key), { authorization: `bearer ${key.text}` }]) {
      const response = await getPlans(service, headers)
      expectProblem(t, response, `key_${state}`, `a ${state} key`)
      t.equal(challengeOf(response), invalid, `a ${state} key`)
    }
    const verified = await post(service, '{"partner":"demo"}', { key })
    expectProblem(t, verified, `key_${state}`, `verify-key with a ${state} key`)
    const guessed = await getPlans(service, { 'x-service-partner-key': forge('spk_live', key.id) })
    expectProblem(t, guessed, 'key_invalid', `only the holder of the secret learns that it is ${state}`)
  }
  const test = await getPlans(service, withKey(service.world.keys['demo test']))
  t.equal(test.status, 200, 'a test key may read')
}

async function multipleCredentials(t: TestContext, service: Service): Promise<void> {
  const { 'demo full': { text }, 'demo test': { text: other } } = service.world.keys
  const accepted: readonly NonNullable<TestRequest['headers']>[] = [
    { 'x-service-partner-key': text },
    { authorization: `Bearer ${text}` },
    { authorization: `bearer ${text}` },
    { authorization: `BEARER ${text}` },
    { authorization: `Bearer  ${text}` },
    { 'x-service-partner-key': text, authorization: `Bearer ${text}` },
    { 'x-service-partner-key': text, authorization: 'Basic c3RhZ2luZzpzZWNyZXQ=' },
    { 'x-service-partner-key': text, authorization: 'Digest username="a", realm="b", uri="/"' },
    { 'x-service-partner-key': text, authorization: 'Digest username="a",realm="b",uri = "/"' },
    { 'x-service-partner-key': text, authorization: String.raw`Digest username="a, \"b\", c", qop=auth` },
    { 'x-service-partner-key': text, authorization: `Negotiate ${'YII'.repeat(4_000)}` },
    { 'x-service-partner-key': text, authorization: 'Bearer' },
    { 'x-service-partner-key': '', authorization: `Bearer ${text}` },
  ]
  for (const headers of accepted) {
    t.equal((await getPlans(service, headers)).status, 200, Object.values(headers).map(masked).join(' and '))
  }
  const ambiguous: readonly NonNullable<TestRequest['headers']>[] = [
    { 'x-service-partner-key': text, authorization: `Bearer ${other}` },
    { 'x-service-partner-key': text, authorization: 'Bearer nonsense' },
    { 'x-service-partner-key': 'nonsense', authorization: `Bearer ${text}` },
    { 'x-service-partner-key': text, authorization: `Bearer ${text.toLowerCase()}` },
    { 'x-service-partner-key': [text, text] },
    { 'x-service-partner-key': [text, other] },
    { 'x-service-partner-key': ['', text] },
    { authorization: `Bearer ${text}, realm="a"` },
    { authorization: [`Bearer ${text}`, `Bearer ${text}`] },
    { authorization: [`Bearer ${text}`, 'Basic c3RhZ2luZzpzZWNyZXQ='] },
    { authorization: ['Basic c3RhZ2luZzpzZWNyZXQ=', `Bearer ${text}`] },
    { authorization: ['Digest username="a", qop=auth', `Bearer ${text}`] },
    { authorization: ['Digest username="a', `Bearer ${text}`] },
    { authorization: [`Negotiate ${'YII'.repeat(4_000)}`, `Bearer ${text}`] },
    { 'x-service-partner-key': [text, text], authorization: `Bearer ${text}` },
    { 'x-service-partner-key': text, authorization: [`Bearer ${text}`, `Bearer ${text}`] },
    {
      'x-service-partner-key': text,
      authorization: ['Basic c3RhZ2luZzpzZWNyZXQ=', 'Basic c3RhZ2luZzpzZWNyZXQ='],
    },
  ]
  for (const headers of ambiguous) {
    const response = await getPlans(service, headers)
    expectProblem(t, response, 'ambiguous_credentials', Object.values(headers).map(masked).join(' and '))
    t.equal(challengeOf(response), undefined, 'a 400 has no challenge')
  }
}

async function keyInQuery(t: TestContext, service: Service): Promise<void> {
  const { text } = service.world.keys['demo full']
  for (const name of ['key', 'api_key', 'access_token', 'partner_key', 'x-service-partner-key']) {
    const query = `partner=demo&${name}=${text}`
    const alone = await getPlans(service, {}, query)
    expectProblem(t, alone, 'key_missing', `${name} alone`)
    expectAdvice(t, alone, /in the URL is not read, and is in logs now/)
    t.equal(challengeOf(alone), plain)
    expectInvalid(t, await getPlans(service, { 'x-service-partner-key': text }, query), [name], name)
  }
}

async function partnerOfKey(t: TestContext, service: Service): Promise<void> {
  const headers = withKey(service.world.keys['demo full'])
  for (const query of ['', 'partner=', 'partner', 'limit=1', '&&']) {
    expectProblem(t, await getPlans(service, headers, query), 'partner_missing', `?${query}`)
  }
  for (const partner of ['', null, 7, ['demo'], undefined]) {
    const body = JSON.stringify({ partner })
    expectProblem(t, await post(service, body), 'partner_missing', body)
  }
  const slugs = 'acme hush unknown Demo demo+ %20demo DEMO * demo%00 %F0%9F%98%80'.split(' ')
  const responses = new Set<string>()
  for (const slug of [...slugs, 'a'.repeat(500)]) {
    const response = await getPlans(service, headers, `partner=${slug}`)
    expectProblem(t, response, 'partner_mismatch', slug.slice(0, 20))
    t.equal(challengeOf(response), undefined, 'no challenge: the key is valid')
    responses.add(JSON.stringify(comparable(response)))
  }
  t.equal(responses.size, 1, 'a mismatch does not reveal whether the partner exists')
  const taken = await post(service, '{"partner":"acme"}')
  const free = await post(service, '{"partner":"unknown"}')
  expectProblem(t, taken, 'partner_mismatch', 'in a body')
  t.strictSame(comparable(free), comparable(taken), 'a body does not reveal it either')
  expectInvalid(
    t,
    await getPlans(service, headers, 'partner=demo&partner=demo'),
    ['partner'],
    'the same partner twice',
  )
  expectInvalid(t, await getPlans(service, headers, 'partner=demo&partner=acme'), ['partner'], 'two partners')
  const key = service.world.keys['hush full']
  const suspended = await getPlans(service, withKey(key), 'partner=hush')
  expectProblem(t, suspended, 'partner_suspended', 'a suspended partner')
  t.equal(challengeOf(suspended), undefined)
  expectProblem(t, await post(service, '{"partner":"hush"}', { key }), 'partner_suspended', 'verify-key')
}

function masked(value: string | readonly string[]): string {
  const hide = (text: string): string => text.replace(/spk_\w+/i, 'KEY').slice(0, 30)
  return typeof value === 'string' ? hide(value) : `[${value.map(hide)}]`
}
