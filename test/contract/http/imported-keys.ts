/** Keys that another system made, and whose digests were imported (section 6). */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import { comparable, expectProblem } from './expect.ts'
import { FENCE } from '../../support/world.ts'
import { get, post, type Service, type Suite, type TestContext, until } from './service.ts'

/** Milliseconds, as in the suite of administration, which shares its service. */
const bound = 200

export const importedKeys: readonly Suite[] = [{
  tests: {
    'keys of three other systems work once their digests are imported': threeSystems,
    'other text is refused like a malformed key': garbage,
    'an imported key is administered like any other': administered,
  },
}, {
  settings: { maxStalenessMs: bound },
  tests: { 'an imported key works within the bound': worksWithinBound },
}]

/** A new key of another system. The start of the last one begins with the start of the one before. */
const makers: Readonly<Record<string, () => { text: string; line: object }>> = {
  'SHA-256 of the whole key, hexadecimal'() {
    const text = randomBytes(20).toString('hex')
    return { text, line: { algorithm: 'sha256', digest: createHash('sha256').update(text).digest('hex') } }
  },
  'SHA-256 of what follows a prefix, base64'() {
    const secret = randomBytes(24).toString('base64')
    const line = {
      algorithm: 'sha256',
      prefix: 'sk_',
      digest: createHash('sha256').update(secret).digest('base64'),
    }
    return { text: `sk_${secret}`, line }
  },
  // As long as a key of this service.
  'HMAC-SHA-256 of what follows a prefix, base64url'() {
    const secret = randomBytes(32).toString('base64url').padEnd(52, '=')
    const digest = createHmac('sha256', hmacSecret).update(secret).digest('base64url')
    const line = { algorithm: 'hmac-sha256', prefix: 'sk_live_', digest, hint: secret.slice(-4) }
    return { text: `sk_live_${secret}`, line }
  },
}

const hmacSecret = randomBytes(32)

async function importKey(service: Service, kind: string, more: object = {}) {
  const { text, line } = makers[kind]!()
  const row = { partner: 'demo', name: kind, ...line, ...more }
  const outcome = await service.world.importKeys([row], { secret: hmacSecret })
  return { text, id: outcome.lines[0]!.key.id }
}

const kinds = Object.keys(makers)

async function threeSystems(t: TestContext, service: Service): Promise<void> {
  for (const kind of kinds) {
    const { text, id } = await importKey(service, kind)
    t.equal((await get(service, '/public/plans?partner=demo', { key: { text } })).status, 200, kind)
    const bearer = { 'x-service-partner-key': '', authorization: `Bearer ${text}` }
    t.equal(
      (await get(service, '/public/plans?partner=demo', { headers: bearer })).status,
      200,
      'as a bearer token',
    )
    const { json } = await post(service, '{"partner":"demo"}', { key: { text } })
    t.equal(json.data.key.id, id)
    t.equal(json.data.key.hint, kind === kinds[2] ? `…${text.slice(-4)}` : '…')
    t.equal(json.data.scopes.length, 8, 'it has the scopes of all active modules')
    expectProblem(
      t,
      await get(service, '/public/plans?partner=acme', { key: { text } }),
      'partner_mismatch',
      'of another partner',
    )
  }
}

async function garbage(t: TestContext, service: Service): Promise<void> {
  const { text } = await importKey(service, kinds[1]!)
  const malformed = await get(service, '/public/plans?partner=demo', { key: { text: 'nonsense' } })
  const forms = {
    'unknown': randomBytes(20).toString('hex'),
    'unknown with a known prefix': `sk_live_${randomBytes(20).toString('hex')}`,
    'cut short': text.slice(0, -1),
    'without its prefix': text.slice(3),
    'with another prefix': `sk_live_${text.slice(3)}`,
    'its digest': createHash('sha256').update(text.slice(3)).digest('hex'),
    'too short': 'sk_12345',
    'too long': `sk_${'a'.repeat(510)}`,
  }
  for (const [what, wrong] of Object.entries(forms)) {
    for (const time of ['once', 'again']) {
      const response = await get(service, '/public/plans?partner=demo', { key: { text: wrong } })
      expectProblem(t, response, 'key_invalid', `${what}, ${time}`)
      t.strictSame(comparable(response), comparable(malformed), what)
    }
  }
}

async function administered(t: TestContext, service: Service): Promise<void> {
  const { keyRing } = service.world
  const { text, id } = await importKey(service, kinds[0]!, {
    scopes: ['read:plans', 'read:profiles'],
    allow: [FENCE.range, '127.0.0.0/8', '::1'],
    limits: [{ policy: 'key', quota: 1000, window_seconds: 60 }],
    expires_at: '2098-01-01T00:00:00Z',
    created_at: '2020-01-01T00:00:00Z',
    environment: 'test',
  })
  const request = () => get(service, '/public/plans?partner=demo', { key: { text } })
  const inform = () => post(service, '{"partner":"demo"}', { key: { text } })
  const steps: readonly [what: string, change: () => Promise<unknown>, code: string | 200][] = [
    ['imported', () => Promise.resolve(), 200],
    ['a scope less', () => keyRing.remove(id, ['read:plans']), 'scope_missing'],
    ['a scope more', () => keyRing.grant(id, ['read:plans']), 200],
    ['disabled', () => keyRing.disable(id), 'key_disabled'],
    ['enabled', () => keyRing.enable(id), 200],
    ['elsewhere', () => keyRing.update(id, { allow: [FENCE.range] }), 'address_not_allowed'],
    ['anywhere', () => keyRing.update(id, { allow: [] }), 200],
  ]
  for (const [what, change, code] of steps) {
    await change()
    const { status, json } = await request()
    t.equal(status === 200 ? status : json.code, code, what)
  }
  const { data: { key, limits } } = (await inform()).json
  t.equal(key.environment, 'test')
  t.equal(key.created_at, '2020-01-01T00:00:00.000Z')
  t.equal(limits.find(({ policy }: { policy: string }) => policy === 'key').quota, 1000)
  const successor = await keyRing.rotate(id)
  t.ok(successor.text.startsWith('spk_test_'), 'its successor is a key of this service')
  t.equal((await get(service, '/public/plans?partner=demo', { key: successor })).status, 200)
  t.equal((await inform()).json.data.key.rotation.successor_id, successor.key.id)
  await keyRing.revoke(id)
  const { response } = await until(request, ({ status }) => status !== 200)
  expectProblem(t, response, 'key_revoked', 'revoked')
}

async function worksWithinBound(t: TestContext, service: Service): Promise<void> {
  const { text, line } = makers[kinds[1]!]!()
  const request = () => get(service, '/public/plans?partner=demo', { key: { text } })
  expectProblem(t, await request(), 'key_invalid', 'before the import')
  await service.world.importKeys([{ partner: 'demo', name: 'Bound', ...line }])
  const began = performance.now()
  const { lastBefore } = await until(request, ({ status }) => status === 200)
  t.ok(lastBefore <= began + bound, 'although it was refused before')
}
