/** The client against a service on Node, and against answers that a service gives on bad days. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import {
  createPartnerClient,
  NoAnswer,
  type PartnerClientOptions,
  PartnerProblem,
} from '../adapters/client/mod.ts'
import { serve } from '../adapters/runtimes/node.ts'
import { createMemoryStore } from '../adapters/stores/memory/store.ts'
import { createPartnerApi } from '../core/api.ts'
import { makeWire } from './client/write-wire.ts'
import { fillWorld } from './world.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const store = createMemoryStore()
const world = await fillWorld(store)
const api = createPartnerApi({ store }, { maxStalenessMs: 0 })
const server = await serve(api, { port: 0 })
t.teardown(() => server.drain())

const key = world.keys['demo full'].text
const demo = (more: Partial<PartnerClientOptions> = {}) =>
  createPartnerClient({ url: server.url, key, partner: 'demo', ...more })

const problem = (code: string, status: number, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify({ code, status, detail: 'So it is.', request_id: 'req_1' }), {
    status,
    headers,
  })
const good = (): Response => new Response(JSON.stringify({ data: [] }))

async function gather<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const gathered: T[] = []
  for await (const row of rows) gathered.push(row)
  return gathered
}

/** A client whose service answers as it is told, and what that was asked. */
function scripted(answers: (() => Response)[], more: Partial<PartnerClientOptions> = {}) {
  const asked: Request[] = []
  const client = demo({
    ...more,
    fetch(request) {
      asked.push(request)
      const answer = answers.shift()
      return answer === undefined ? Promise.reject(new TypeError('fetch failed')) : Promise.resolve(answer())
    },
  })
  return { asked, client }
}

await t.test('every endpoint with a key has its call, and answers it', async (t) => {
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
  t.equal((await client.summary()).daily.length, 30)
  const [first] = await gather(client.activity({ limit: 1, type: ['signup.created'] }))
  t.equal(first?.type === 'signup.created' && first.subject.email, 'j***@e***.com')
  await gather(client.profiles({ limit: 100 }))
  const keyed = api.routes.filter(({ access }) => access === 'key').map(({ method, path }) =>
    `${method} ${path}`
  )
  t.strictSame([...called].sort(), keyed.sort())
})

await t.test('a list is read to its end, whatever its pages are', async (t) => {
  const whole = (await gather(demo().profiles({ limit: 100 }))).map(({ slug }) => slug)
  const pages = await gather(demo().profiles({ limit: 3, sort: 'name' }).pages())
  t.strictSame(pages.flatMap(({ data }) => data.map(({ slug }) => slug)), whole)
  t.ok(pages.length > 3 && pages.every(({ data }) => data.length <= 3))
  const countries = ['DE', 'FR']
  const some = await gather(demo().profiles({ country: countries, limit: 2 }))
  t.ok(some.length > 0 && some.every(({ country }) => countries.includes(country.code)))
})

await t.test('a list whose pages are not turned ends', async (t) => {
  for (const next_cursor of ['same', null]) {
    const page = (): Response =>
      new Response(JSON.stringify({ data: [{}], page: { limit: 1, has_more: true, next_cursor } }))
    const { asked, client } = scripted([page, page, page])
    await t.rejects(gather(client.profiles()), { name: 'NoAnswer' })
    t.equal(asked.length, next_cursor === null ? 1 : 2)
  }
  await t.rejects(
    gather(scripted([good]).client.profiles()),
    { name: 'NoAnswer' },
    'nor does one without pages',
  )
})

await t.test('what is refused is thrown as the problem that it is, once', async (t) => {
  let asked = 0
  const counting = (request: Request): Promise<Response> => {
    asked++
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
  t.equal(asked, 3)
  for (const error of [missing, wrong, invalid]) {
    t.notOk(`${error.stack}${JSON.stringify(error)}`.includes(key.slice(-20)), 'the key stands in no error')
  }
})

await t.test('what may pass is tried again, as late as it is asked to be', async (t) => {
  const { asked, client } = scripted([
    () => problem('rate_limited', 429, { 'retry-after': '1' }),
    () => problem('store_unavailable', 503, { 'retry-after': '0' }),
    good,
  ])
  const began = performance.now()
  t.strictSame(await client.plans(), [])
  t.ok(performance.now() - began >= 990)
  t.equal(asked.length, 3)

  const patient = scripted([() => problem('rate_limited', 429, { 'retry-after': '61' }), good])
  await t.rejects(
    patient.client.plans(),
    { code: 'rate_limited', retryAfterSeconds: 61 },
    'not for that long',
  )
  t.equal(patient.asked.length, 1)

  const never = scripted([() => problem('store_unavailable', 503), good], { retries: 0 })
  await t.rejects(never.client.plans(), { code: 'store_unavailable' })

  const later = new Date(Date.now() + 90_000).toUTCString()
  for (const said of ['61', later]) {
    const gateway = scripted([
      () => new Response('<h1>Later</h1>', { status: 503, headers: { 'retry-after': said } }),
      good,
    ])
    await t.rejects(gateway.client.plans(), { name: 'NoAnswer', status: 503 }, `a gateway says ${said}`)
    t.equal(gateway.asked.length, 1)
  }
  const past = scripted([
    () => problem('store_unavailable', 503, { 'retry-after': new Date(0).toUTCString() }),
    good,
  ])
  t.strictSame(await past.client.plans(), [])

  const silent = scripted([], { retries: 1 })
  await t.rejects(silent.client.plans(), { name: 'NoAnswer', status: undefined })
  t.equal(silent.asked.length, 2)
})

await t.test('pauses double, up to half a minute', async (t) => {
  const { setTimeout } = globalThis
  t.teardown(() => Object.assign(globalThis, { setTimeout }))
  const pauses: number[] = []
  Object.assign(globalThis, {
    setTimeout(act: () => void, ms: number) {
      pauses.push(ms)
      return setTimeout(act, 0)
    },
  })
  await t.rejects(scripted([], { retries: 40 }).client.plans(), { name: 'NoAnswer' })
  t.equal(pauses.length, 40)
  for (const [attempt, ms] of pauses.entries()) {
    const whole = Math.min(250 * 2 ** attempt, 30_000)
    t.ok(whole / 2 <= ms && ms < whole * 1.5, `${ms} ms after attempt ${attempt + 1}`)
  }
})

await t.test('an answer that breaks off is none', async (t) => {
  const broken = (): Response =>
    new Response(
      new ReadableStream({
        start(body) {
          body.enqueue(new TextEncoder().encode('{"data":'))
          body.error(new TypeError('terminated'))
        },
      }),
    )
  const { asked, client } = scripted([broken, good])
  t.strictSame(await client.plans(), [])
  t.equal(asked.length, 2)
  await t.rejects(scripted([broken], { retries: 0 }).client.plans(), { name: 'NoAnswer', status: undefined })
})

await t.test('a signup that is sent again is one signup', async (t) => {
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

await t.test('the key goes nowhere else, and nobody else is believed', async (t) => {
  const moved = scripted([
    () => new Response(null, { status: 302, headers: { location: 'https://other.example/' } }),
  ])
  await t.rejects(moved.client.plans(), { name: 'NoAnswer', status: 302 })
  t.strictSame([moved.asked.length, moved.asked[0]?.redirect], [1, 'manual'])
  t.notOk(moved.asked[0]?.url.includes(key))
  for (
    const foreign of [{ code: 'NOT_FOUND', detail: 'No such page.' }, { code: 'x', detail: 'y', status: 503 }]
  ) {
    const other = scripted([() => new Response(JSON.stringify(foreign), { status: 404 }), good])
    await t.rejects(other.client.plans(), { name: 'NoAnswer', status: 404 }, 'problems of others')
    t.equal(other.asked.length, 1)
  }
  const page = scripted([() => new Response('<h1>Welcome</h1>')])
  await t.rejects(page.client.plans(), { name: 'NoAnswer', status: 200 })
  t.ok(
    await page.client.plans().catch((error) => error instanceof NoAnswer && error.cause instanceof TypeError),
  )
})

await t.test('a call can be given up, also while it waits', async (t) => {
  const { asked, client } = scripted([() => problem('rate_limited', 429, { 'retry-after': '30' }), good])
  const giveUp = new AbortController()
  const call = client.plans({ signal: giveUp.signal })
  setTimeout(() => giveUp.abort(new Error('enough')), 20)
  await t.rejects(call, { message: 'enough' })
  t.equal(asked.length, 1)
  await t.rejects(demo().plans({ signal: AbortSignal.abort(new Error('before')) }), { message: 'before' })
  const slow = demo({
    timeoutMs: 20,
    retries: 0,
    fetch: (request) => fetch(request.url, { signal: request.signal }),
  })
  await t.rejects(slow.profile('x'), { code: 'key_missing' }, 'a time-out is not a refusal')
})

t.test('it is made for servers only', (t) => {
  const navigator = Object.getOwnPropertyDescriptor(globalThis, 'navigator')!
  t.teardown(() => Object.defineProperty(globalThis, 'navigator', navigator))
  Object.defineProperty(globalThis, 'navigator', {
    configurable: true,
    value: { userAgent: 'Mozilla/5.0 (X11; Linux x86_64)' },
  })
  t.throws(() => demo(), /secret/)
  Object.defineProperty(globalThis, 'navigator', { configurable: true, value: undefined })
  t.doesNotThrow(() => demo(), 'a runtime without a navigator is no browser')
  t.end()
})

t.test('what can never work is refused when the client is made', (t) => {
  for (const url of ['nowhere', 'localhost:8787', 'file:///etc', '']) {
    t.throws(() => demo({ url }), TypeError, url)
  }
  const notSet = undefined as unknown as string
  for (const wrong of [notSet, '', ' ', `${key}\n${key}`, `${key}…`]) {
    try {
      demo({ key: wrong })
      t.fail('a key that is none')
    } catch (error) {
      t.match(error, { name: 'TypeError', message: /^key must be / })
      t.notOk(String((error as Error).stack).includes(key.slice(-20)), 'nor is it said what it was')
    }
  }
  for (const wrong of [notSet, '', key]) {
    try {
      demo({ partner: wrong })
      t.fail('a partner that is none')
    } catch (error) {
      t.match(error, { name: 'TypeError', message: /^partner must be / })
      t.notOk(String((error as Error).stack).includes(key.slice(-20)), 'the two may have changed places')
    }
  }
  for (
    const [name, values] of Object.entries({
      timeoutMs: [0, -1, NaN, 2 ** 31],
      retries: [-1, NaN, 1.5, Infinity],
      maxRetryAfterSeconds: [-1, NaN, 2_147_484],
    })
  ) {
    for (const value of values) t.throws(() => demo({ [name]: value }), { name: 'RangeError', message: name })
  }
  t.end()
})

t.test('a key is taken as files have it', async (t) => {
  const lines = [`${key}\n`, `\ufeff${key}\r\n`, ` ${key}\f`]
  for (const read of [...lines, Buffer.from(`${key}\n`) as unknown as string]) {
    const { asked, client } = scripted([good], { key: read })
    t.strictSame(await client.plans(), [])
    t.equal(asked[0]!.headers.get('x-service-partner-key'), key)
  }
})

t.test('a path of the deployment is kept, and its name counts', async (t) => {
  const urls: string[] = []
  for (const url of ['https://api.example/below/it/', 'https://api.example/below/it?x=1#y']) {
    const { asked, client } = scripted([good], { url, serviceName: 'acme' })
    await client.plans()
    urls.push(asked[0]!.url)
    t.equal(asked[0]!.headers.get('x-acme-partner-key'), key)
  }
  t.strictSame(urls, Array(2).fill('https://api.example/below/it/acme/public/plans?partner=demo'))
})

t.test('its types are those of the route table', (t) => {
  for (const [file, text] of Object.entries(makeWire())) {
    t.equal(readFileSync(root + file, 'utf8'), text, `${file} is what node test/client/write-wire.ts writes`)
  }
  t.end()
})
