/** Sections 4 and 10, signups: stored records, idempotency keys, and failing stores. */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { canonicalJson, readIdempotencyKey } from '../../core/signups/idempotency.ts'
import { deployTo } from '../contract/http/deploy.ts'
import { forge } from '../contract/http/forgery.ts'
import { onNode } from '../contract/http/mounts.ts'
import { post } from '../contract/http/service.ts'
import { memory } from '../contract/http/stores.ts'
import {
  invalidFields,
  serveStore,
  type ServiceRequestOptions,
  withService,
} from '../support/partner-service.ts'

const path = '/partner/signups'
const required = { partner: 'demo', email: 'ada@example.com', name: 'Ada Lovelace' }
const idempotent = (key: string): ServiceRequestOptions => ({ headers: { 'idempotency-key': key } })

t.test('a signup is stored as sent', (t) =>
  withService(memory, async ({ store, post, world }) => {
    const message = 'Zeile 1\nZeile 2 😀'
    const texts = {
      company: 'Analytical Engines',
      plan: 'starter',
      profile: 'bare',
      locale: 'en-GB',
      message,
    }
    const metadata = { 'utm source': 'x', 'empty': '' }
    const consent = { consent_at: '2026-02-28T23:59:59.5+01:00' }
    const absent = { company: undefined, plan: undefined, profile: undefined, locale: undefined }
    const nulls = Object.fromEntries(
      [...Object.keys(texts), 'country', 'consent_at', 'metadata'].map((name) => [name, null]),
    )
    const full = await post(path, { ...required, ...texts, ...consent, country: 'gB', metadata })
    const bare = await post(path, { ...required, ...nulls }, { key: 'demo test' })
    t.strictSame([full.status, bare.status], [201, 201])
    t.equal(full.headers.get('cache-control'), 'no-store')
    const common = { partner: 'demo', email: 'ada@example.com', name: 'Ada Lovelace' }
    const stored = await store.listSignups('demo', undefined, 10)
    t.strictSame(stored.find(({ id }) => id === full.json.data.id), {
      ...common,
      ...texts,
      id: full.json.data.id,
      keyId: world.keys['demo full'].id,
      environment: 'live',
      createdAt: Date.parse(full.json.data.created_at),
      country: 'GB',
      consentAt: Date.UTC(2026, 1, 28, 22, 59, 59, 500),
      metadata,
    })
    t.strictSame(stored.find(({ id }) => id === bare.json.data.id), {
      ...common,
      ...absent,
      id: bare.json.data.id,
      keyId: world.keys['demo test'].id,
      environment: 'test',
      createdAt: Date.parse(bare.json.data.created_at),
      country: undefined,
      message: undefined,
      consentAt: undefined,
      metadata: {},
    })
  }))

t.test('an idempotency key is checked after the body and is valid for 24 hours', (t) =>
  withService(memory, async ({ post }) => {
    const real = Date.now
    const start = real()
    const at = async (ms: number, body: object = required) => {
      Date.now = () => start + ms
      const response = await post(path, body, idempotent('day'))
      return [response.status, response.headers.has('idempotent-replayed')]
    }
    try {
      const [minute, day] = [60_000, 86_400_000]
      t.strictSame(await at(0), [201, false])
      t.strictSame(invalidFields(await post(path, { ...required, email: 'x' }, idempotent('day'))), [
        '/email',
      ])
      t.strictSame(await at(day - minute), [201, true])
      t.strictSame(await at(day + minute), [201, false])
      t.strictSame(await at(2 * day), [201, true], 'a new claim holds for 24 hours again')
    } finally {
      Date.now = real
    }
  }))

t.test('an idempotency key is bare or quoted', (t) => {
  const uuid = '8e03978e-40d5-43dd-bc93-6894a57f9324'
  const marks = `!#$%&'()*+,-./:;<=>?@[]^_\`{|}~`
  const long = 'x'.repeat(255)
  const accepted: readonly (readonly [value: string, key: string])[] = [
    ...[uuid, marks, long, 'a\\b', 'a"b"c', 'Case'].map((key) => [key, key] as const),
    ...[uuid, marks, long].map((key) => [`"${key}"`, key] as const),
    ['"a\\\\b"', 'a\\b'],
    ['"a\\"b\\"c"', 'a"b"c'],
    ['"x, y"', 'x, y'],
  ]
  for (const [value, key] of accepted) t.strictSame(readIdempotencyKey(value), { key }, value)
  const secret = forge('spk_live', 'Nobody000000')
  const refused = [
    '',
    '""',
    '"',
    '"a',
    'a"',
    'a"b',
    '"a"b',
    '"a\\"',
    '"a\\b"',
    '"a" "b"',
    `${long}x`,
    `"${long}x"`,
  ]
  refused.push('é', '"é"', 'a\tb', 'a, b', 'a, a', '"a", "a"', secret, `"${secret}"`)
  for (const value of refused) t.match(readIdempotencyKey(value), { detail: /^must / }, JSON.stringify(value))
  t.strictSame(
    readIdempotencyKey('a, b', false),
    { key: 'a, b' },
    'a comma in one field, if the runtime distinguishes fields',
  )
  t.match(readIdempotencyKey('"a"', true), { detail: /repeated/ })
  t.end()
})

t.test('JSON values have the same canonical text exactly if they are equal', (t) => {
  const reversed = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(reversed)
    return Object.fromEntries(
      Object.entries(value).reverse().map(([name, member]) => [name, reversed(member)]),
    )
  }
  const value = fc.jsonValue({ maxDepth: 3 })
  fc.assert(fc.property(value, (value) => {
    const text = canonicalJson(value)
    // Text that parses back to the value cannot be that of another.
    return text === canonicalJson(reversed(value)) &&
      isDeepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)))
  }))
  t.not(canonicalJson({ company: null }), canonicalJson({}))
  t.end()
})

t.test('a signup in progress causes 409', async (t) => {
  const store = createMemoryStore()
  const service = await serveStore({ ...store, createSignup: () => ({ outcome: 'conflict' }) })
  const response = await service.post(path, required, idempotent('x'))
  t.strictSame([response.status, response.json.code], [409, 'idempotency_conflict'])
  await service.api.close()
})

t.test('a failing store causes 503 without its error', async (t) => {
  const store = createMemoryStore()
  const createSignup = () => {
    throw new Error('the disk is full of ada@example.com')
  }
  const service = await serveStore({ ...store, createSignup })
  const response = await service.post(path, required)
  t.strictSame([response.status, response.json.code], [503, 'store_unavailable'])
  t.match(response.headers.get('retry-after'), /^\d+$/)
  t.notMatch(response.text, /disk|ada@/)
  await service.api.close()
})

t.test('over a socket, a repeated Idempotency-Key is refused, and a comma in one is not', (t) =>
  deployTo(memory, onNode)({}, async (service) => {
    const send = (key: string | readonly string[]) =>
      post(service, JSON.stringify(required), {
        target: `/service${path}`,
        headers: { 'idempotency-key': key },
      })
    t.equal((await send('one, field')).status, 201)
    t.equal((await send('"one, field"')).headers.get('idempotent-replayed'), 'true')
    for (const twice of [['a', 'a'], ['"a"', '"a"'], ['"a', 'b"'], ['', 'a'], ['a', '']]) {
      t.strictSame(invalidFields(await send(twice)), ['Idempotency-Key'], JSON.stringify(twice))
    }
  }))
