/** The client against a service on Node. */
import t from 'tap'
import {
  createCachingFetch,
  createPartnerClient,
  type PartnerClientOptions,
  PartnerProblem,
} from '../../adapters/client/mod.ts'
import { serve } from '../../adapters/runtimes/node.ts'
import { createPartnerApi } from '../../core/api.ts'
import { internalsOf } from '../../core/internals.ts'
import { createDocument } from '../../core/openapi/document.ts'
import { ROUTES } from '../../core/routes/router.ts'
import { resolveSettings } from '../../core/settings.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { fillWorld } from '../support/world.ts'

const store = await openMemoryStore()
const world = await fillWorld(store)
const api = createPartnerApi({ store }, { maxStalenessMs: 0 })
const server = await serve(api, { port: 0 })
t.teardown(() => server.close())

const key = world.keys['demo full'].text
const demo = (more: Partial<PartnerClientOptions> = {}) =>
  createPartnerClient({ url: server.url, key, partner: 'demo', ...more })

await t.test('every endpoint with a key has a method that returns its data', async (t) => {
  const called = new Set<string>()
  const client = demo({
    fetch(request) {
      const path = new URL(request.url).pathname
      called.add(`${request.method} ${path.replace(/(?<=profiles\/)(?!recent).+/, '{slug}')}`)
      return fetch(request)
    },
  })
  const { valid, key: { environment } } = await client.verifyKey()
  t.strictSame([valid, environment], [true, 'live'])
  const { partner, profiles } = await client.widget()
  t.strictSame([partner.slug, profiles.length], ['demo', 6])
  const [newest] = await client.recentProfiles({ limit: 1 })
  t.equal(newest?.slug, profiles[0]?.slug)
  const detail = await client.profile(newest!.slug)
  t.strictSame([detail.name, Array.isArray(detail.tags)], [newest!.name, true])
  t.type((await client.banner()).title, 'string')
  t.ok((await client.countries({ in_use: true, locale: 'de' })).some(({ name }) => name === 'Deutschland'))
  t.ok((await client.industries()).length > 0)
  t.type((await client.plans())[0]?.price.amount_minor, 'number')
  const receipt = await client.signUp({ email: 'jane@example.com', name: 'Jane Doe' })
  t.equal(receipt.status, 'received')
  t.equal((await client.reportSummary()).daily.length, 30)
  const [first] = await Array.fromAsync(client.reportActivity({ limit: 1, type: ['signup.created'] }))
  t.equal(first?.type === 'signup.created' && first.subject.email, 'j***@e***.com')
  t.ok(Array.isArray(await Array.fromAsync(client.problems({ limit: 1 }))))
  await Array.fromAsync(client.profiles({ limit: 100 }))
  await world.partners.update('demo', { selfService: ['rotate', 'revoke'] })
  let stored = ''
  const rotation = await client.rotateKey({
    overlapSeconds: 60,
    store: async (key) => void (stored = await key),
  })
  t.notOk(JSON.stringify(rotation).includes(stored), 'the result has no secret')
  t.strictSame([(await client.verifyKey()).key.id, stored.includes(rotation.id)], [rotation.id, true])
  await t.rejects(client.rotateKey({} as never), TypeError)
  t.strictSame((await client.revokeKey()).id, rotation.id)
  const keyed = internalsOf(api).routes.filter(({ access }) => access === 'key').map(({ method, path }) =>
    `${method} ${path}`
  )
  t.strictSame([...called].sort(), keyed.sort())
  const ids = Object.values((await createDocument(ROUTES, resolveSettings({}))).paths).flatMap((path) =>
    Object.values(path)
  )
    .filter(({ security }) => security.length > 0).map(({ operationId }) => operationId)
  t.strictSame(
    Object.keys(client).sort(),
    [...ids, 'request', 'paginate'].sort(),
    'under the name of its operation',
  )
})

await t.test('a client rotates once at a time, and again after a failure', async (t) => {
  await world.partners.update('demo', { selfService: ['rotate'] })
  const { text: key } = await world.issue({ partner: 'demo' })
  let sent = 0
  const client = demo({ key, fetch: (request) => (sent++, fetch(request)) })
  const failing = client.rotateKey({ store: () => Promise.reject(new Error('disk full')) })
  await t.rejects(client.rotateKey({ store: () => {} }), { message: 'The key is being rotated.' })
  await t.rejects(failing, { message: 'disk full' })
  t.equal(sent, 1)
  t.ok((await client.verifyKey()).key.rotation, 'it keeps the old key')
  let stored = ''
  const { id } = await client.rotateKey({ store: (key) => void (stored = key) })
  t.strictSame([(await client.verifyKey()).key.id, stored.includes(id)], [id, true])
})

await t.test('what is no key of another server is not stored', async (t) => {
  for (const data of [{}, [], { key: '' }]) {
    const client = demo({ fetch: () => Promise.resolve(Response.json({ data }, { status: 201 })) })
    const store = (): void => void t.fail('stored')
    await t.rejects(client.rotateKey({ store }), {
      name: 'ServiceUnreachableError',
      message: 'The response has no key.',
    })
  }
})

/** What a server answers that knows no successor yet, or one that another request has just made. */
function conflict(): Response {
  const problem = { type: '', title: '', status: 409, code: 'rotation_conflict', detail: '', instance: '/' }
  const headers = { 'content-type': 'application/problem+json' }
  return Response.json({ ...problem, request_id: 'req_1' }, { status: 409, headers })
}

await t.test('a rotation that lost against another is not repeated: it would revoke the other key', async (t) => {
  let sent = 0
  const client = demo({ fetch: () => (sent++, Promise.resolve(conflict())) })
  await t.rejects(client.rotateKey({ store: () => {} }), { code: 'rotation_conflict' })
  t.equal(sent, 1)
})

await t.test('after a lost response, a conflict is retried: the successor may be its own', async (t) => {
  await world.partners.update('demo', { selfService: ['rotate'] })
  const { text: key } = await world.issue({ partner: 'demo' })
  const statuses: number[] = []
  const client = demo({
    key,
    async fetch(request) {
      const attempt = statuses.length
      const response = attempt === 1 ? conflict() : await fetch(request)
      statuses.push(response.status)
      if (attempt === 0) throw new TypeError('fetch failed')
      return response
    },
  })
  let stored = ''
  await client.rotateKey({ store: (key) => void (stored = key) })
  t.strictSame(statuses, [201, 409, 201])
  t.ok((await demo({ key: stored }).verifyKey()).valid)
})

await t.test('results and errors have their response, which copies of the data lack', async (t) => {
  const client = demo()
  const plans = await client.plans()
  const { response } = plans
  t.match(response, { status: 200, requestId: /^req_/, replayed: false, retryAfterSeconds: undefined })
  t.equal(response.headers.get('service-version'), '2026-11-20')
  t.match(response.rateLimits, [{ policy: 'key', quota: 600, window_seconds: 60 }])
  t.ok(response.rateLimits[0]!.remaining < 600 && response.rateLimits[0]!.resets_in_seconds <= 60)
  t.notOk(JSON.stringify({ plans, copy: { ...await client.banner() } }).includes('req_'))
  const send = () => client.signUp({ email: 'a@example.com', name: 'A' }, { idempotencyKey: 'response-1' })
  t.notOk((await send()).response.replayed)
  const repeated = (await send()).response
  t.ok(repeated.replayed)
  t.strictSame(repeated.rateLimits.map(({ policy, quota }) => [policy, quota]), [['key', 600], [
    'signup',
    20,
  ]])
  const error = await client.profile('nobody').catch((error) => error)
  t.equal(error.response.requestId, error.problem.request_id)
  const { data, page, response: { requestId } } = await client.profiles({ limit: 2, country: 'DE' })
  t.match([data.length, page.has_more, requestId], [2, true, /^req_/])
  t.match((await client.request('GET /public/plans')).response, { status: 200 })
})

await t.test('a rotation has its response, and no secret', async (t) => {
  await world.partners.update('demo', { selfService: ['rotate'] })
  const { text: key } = await world.issue({ partner: 'demo' })
  const { response } = await demo({ key }).rotateKey({ store: () => {} })
  t.strictSame(response.rateLimits.map(({ policy }) => policy), ['rotate'])
})

await t.test('a caching fetch has unchanged responses confirmed, for the same key only', async (t) => {
  const cache = new Map<string, string>()
  const statuses: number[] = []
  const counting = async (request: Request) => {
    const response = await fetch(request)
    statuses.push(response.status)
    return response
  }
  const client = demo({ fetch: createCachingFetch(cache, counting) })
  const first = await client.plans()
  const second = await client.plans()
  t.strictSame(second, first)
  t.not(second.response.requestId, first.response.requestId)
  const { text: other } = await world.issue({ partner: 'demo' })
  t.strictSame(await demo({ key: other, fetch: createCachingFetch(cache, counting) }).plans(), first)
  await client.signUp({ email: 'cache@example.com', name: 'Cache' })
  t.strictSame(statuses, [200, 304, 200, 201])
  t.equal(cache.size, 2)
  const kept = JSON.stringify([...cache])
  for (const secret of [key, other]) t.notOk(kept.includes(secret.slice(-20)))
  for (const broken of ['broken', '{}', 'false']) {
    for (const name of cache.keys()) cache.set(name, broken)
    t.strictSame(await client.plans(), first)
  }
  const failing = () => Promise.reject(new Error('no cache'))
  t.strictSame(await demo({ fetch: createCachingFetch({ get: failing, set: failing }) }).plans(), first)
})

await t.test('endpoints are called as verify-key and the documents write them', async (t) => {
  const client = demo()
  const { endpoints } = await client.verifyKey()
  const readable = endpoints.filter(({ method, path }) => method === 'GET' && !path.endsWith('/recent'))
  t.ok(readable.length > 5 && readable.some(({ path }) => path.endsWith('/{slug}')))
  const [card] = await client.recentProfiles({ limit: 1 })
  for (const { path } of readable) {
    const { data, page } = await client.request(`GET ${path}`, { params: { slug: card!.slug } })
    t.equal(typeof data, 'object', path)
    t.equal(page !== undefined, /\/(?:profiles|activity)$/.test(path), path)
  }
  t.strictSame((await client.request('GET /public/plans')).data, await client.plans())
  const list = client.paginate<{ readonly slug: string }>('GET /public/profiles', {
    query: { country: ['DE', 'FR'] },
  })
  t.strictSame(await Array.fromAsync(list), await Array.fromAsync(client.profiles({ country: ['DE', 'FR'] })))
  const body = { email: 'request@example.com', name: 'Request' }
  const send = () => client.request('POST /partner/signups', { body, idempotencyKey: 'request-1' })
  t.strictSame(await send(), await send())
  await t.rejects(client.request('GET /orders'), { name: 'PartnerProblem', code: 'route_not_found' })
})

await t.test('a refusal throws its problem without a retry', async (t) => {
  let attempts = 0
  const counting = (request: Request): Promise<Response> => {
    attempts++
    return fetch(request)
  }
  const missing = await demo({ fetch: counting }).profile('nobody/there').catch((error) => error)
  t.ok(missing instanceof PartnerProblem)
  t.match(missing, { code: 'profile_not_found', status: 404, problem: { instance: /nobody%2Fthere/ } })
  const wrong = await demo({ key: key.replace(/.$/, '!'), fetch: counting }).plans().catch((error) => error)
  t.match(wrong, { code: 'key_invalid', status: 401 })
  const form = { email: 'nowhere', name: '' }
  const invalid = await demo({ fetch: counting }).signUp(form).catch((error) => error)
  t.strictSame(
    invalid.problem.errors.map(({ pointer }: { pointer: string }) => pointer).sort(),
    ['/email', '/name'],
  )
  t.match(
    invalid.message,
    /not acceptable\. \/email: must be an e-mail address; \/name: must have .* characters\. \(invalid_body, req_/,
  )
  t.equal(attempts, 3)
  for (const error of [missing, wrong, invalid]) {
    t.notOk(`${error.stack}${JSON.stringify(error)}`.includes(key.slice(-20)), 'no error contains the key')
  }
})

await t.test('a retried signup is stored once', async (t) => {
  let lost = 0
  const client = demo({
    async fetch(request) {
      const response = await fetch(request)
      if (lost++ > 0) return response
      await response.body?.cancel()
      throw new TypeError('fetch failed')
    },
  })
  const { id } = await client.signUp({ email: 'twice@example.com', name: 'Twice' })
  const kept = (await store.listSignups('demo', undefined, 100)).filter(({ email }) =>
    email.startsWith('twice')
  )
  t.strictSame(kept.map((signup) => signup.id), [id])
  t.equal(lost, 2)
  const form = { email: 'own@example.com', name: 'Own' }
  const first = await demo().signUp(form, { idempotencyKey: 'order-1' })
  t.strictSame(await demo().signUp(form, { idempotencyKey: 'order-1' }), first)
  await t.rejects(demo().signUp({ ...form, name: 'Other' }, { idempotencyKey: 'order-1' }), {
    code: 'idempotency_mismatch',
  })
})
