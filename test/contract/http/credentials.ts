/** Section 2: the credential, what becomes of each form of it, and the challenge. */
import { comparable, expectInvalid, expectProblem, SCOPED_ENDPOINTS, SCOPES } from './expect.ts'
import { type Ask, get, type Heard, post, type Service, type Suite, type Tester, withKey } from './service.ts'
import { forge, tamper } from './forgery.ts'

const plain = 'Bearer realm="service"'
const invalid = 'Bearer realm="service", error="invalid_token"'

export const credentials: readonly Suite[] = [{
  tests: {
    'no credential': missing,
    'a credential that is no key': unknown,
    'a key that is not in force': states,
    'two credentials': two,
    'a key in the query': inQuery,
    'partner': partner,
    'scopes and modules': scopes,
  },
}]

/** GET of the plans with these fields and no others. */
function ask(
  { send, root }: Service,
  headers: NonNullable<Ask['headers']>,
  query = 'partner=demo',
): Promise<Heard> {
  return send({ target: `${root}/public/plans?${query}`, headers })
}

function challengeOf({ headers }: Heard): string | undefined {
  return headers.get('www-authenticate')
}

async function missing(t: Tester, service: Service): Promise<void> {
  const { text } = service.world.keys['demo full']
  const forms: readonly NonNullable<Ask['headers']>[] = [
    {},
    { 'x-service-partner-key': '' },
    { authorization: '' },
    { authorization: 'Bearer' },
    { authorization: 'Bearer ' },
    { authorization: 'bearer    ' },
    { authorization: 'Basic c3RhZ2luZzpzZWNyZXQ=' },
    { authorization: 'Digest username="staging", realm="x", uri="/"' },
    { authorization: `Bearerx ${text}` },
    { authorization: text },
    { 'x-partner-key': text },
    { 'x-api-key': text },
    { cookie: `x-service-partner-key=${text}` },
    { 'proxy-authorization': `Bearer ${text}` },
  ]
  for (const headers of forms) {
    const heard = await ask(service, headers)
    expectProblem(t, heard, 'key_missing', JSON.stringify(headers).slice(0, 60))
    t.equal(challengeOf(heard), plain, 'no error code (RFC 6750 §3)')
  }
}

async function unknown(t: Tester, service: Service): Promise<void> {
  const { text, id } = service.world.keys['demo full']
  const forms = {
    'no key at all': 'nonsense',
    'cut short': text.slice(0, -1),
    'too long': `${text}x`,
    'another prefix': `abc${text.slice(3)}`,
    'another environment': text.replace('_live_', '_prod_'),
    'live as test': text.replace('_live_', '_test_'),
    'a wrong checksum': tamper(text, text.length - 1),
    'a wrong secret, its checksum as it was': tamper(text, 25),
    'a wrong id, its checksum as it was': tamper(text, 10),
    'in upper case': text.toUpperCase(),
    'an unknown id': forge('spk_live', 'Nobody000000'),
    'a wrong secret': forge('spk_live', id),
    'the environment and checksum of a test key': forge('spk_test', id),
    'two in one value': `${text} ${text}`,
    'quoted': `"${text}"`,
  }
  const bodies = new Map<string, string>()
  for (const [what, credential] of Object.entries(forms)) {
    const presented: readonly NonNullable<Ask['headers']>[] = [
      { 'x-service-partner-key': credential },
      { authorization: `Bearer ${credential}` },
    ]
    for (const headers of presented) {
      const heard = await ask(service, headers)
      expectProblem(t, heard, 'key_invalid', what)
      t.equal(challengeOf(heard), invalid, what)
      bodies.set(JSON.stringify(comparable(heard)), what)
    }
  }
  t.strictSame([...bodies.values()].slice(1), [], 'all of them are answered with the same bytes')
}

async function states(t: Tester, service: Service): Promise<void> {
  for (const state of ['revoked', 'expired', 'disabled'] as const) {
    const key = service.world.keys[`demo ${state}`]
    for (const headers of [withKey(key), { authorization: `bearer ${key.text}` }]) {
      const heard = await ask(service, headers)
      expectProblem(t, heard, `key_${state}`, `a ${state} key`)
      t.equal(challengeOf(heard), invalid, `a ${state} key`)
    }
    const verified = await post(service, '{"partner":"demo"}', { key })
    expectProblem(t, verified, `key_${state}`, `verify-key with a ${state} key`)
    const guessed = await ask(service, { 'x-service-partner-key': forge('spk_live', key.id) })
    expectProblem(t, guessed, 'key_invalid', `only the holder of the secret learns that it is ${state}`)
  }
  const test = await ask(service, withKey(service.world.keys['demo test']))
  t.equal(test.status, 200, 'a test key reads as a live one')
}

async function two(t: Tester, service: Service): Promise<void> {
  const { 'demo full': { text }, 'demo test': { text: other } } = service.world.keys
  const accepted: readonly NonNullable<Ask['headers']>[] = [
    { 'x-service-partner-key': text },
    { authorization: `Bearer ${text}` },
    { authorization: `bearer ${text}` },
    { authorization: `BEARER ${text}` },
    { 'x-service-partner-key': text, authorization: `Bearer ${text}` },
    { 'x-service-partner-key': text, authorization: 'Basic c3RhZ2luZzpzZWNyZXQ=' },
    { 'x-service-partner-key': text, authorization: 'Digest username="a", realm="b", uri="/"' },
    { 'x-service-partner-key': text, authorization: String.raw`Digest username="a, \"b\", c", qop=auth` },
    { 'x-service-partner-key': text, authorization: `Negotiate ${'YII'.repeat(4_000)}` },
    { 'x-service-partner-key': text, authorization: 'Bearer' },
    { 'x-service-partner-key': '', authorization: `Bearer ${text}` },
  ]
  for (const headers of accepted) {
    t.equal((await ask(service, headers)).status, 200, Object.values(headers).map(shown).join(' and '))
  }
  const ambiguous: readonly NonNullable<Ask['headers']>[] = [
    { 'x-service-partner-key': text, authorization: `Bearer ${other}` },
    { 'x-service-partner-key': text, authorization: 'Bearer nonsense' },
    { 'x-service-partner-key': 'nonsense', authorization: `Bearer ${text}` },
    { 'x-service-partner-key': text, authorization: `Bearer ${text.toLowerCase()}` },
    { 'x-service-partner-key': [text, text] },
    { 'x-service-partner-key': [text, other] },
    { 'x-service-partner-key': ['', text] },
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
    const heard = await ask(service, headers)
    expectProblem(t, heard, 'ambiguous_credentials', Object.values(headers).map(shown).join(' and '))
    t.equal(challengeOf(heard), undefined, 'a 400 has no challenge')
  }
}

async function inQuery(t: Tester, service: Service): Promise<void> {
  const { text } = service.world.keys['demo full']
  for (const name of ['key', 'api_key', 'access_token', 'partner_key', 'x-service-partner-key']) {
    const query = `partner=demo&${name}=${text}`
    const alone = await ask(service, {}, query)
    expectProblem(t, alone, 'key_missing', `${name} alone`)
    t.equal(challengeOf(alone), plain)
    expectInvalid(t, await ask(service, { 'x-service-partner-key': text }, query), [name], name)
  }
}

async function partner(t: Tester, service: Service): Promise<void> {
  const headers = withKey(service.world.keys['demo full'])
  for (const query of ['', 'partner=', 'partner', 'limit=1', '&&']) {
    expectProblem(t, await ask(service, headers, query), 'partner_missing', `?${query}`)
  }
  for (const partner of ['', null, 7, ['demo'], undefined]) {
    const body = JSON.stringify({ partner })
    expectProblem(t, await post(service, body), 'partner_missing', body)
  }
  const slugs = 'acme hush unknown Demo demo+ %20demo DEMO * demo%00 %F0%9F%98%80'.split(' ')
  const answers = new Set<string>()
  for (const slug of [...slugs, 'a'.repeat(500)]) {
    const heard = await ask(service, headers, `partner=${slug}`)
    expectProblem(t, heard, 'partner_mismatch', slug.slice(0, 20))
    t.equal(challengeOf(heard), undefined, 'no challenge: the key is good')
    answers.add(JSON.stringify(comparable(heard)))
  }
  t.equal(answers.size, 1, 'another partner and an unknown one get the same bytes')
  const [taken, free] = [
    await post(service, '{"partner":"acme"}'),
    await post(service, '{"partner":"unknown"}'),
  ]
  expectProblem(t, taken, 'partner_mismatch', 'in a body')
  t.strictSame(comparable(free), comparable(taken), 'and with the same bytes')
  expectInvalid(t, await ask(service, headers, 'partner=demo&partner=demo'), ['partner'], 'twice the same')
  expectInvalid(t, await ask(service, headers, 'partner=demo&partner=acme'), ['partner'], 'two')
  const key = service.world.keys['hush full']
  const suspended = await ask(service, withKey(key), 'partner=hush')
  expectProblem(t, suspended, 'partner_suspended', 'a suspended partner')
  t.equal(challengeOf(suspended), undefined)
  expectProblem(t, await post(service, '{"partner":"hush"}', { key }), 'partner_suspended', 'verify-key')
}

async function scopes(t: Tester, service: Service): Promise<void> {
  const { world, root } = service
  const modules = Object.keys(SCOPES) as (keyof typeof SCOPES)[]
  await world.partners.create({ slug: 'idle', name: 'Idle', modules })
  const idle = await world.issue({ partner: 'idle' })
  await world.partners.deactivate('idle', modules)
  for (const { method, path, module } of SCOPED_ENDPOINTS) {
    const instance = root + path.replace('{slug}', 'universite-de-valmorne')
    const required = SCOPES[module]
    const ask = (partner: string, key: { readonly text: string }): Promise<Heard> =>
      method === 'POST'
        ? post(service, JSON.stringify({ partner }), { target: instance, key })
        : get(service, `${instance.slice(root.length)}?partner=${partner}`, { key })

    const scopeless = await ask('demo', world.keys['demo powerless'])
    const member = { instance, members: { required_scope: required } }
    expectProblem(t, scopeless, 'scope_missing', `${path} without ${required}`, member)
    t.equal(challengeOf(scopeless), `${plain}, error="insufficient_scope", scope="${required}"`)

    const inactive = await ask('idle', idle)
    const needed = { instance, members: { required_module: module } }
    expectProblem(t, inactive, 'module_inactive', `${path} without ${module}`, needed)
    t.equal(challengeOf(inactive), undefined, 'no other key would do')
  }
}

function shown(value: string | readonly string[]): string {
  const hide = (text: string): string => text.replace(/spk_\w+/i, 'KEY').slice(0, 30)
  return typeof value === 'string' ? hide(value) : `[${value.map(hide)}]`
}
