/** A service and its store on a clock of the host's, in its tests (contract, section 12). */
import { createPartnerClient, PartnerProblem } from '../../adapters/client/mod.ts'
import t from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createClaim } from '../../core/admin/claims.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { createPartnerApi } from '../../core/api.ts'
import { importContent } from '../../core/content/lines.ts'
import type { LogEvent } from '../../core/log.ts'
import { MODULE_NAMES } from '../../core/model.ts'
import type { Webhook } from '../../core/ports/webhooks.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { until } from '../postgres/until.ts'
import { newFile } from '../support/cli-program.ts'

const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 86_400_000
const start = Date.UTC(2031, 4, 6)

/** A store and a service on a clock that the test sets. */
async function openWorld(options: PartnerApiOptions = {}, file = ':memory:') {
  const time = { now: start }
  const clock = () => time.now
  const store = await openSqliteStore(file, { clock })
  const operator = { actor: 'test' }
  const partners = createPartnerAdministration(store, operator)
  const keys = createKeyAdministration(store, operator)
  await partners.create({ slug: 'acme', name: 'Acme', modules: MODULE_NAMES, selfService: ['rotate'] })
  const api = createPartnerApi({ store }, { clock, ...options })
  /** What a client with this key gets: `ok`, or the code of a problem. */
  const codeOf = async (key: string) => {
    const client = createPartnerClient({
      url: 'http://a.example',
      key,
      partner: 'acme',
      retries: 0,
      fetch: api.fetch,
    })
    try {
      await client.plans()
      return 'ok'
    } catch (error) {
      if (error instanceof PartnerProblem) return error.code
      throw error
    }
  }
  const issue = (more: { readonly expiresAt?: number } = {}) =>
    keys.issue({ partner: 'acme', name: 'Plugin', environment: 'live', ...more })
  return { time, clock, store, api, operator, partners, keys, issue, codeOf }
}

t.test('keys are issued, expire, rotate and are listed by it', async (t) => {
  const { time, issue, codeOf, keys, store } = await openWorld()
  const { key, text } = await issue({ expiresAt: start + 90 * DAY })
  t.equal(key.createdAt, start)
  time.now = start + 90 * DAY - 1
  t.equal(await codeOf(text), 'ok')
  time.now++
  t.equal(await codeOf(text), 'key_expired')
  t.strictSame((await store.listKeys({ states: ['active'] }, undefined, 9)).length, 0)
  time.now = start
  t.equal(await codeOf(text), 'ok', 'and back')
  t.strictSame((await store.listKeys({ states: ['active'] }, undefined, 9)).length, 1)
  const rotated = await keys.rotate(key.id, { overlapMs: HOUR })
  t.equal(await codeOf(text), 'ok')
  time.now += HOUR
  t.strictSame([await codeOf(text), await codeOf(rotated.text)], ['key_expired', 'ok'])
})

for (const shareLimits of [false, true]) {
  t.test(`windows follow it, ${shareLimits ? 'shared' : 'counted here'}`, async (t) => {
    const file = shareLimits ? newFile() : ':memory:'
    const limits = { key: { quota: 2, windowSeconds: 60 }, authfail: { quota: 2, windowSeconds: 600 } }
    const time = { now: start }
    const clock = () => time.now
    const store = await openSqliteStore(file, { clock, shareLimits })
    const world = await createPartnerAdministration(store, { actor: 'test' })
      .create({ slug: 'acme', name: 'Acme', modules: MODULE_NAMES })
    t.equal(world.slug, 'acme')
    const keys = createKeyAdministration(store, { actor: 'test' })
    const { text } = await keys.issue({ partner: 'acme', name: 'Plugin', environment: 'live' })
    const api = createPartnerApi({ store }, { clock, limits })
    const send = async (key: string) => {
      const request = new Request('http://a.example/service/public/plans?partner=acme', {
        headers: { 'X-Service-Partner-Key': key },
      })
      const response = await api.fetch(request, { remoteAddr: { hostname: '192.0.2.1' } })
      return `${response.status} ${response.headers.get('ratelimit')?.replace('"key";', '') ?? ''}`
    }
    const sendAll = async (count: number) => {
      const seen: string[] = []
      while (seen.length < count) seen.push(await send(text))
      return seen
    }
    t.strictSame(await sendAll(3), ['200 r=1;t=60', '200 r=0;t=60', '429 r=0;t=60'])
    time.now += 59_000
    t.equal(await send(text), '429 r=0;t=1')
    time.now += 1_000
    t.strictSame(await sendAll(3), ['200 r=1;t=60', '200 r=0;t=60', '429 r=0;t=60'])
    time.now -= 10 * MINUTE
    t.equal(await send(text), '429 r=0;t=60', 'a window of the future is open from now on')
    time.now += MINUTE
    t.equal(await send(text), '200 r=1;t=60')
    const wrong = text.replace(/.$/, (last) => last === '0' ? '1' : '0')
    for (const status of ['401 ', '401 ', '429 ']) t.equal(await send(wrong), status)
    time.now += 10 * MINUTE
    t.equal(await send(wrong), '401 ')
    await api.close()
    await store.close()
  })
}

t.test('content falls due, months begin, and claims end by it', async (t) => {
  const { time, api, store, issue, operator, partners } = await openWorld()
  const { text } = await issue()
  const get = async (path: string) => {
    const request = new Request(`http://a.example/service${path}`, {
      headers: { 'X-Service-Partner-Key': text },
    })
    const response = await api.fetch(request)
    return { status: response.status, ...await response.json() }
  }
  await importContent(store, 'industries', ['{"slug":"travel","name":"Travel"}'], { ...operator, now: start })
  const profile = {
    slug: 'old-mill',
    name: 'Old Mill',
    headline: 'Beds',
    country: 'DE',
    industry: 'travel',
    published_at: new Date(start + DAY).toISOString(),
  }
  await importContent(store, 'profiles', [JSON.stringify(profile)], { ...operator, now: start })
  const list = async () => (await get('/public/profiles?partner=acme')).data.length
  t.equal(await list(), 0)
  time.now += DAY
  t.equal(await list(), 1)

  await partners.update('acme', { limits: { set: { month: { quota: 1 } } } })
  t.equal((await get('/public/plans?partner=acme')).status, 200)
  t.equal((await get('/public/plans?partner=acme')).status, 429)
  time.now = Date.UTC(2031, 5, 1)
  t.equal((await get('/public/plans?partner=acme')).status, 200)
  t.equal((await get('/public/plans?partner=acme')).status, 429)

  const { token } = await createClaim(store, operator, {
    partner: 'acme',
    name: 'Link',
    environment: 'live',
  }, HOUR)
  const open = async () => (await api.fetch(new Request(`http://a.example/service/claim/${token}`))).status
  t.equal(await open(), 200)
  time.now += HOUR
  t.equal(await open(), 410)
})

t.test('after a clock went back, no response and no event waits for the future', async (t) => {
  const { time, api, store, issue, operator, partners } = await openWorld()
  const { text } = await issue()
  const get = () =>
    api.fetch(
      new Request('http://a.example/service/public/profiles?partner=acme', {
        headers: { 'X-Service-Partner-Key': text },
      }),
    )
  await importContent(store, 'industries', ['{"slug":"travel","name":"Travel"}'], { ...operator, now: start })
  const profiles = [1, 2].map((day) =>
    JSON.stringify({
      slug: `day-${day}`,
      name: `Day ${day}`,
      headline: 'Beds',
      country: 'DE',
      industry: 'travel',
      published_at: new Date(start + day * DAY).toISOString(),
    })
  )
  await importContent(store, 'profiles', profiles, { ...operator, now: start })
  // A response is kept from the second request on.
  for (const days of [3, 3, 3, 0, 0, 0, 1, 1, 1, 2]) {
    time.now = start + days * DAY
    const { data } = await (await get()).json()
    t.equal(data.length, Math.min(days, 2), `profiles of day ${days}`)
  }

  await partners.update('acme', { limits: { set: { partner: { quota: 1, windowSeconds: 60 } } } })
  const webhook: Webhook = {
    id: 'whk_1',
    url: 'https://hooks.example',
    events: ['quota.reached'],
    partner: undefined,
    state: 'active',
    createdAt: start,
    failingSince: undefined,
    secrets: [],
  }
  const context = { actor: 'test', at: start }
  await store.webhooks.changeWebhook('whk_1', 'webhook.created', context, () => webhook)
  const statuses: number[] = []
  for (const minutes of [24 * 60, 2, 4]) {
    time.now = start + minutes * MINUTE
    statuses.push((await get()).status)
    if (minutes === 2) continue
    await until(
      async () => {
        const sent = await store.webhooks.listDeliveries('whk_1', undefined, undefined, 9)
        return sent.some(({ createdAt }) => createdAt === time.now)
      },
      `the event of minute ${minutes}`,
      10_000,
    )
  }
  t.strictSame(statuses, [200, 429, 200])
})

t.test('while a clock returns no instant, requests and changes fail, and say why', async (t) => {
  const events: LogEvent[] = []
  const { time, issue, codeOf, api } = await openWorld({ log: (event) => events.push(event) })
  const { text } = await issue({ expiresAt: start + MINUTE })
  t.equal(await codeOf(text), 'ok')
  time.now = start + HOUR
  t.equal(await codeOf(text), 'key_expired')
  const values = [[NaN, 'NaN'], [Infinity, 'Infinity'], [9e15, '9000000000000000'], [
    '0',
    'a string',
  ]] as const
  for (const [value, shown] of values) {
    time.now = value as number
    const message = `clock must return milliseconds since the epoch, not ${shown}.`
    t.equal(await codeOf(text), 'internal')
    t.equal(events.at(-1)?.error, `RangeError: ${message}`)
    await t.rejects(issue(), { name: 'RangeError', message })
  }
  time.now = start + 0.75
  t.equal(await codeOf(text), 'ok', 'fractions are left out')
  t.equal((await issue()).key.createdAt, start)
  await api.close()
})

t.test('a clock that is none, and a store with its own', async (t) => {
  const { store } = await openWorld()
  t.throws(() => createPartnerApi({ store }, { clock: () => NaN }), {
    name: 'RangeError',
    message: 'clock must return milliseconds since the epoch, not NaN.',
  })
  await t.rejects(openSqliteStore(':memory:', { clock: () => Infinity }), RangeError)
  t.throws(() => createPartnerApi({ store }, { clock: start as never }), TypeError)
  const shared = { ...store, clock: () => ({ at: start, askedAt: 0, answeredAt: 0 }) }
  t.throws(() => createPartnerApi({ store: shared }, { clock: Date.now }), {
    name: 'RangeError',
    message: /the store has a clock of its own/,
  })
})
