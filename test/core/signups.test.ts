/** Sections 4 and 10, signups: stored records, idempotency keys, and failing stores. */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import type { Store } from '../../core/ports/store.ts'
import type { Signup, SignupDestination } from '../../core/ports/signups.ts'
import type { Webhook } from '../../core/ports/webhooks.ts'
import { canonicalJson, readIdempotencyKey } from '../../core/signups/idempotency.ts'
import { deployTo } from '../contract/http/deploy.ts'
import { forge } from '../contract/http/forgery.ts'
import { inProcess, onNode } from '../contract/http/wires.ts'
import { post } from '../contract/http/service.ts'
import { memory } from '../contract/http/stores.ts'
import { httpContract } from '../contract/http/suites.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import {
  invalidFields,
  serveStore,
  type ServiceRequestOptions,
  withService,
} from '../support/partner-service.ts'
import type { World } from '../support/world.ts'

const path = '/partner/signups'
const required = { partner: 'demo', email: 'ada@example.com', name: 'Ada Lovelace' }
const idempotent = (key: string): ServiceRequestOptions => ({ headers: { 'idempotency-key': key } })

t.test('what takes a right away while a signup waits for what it refers to refuses it', async (t) => {
  const cases = {
    key_revoked: (id: string, { keyRing }: World) => keyRing.revoke(id),
    scope_missing: (id: string, { keyRing }: World) => keyRing.remove(id, ['create:partner-signups']),
    partner_suspended: (_: string, { partners }: World) => partners.suspend('demo'),
  }
  for (const [code, change] of Object.entries(cases)) {
    const store = await openMemoryStore()
    let whileWaiting: () => Promise<unknown> = () => Promise.resolve()
    const findProfile: Store['findProfile'] = async (
      ...asked
    ) => (await whileWaiting(), store.findProfile(...asked))
    const { post, world } = await serveStore({ ...store, findProfile })
    const key = world.keys['demo full']
    whileWaiting = () => change(key.id, world)
    const { json } = await post(path, { ...required, profile: 'bare' }, { key })
    t.equal(json.code, code)
    t.strictSame(await store.listSignups('demo', undefined, 10), [])
  }
})

t.test('an idempotency key is checked after the body and is valid for 24 hours', (t) =>
  withService(memory, async ({ post }) => {
    const real = Date.now
    const monotonic = performance.now
    const start = real()
    const startedAt = performance.now()
    const at = async (ms: number, body: object = required) => {
      // Both, as time passes: a jump of one is not believed at once.
      Date.now = () => start + ms
      performance.now = () => startedAt + ms
      const response = await post(path, body, idempotent('day'))
      return [response.status, response.headers.has('idempotent-replayed')]
    }
    try {
      const minute = 60_000
      const day = 86_400_000
      t.strictSame(await at(0), [201, false])
      t.strictSame(invalidFields(await post(path, { ...required, email: 'x' }, idempotent('day'))), [
        '/email',
      ])
      t.strictSame(await at(day - minute), [201, true])
      t.strictSame(await at(day + minute), [201, false])
      t.strictSame(await at(2 * day), [201, true], 'a new reservation holds for 24 hours again')
    } finally {
      Date.now = real
      performance.now = monotonic
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
  for (const value of [secret, `"${secret}"`]) {
    t.match(readIdempotencyKey(value), { detail: /^must not hold/ })
  }
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
  const store = await openMemoryStore()
  const service = await serveStore({ ...store, createSignup: () => ({ outcome: 'conflict' }) })
  const response = await service.post(path, required, idempotent('x'))
  t.strictSame([response.status, response.json.code], [409, 'idempotency_conflict'])
  await service.api.close()
})

/** An embedder's table of signups. */
function createTable() {
  const rows = new Map<string, Signup>()
  return {
    rows,
    createSignup(signup: Signup): unknown {
      if (!rows.has(signup.id)) rows.set(signup.id, signup)
      return undefined
    },
  }
}

t.test('the contract holds for signups in tables of an embedder', async (t) => {
  const table = createTable()
  const deploy = deployTo(memory, inProcess, { signups: table })
  t.ok(await httpContract(t, deploy, ['signups']) > 5)
  t.ok(table.rows.size > 0)
})

t.test('an embedder gets each signup as it was sent, and the store what is counted', async (t) => {
  const store = await openMemoryStore()
  const table = createTable()
  const signups: SignupDestination = {
    createSignup(signup) {
      table.createSignup(structuredClone(signup))
      // Changes its copy.
      Object.assign(signup, { id: 'own', country: 'XX' })
    },
  }
  const { api, post, request, world } = await serveStore(store, {}, { signups })
  const { email, name } = required
  const texts = {
    company: 'Engines',
    plan: 'starter',
    profile: 'bare',
    locale: 'en-GB',
    message: 'Zeile 1\nZeile 2 😀',
    metadata: { 'utm source': 'x', 'empty': '' },
  }
  const sent = { ...required, ...texts, country: 'gB', consent_at: '2026-02-28T23:59:59.5+01:00' }
  const { json: { data } } = await post(path, sent, idempotent('a'))
  const head = {
    id: data.id,
    partner: 'demo',
    keyId: world.keys['demo full'].id,
    environment: 'live',
    createdAt: Date.parse(data.created_at),
    country: 'GB',
    plan: 'starter',
  } as const
  const consentAt = Date.UTC(2026, 1, 28, 22, 59, 59, 500)
  t.strictSame([...table.rows.values()], [{ ...head, ...texts, email, name, consentAt }])
  const absent = {
    company: undefined,
    profile: undefined,
    locale: undefined,
    message: undefined,
    consentAt: undefined,
    metadata: {},
  }
  t.strictSame(await store.findSignup(data.id), { ...head, ...absent, email: '', name: '' })
  const { json: { data: [activity] } } = await request(
    '/partner/reports/activity?partner=demo&type=signup.created',
  )
  t.match(activity.subject, {
    signup_id: data.id,
    country: 'GB',
    plan: 'starter',
    name: '',
    email: '***@***',
  })
  t.notMatch(JSON.stringify(await store.listSignups(undefined, undefined, 9)), /ada@|Ada|Engines/)
  const nulls = Object.fromEntries(
    [...Object.keys(texts), 'country', 'consent_at'].map((name) => [name, null]),
  )
  const bare = (await post(path, { ...required, ...nulls }, { key: 'demo test' })).json.data
  t.match(table.rows.get(bare.id), {
    ...absent,
    plan: undefined,
    country: undefined,
    environment: 'test',
    keyId: world.keys['demo test'].id,
  })
  await api.close()
})

t.test('a signup that an embedder has not accepted is neither counted nor an event, and can be repeated', async (t) => {
  const plain = await openMemoryStore()
  let failsToCount = false
  const store: typeof plain = {
    ...plain,
    createSignup: (...sent) => failsToCount ? Promise.reject(new Error('away')) : plain.createSignup(...sent),
  }
  const webhook: Webhook = {
    id: 'whk_1',
    url: 'https://example.com',
    events: ['signup.created'],
    partner: undefined,
    state: 'active',
    createdAt: 0,
    secrets: [],
    failingSince: undefined,
  }
  const context = { actor: 'test', at: Date.now() }
  await plain.webhooks.changeWebhook(webhook.id, 'webhook.created', context, () => webhook)
  const table = createTable()
  const failures: Record<string, (signup: Signup) => unknown> = {
    'throws': () => {
      throw new Error('the table is full of ada@example.com')
    },
    'rejects': () => Promise.reject(new Error('the table is full of ada@example.com')),
    'is slow': () => new Promise(() => {}),
    'returns a query that fails': () => ({
      then: (_: unknown, reject: (error: Error) => void) =>
        reject(new Error('the table is full of ada@example.com')),
    }),
    'returns a query that is slow': () => ({ then: () => {} }),
    'stores, then fails': (signup) => {
      table.createSignup(signup)
      throw new Error('lost')
    },
    'stores, and the store fails': (signup) => {
      failsToCount = true
      return table.createSignup(signup)
    },
  }
  let attempt: (signup: Signup) => unknown = table.createSignup
  const service = await serveStore(store, { storeTimeoutMs: 50 }, {
    signups: { createSignup: (signup) => attempt(signup) },
  })
  const counted = async () => {
    const report = await service.request('/partner/reports/summary?partner=demo')
    const events = await plain.webhooks.listDeliveries('whk_1', undefined, undefined, 100)
    t.equal(events.length, report.json.data.signups.total)
    return events.length
  }
  let accepted = 0
  for (const [name, failure] of Object.entries(failures)) {
    const once = idempotent(`"${name}"`)
    attempt = failure
    for (let time = 0; time < 2; time++) {
      const failed = await service.post(path, required, once)
      t.strictSame([failed.status, failed.json.code], [503, 'store_unavailable'], name)
      t.match(failed.headers.get('retry-after'), /^[1-9]\d*$/)
      t.notMatch(failed.text, /full|lost|ada@/)
    }
    t.equal(await counted(), accepted, name)
    failsToCount = false
    attempt = table.createSignup
    t.equal((await service.post(path, { ...required, name: 'Eve' }, once)).status, 422, 'another body')
    const repeated = await Promise.all(Array.from({ length: 5 }, () => service.post(path, required, once)))
    const ids = new Set(repeated.map(({ status, json }) => `${status} ${json.data.id}`))
    t.equal(ids.size, 1, [...ids].join())
    t.equal(await counted(), ++accepted, name)
    t.equal(table.rows.size, accepted)
    t.ok(table.rows.has(repeated[0]!.json.data.id))
  }
  attempt = () => t.fail('a signup that is complete is not stored again')
  t.equal(
    (await service.post(path, required, idempotent('throws'))).headers.get('idempotent-replayed'),
    'true',
  )
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
