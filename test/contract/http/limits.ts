/** Section 5: rate limits of a key, their RateLimit fields, and refusal after the quota. */
import type { TestKey } from '../../support/world.ts'
import { expectProblem } from './expect.ts'
import { get, post, type Service, type Suite, type TestContext, type TestResponse, until } from './service.ts'

const plans = '/public/plans?partner=demo'

const off = { quota: 0, windowSeconds: 60 }

export const limits: readonly Suite[] = [{
  settings: { limits: {} },
  tests: {
    'the default quotas apply and are reported': defaultQuotas,
    'every authenticated response reports the remaining quota': remainderReported,
    'the quota of a key overrides that of its partner, and that the default': quotaPrecedence,
    'requests beyond the quota are refused with 429 and Retry-After': refusedAfterQuota,
    'concurrent requests never exceed the quota': concurrentRequests,
    'requests pass again after Retry-After': passesAfterRetryAfter,
    'a new window resets after exactly its length': windowLength,
    'live keys of a partner share its quotas, of a window and of a month': withinMonth(partnerQuotas),
    'a quota that is raised, cleared and set again counts what was used': withinMonth(changedQuotas),
    'over a quota, a key can still be revoked, and its problems be listed': withinMonth(exemptFromQuotas),
  },
}, {
  settings: { limits: { key: off, verify: { quota: 50, windowSeconds: 86_400 }, authfail: off } },
  tests: { 'the service settings override the defaults, and a quota of 0 disables a policy': serviceQuotas },
}]

async function serviceQuotas(t: TestContext, service: Service): Promise<void> {
  const response = await get(service, plans)
  t.strictSame(
    [response.status, fieldsOf(response)],
    [200, [undefined, undefined]],
    'no RateLimit field names a disabled policy',
  )
  const verified = await post(service, '{"partner":"demo"}')
  t.strictSame(policyOf(verified), ['"verify";q=50;w=86400'], 'the quota of the service settings')
  const policies = verified.json.data.limits.map(({ policy }: { policy: string }) => policy)
  t.strictSame(policies.toSorted(), ['signup', 'verify'], 'verify-key omits a disabled policy')
  const own = await service.world.issue({ limits: { key: { quota: 7, windowSeconds: 9 } } })
  t.strictSame(
    policyOf(await get(service, plans, { key: own })),
    ['"key";q=7;w=9'],
    'a key can enable a policy for itself',
  )
  const free = await service.world.issue({ limits: { verify: off, signup: off } })
  const none = await post(service, '{"partner":"demo"}', { key: free })
  t.strictSame([none.json.data.limits, fieldsOf(none)], [[], [undefined, undefined]], 'all policies disabled')
  for (let count = 0; count < 40; count++) {
    expectProblem(t, await get(service, plans, { key: { text: 'x' } }), 'key_invalid', `failure ${count}`)
  }
}

function fieldsOf({ headers }: TestResponse): [string | undefined, string | undefined] {
  return [headers.get('ratelimit-policy'), headers.get('ratelimit')]
}

function policyOf({ headers }: TestResponse): string[] {
  return (headers.get('ratelimit-policy') ?? '').split(', ')
}

/** Quota, window, remaining requests and seconds until the reset, as the fields of one policy report them. */
function rateLimitOf(response: TestResponse, policy: string): { q: number; w: number; r: number; t: number } {
  const number = String.raw`(0|[1-9]\d*)`
  const [, q, w] = new RegExp(`^"${policy}";q=${number};w=${number}$`).exec(fieldsOf(response)[0] ?? '') ?? []
  const [, r, t] = new RegExp(`^"${policy}";r=${number};t=${number}$`).exec(fieldsOf(response)[1] ?? '') ?? []
  return { q: Number(q), w: Number(w), r: Number(r), t: Number(t) }
}

async function defaultQuotas(t: TestContext, service: Service): Promise<void> {
  for (let count = 1; count <= 3; count++) {
    const state = rateLimitOf(await get(service, plans), 'key')
    t.strictSame({ ...state, t: 0 }, { q: 600, w: 60, r: 600 - count, t: 0 }, `request ${count}`)
    t.ok(state.t >= 1 && state.t <= 60, 't is at most the window')
  }
  const verified = rateLimitOf(await post(service, '{"partner":"demo"}'), 'verify')
  t.strictSame({ ...verified, t: 0 }, { q: 30, w: 60, r: 29, t: 0 }, 'verify-key has its own quota')
  t.equal(rateLimitOf(await get(service, plans), 'key').r, 596, 'verify-key does not spend the quota `key`')
  const other = await get(service, plans, { key: service.world.keys['demo test'] })
  t.equal(rateLimitOf(other, 'key').r, 599, 'each key has its own quota')
  t.equal(rateLimitOf(await get(service, plans, { method: 'HEAD' }), 'key').r, 595, 'HEAD spends like GET')
  await service.send({ method: 'OPTIONS', target: service.root + plans })
  const wrong = await service.send({ method: 'PUT', target: service.root + plans })
  t.strictSame(fieldsOf(wrong), [undefined, undefined], 'an unauthenticated response has no RateLimit fields')
  t.equal(rateLimitOf(await get(service, plans), 'key').r, 594, 'OPTIONS and 405 spend nothing')
}

async function remainderReported(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const key = await world.issue({
    limits: { key: { quota: 100, windowSeconds: 60 } },
    scopes: ['read:plans'],
  })
  const etag = (await get(service, plans, { key })).headers.get('etag') ?? ''
  const requests: readonly [number, string, Record<string, string>][] = [
    [304, plans, { 'if-none-match': etag }],
    [400, '/public/plans', {}],
    [403, '/public/plans?partner=acme', {}],
    [403, '/public/banner?partner=demo', {}],
    [400, '/public/plans?partner=demo&x=1', {}],
    [200, plans, {}],
  ]
  let expected = 99
  for (const [status, path, headers] of requests) {
    const response = await get(service, path, { key, headers })
    expected--
    t.strictSame([response.status, rateLimitOf(response, 'key').r], [status, expected], `${status} ${path}`)
  }
  const bodies = { '{': 400, '{"partner":"acme"}': 403, '{"partner":"demo","x":1}': 422 }
  for (const [body, status] of Object.entries(bodies)) {
    const response = await post(service, body, { key })
    t.strictSame([response.status, rateLimitOf(response, 'verify').q], [status, 30], `POST ${status}`)
  }
  const missing = await get(service, '/public/profiles/no-such?partner=demo')
  t.strictSame([missing.status, rateLimitOf(missing, 'key').q], [404, 600], 'a 404 of a profile reports it')
}

async function quotaPrecedence(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const limit = (quota: number) => ({ quota, windowSeconds: 60 })
  const big = { slug: 'big', name: 'Big', limits: { key: limit(5000) } }
  await world.partners.create({ ...big, modules: ['pricing'] })
  const ofPartner = await world.issue({ partner: 'big' })
  const own = await world.issue({ partner: 'big', limits: { key: limit(9) } })
  const request = (key: TestKey) => get(service, '/public/plans?partner=big', { key })
  t.equal(rateLimitOf(await request(ofPartner), 'key').q, 5000, 'the quota of the partner')
  t.equal(rateLimitOf(await request(own), 'key').q, 9, 'the quota of the key takes precedence')
  const verified = await post(service, '{"partner":"big"}', { key: own })
  t.equal(rateLimitOf(verified, 'verify').q, 30, 'otherwise the default applies')
}

async function refusedAfterQuota(t: TestContext, service: Service): Promise<void> {
  const key = await service.world.issue({
    limits: { key: { quota: 5, windowSeconds: 60 }, verify: { quota: 2, windowSeconds: 60 } },
  })
  for (let remaining = 4; remaining >= 0; remaining--) {
    const response = await get(service, plans, { key })
    t.strictSame([response.status, rateLimitOf(response, 'key').r], [200, remaining], `${remaining} remain`)
  }
  const paths = [plans, '/public/profiles?partner=demo', '/public/plans', '/public/plans?partner=acme']
  for (const path of paths) {
    const response = await get(service, path, { key })
    expectProblem(t, response, 'rate_limited', `after the quota: ${path}`)
    const { r, t: reset } = rateLimitOf(response, 'key')
    t.equal(r, 0)
    const retry = response.headers.get('retry-after') ?? ''
    t.ok(/^[1-9]\d*$/.test(retry) && Number(retry) >= reset, `Retry-After: ${retry}, t=${reset}`)
  }
  const options = await service.send({ method: 'OPTIONS', target: service.root + plans })
  t.equal(options.status, 204, 'OPTIONS is not limited')

  const verified = await post(service, '{"partner":"demo"}', { key })
  t.equal(verified.status, 200, 'verify-key has its own quota')
  t.equal((await post(service, '{', { key })).status, 400, 'a malformed request spends it')
  const response = await post(service, '{"partner":"demo"}', { key })
  expectProblem(t, response, 'rate_limited', 'after the quota of verify-key')
  t.ok(Number(response.headers.get('retry-after')) >= rateLimitOf(response, 'verify').t, 'Retry-After')
}

async function concurrentRequests(t: TestContext, service: Service): Promise<void> {
  const key = await service.world.issue({ limits: { key: { quota: 20, windowSeconds: 60 } } })
  const responses = await Promise.all(Array.from({ length: 30 }, () => get(service, plans, { key })))
  t.equal(responses.filter(({ status }) => status === 200).length, 20, 'twenty of thirty succeed')
  t.equal(responses.filter(({ status }) => status === 429).length, 10, 'ten are limited')
  const remainders = responses.filter(({ status }) => status === 200).map((response) =>
    rateLimitOf(response, 'key').r
  )
  t.equal(new Set(remainders).size, 20, 'each reports a different remainder')
}

async function passesAfterRetryAfter(t: TestContext, service: Service): Promise<void> {
  // On a busy machine three requests may take longer than the window: then it is doubled.
  const exhaust = async (
    windowSeconds: number,
  ): Promise<readonly [() => Promise<TestResponse>, TestResponse[]]> => {
    const key = await service.world.issue({ limits: { key: { quota: 2, windowSeconds } } })
    const request = () => get(service, plans, { key })
    const openedAt = performance.now()
    const responses = [await request(), await request(), await request()]
    const isOver = performance.now() > openedAt + windowSeconds * 1_000
    return isOver ? await exhaust(2 * windowSeconds) : [request, responses]
  }
  const [request, responses] = await exhaust(1)
  const refusedAt = performance.now()
  t.strictSame(responses.map(({ status }) => status), [200, 200, 429])
  const retryAfterSeconds = Number(responses[2]?.headers.get('retry-after'))
  t.ok(retryAfterSeconds >= 1, 'Retry-After')
  const { response, lastBefore } = await until(request, ({ status }) => status === 200)
  t.ok(lastBefore <= refusedAt + retryAfterSeconds * 1_000, 'a request passes no later than Retry-After')
  t.ok(rateLimitOf(response, 'key').r <= 1, 'the request is counted in the new window')
}

async function windowLength(t: TestContext, service: Service): Promise<void> {
  // In milliseconds just below a power of two, where adding the clock rounds and could add a second.
  const windowSeconds = 67_108
  const resets: number[] = []
  for (let count = 0; count < 20; count++) {
    const key = await service.world.issue({ limits: { key: { quota: 9, windowSeconds } } })
    resets.push(rateLimitOf(await get(service, plans, { key }), 'key').t)
  }
  t.strictSame([...new Set(resets)], [windowSeconds], 't of a new window equals w')
}

const month = (quota: number) => ({ quota })
/** 31 days, the longest. */
const days = (quota: number) => ({ quota, windowSeconds: 2_678_400 })

function secondsOfMonth(): number {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 0)).getUTCDate() * 86_400
}

/** Repeats a test during which a month ends, and with it the counts. Its checks are made after it. */
function withinMonth(test: (t: TestContext, service: Service, partner: string) => Promise<void>) {
  return async (t: TestContext, service: Service): Promise<void> => {
    for (let attempt = 0;; attempt++) {
      const checks: (() => void)[] = []
      const later = new Proxy(t, {
        get: (_, name: 'equal') => (...check: [unknown, unknown]) =>
          void checks.push(() => t[name](...check)),
      })
      const startedIn = new Date().getUTCMonth()
      const [outcome] = await Promise.allSettled([
        test(later, service, `${test.name.toLowerCase()}-${attempt}`),
      ])
      if (new Date().getUTCMonth() !== startedIn) continue
      for (const check of checks) check()
      if (outcome.status === 'rejected') throw outcome.reason
      return
    }
  }
}

async function partnerQuotas(t: TestContext, service: Service, partner: string): Promise<void> {
  const { partners, issue } = service.world
  const limits = { partner: days(6), month: month(9) }
  await partners.create({ slug: partner, name: 'Shared', modules: ['pricing', 'signup'], limits })
  const one = await issue({ partner })
  const two = await issue({ partner })
  const test = await issue({ partner, environment: 'test' })
  const small = await issue({ partner, limits: { key: { quota: 1, windowSeconds: 60 } } })
  const request = (key: TestKey) => get(service, `/public/plans?partner=${partner}`, { key })
  const left = (response: TestResponse) =>
    Array.from((fieldsOf(response)[1] ?? '').matchAll(/"(\w+)";r=(\d+)/g), ([, name, r]) => `${name} ${r}`)
      .join()
  const w = secondsOfMonth()
  const first = await request(one)
  t.strictSame(policyOf(first), ['"key";q=600;w=60', '"partner";q=6;w=2678400', `"month";q=9;w=${w}`])
  t.equal(left(first), 'key 599,partner 5,month 8')
  const [, reset] = /"month";r=8;t=(\d+)$/.exec(fieldsOf(first)[1] ?? '') ?? []
  const untilEnd = w - Date.now() / 1000 % 86_400 - (new Date().getUTCDate() - 1) * 86_400
  t.ok(Math.abs(Number(reset) - untilEnd) < 30, `t=${reset}, ${untilEnd} s until the month ends`)
  t.equal(left(await request(two)), 'key 599,partner 4,month 7', 'another key')
  t.equal(left(await request(test)), 'key 599', 'a test key counts in neither')
  const refused = await get(service, '/public/plans?partner=acme', { key: two })
  t.strictSame(
    [refused.status, left(refused)],
    [403, 'key 598,partner 3,month 6'],
    'what other checks refuse',
  )
  const signup = await get(service, '/partner/signups', {
    key: one,
    method: 'POST',
    body: JSON.stringify({ partner }),
  })
  t.equal(left(signup), 'key 598,partner 2,month 5,signup 19', 'in this order')
  t.equal(left(await request(small)), 'key 0,partner 1,month 4')
  const over = await request(small)
  expectProblem(t, over, 'rate_limited', 'over the limit of the key')
  t.equal(left(over), 'key 0', 'what `key` refuses counts toward no quota of the partner')

  const verify = async (key: TestKey) => {
    const { json: { data } } = await post(service, JSON.stringify({ partner }), { key })
    return data.limits.map(({ policy, window_seconds, remaining }: Record<string, unknown>) => {
      return [policy, ...policy === 'partner' || policy === 'month' ? [window_seconds, remaining] : []]
    })
  }
  const shown = [['key'], ['partner', 2_678_400, 1], ['month', w, 4], ['signup'], ['verify']]
  t.strictSame((await verify(one)).slice(0, 5), shown, 'verify-key lists both')
  t.strictSame((await verify(one)).slice(0, 5), shown, 'and counts toward neither')
  t.strictSame((await verify(test)).slice(0, 3), [['key'], ['signup'], ['verify']])

  t.equal(left(await request(one)), 'key 597,partner 0,month 3')
  for (const key of [one, two]) {
    const response = await request(key)
    expectProblem(t, response, 'rate_limited', 'after the quota of the partner')
    t.ok(!left(response).includes('month'), 'it does not count toward the month')
    const [, t0] = /"partner";r=0;t=(\d+)$/.exec(fieldsOf(response)[1] ?? '') ?? []
    t.ok(Number(response.headers.get('retry-after')) >= Number(t0) && Number(t0) > 2_600_000, `t=${t0}`)
  }
  t.equal((await request(test)).status, 200, 'a test key still passes')
}

async function exemptFromQuotas(t: TestContext, service: Service, partner: string): Promise<void> {
  const { partners, issue } = service.world
  const limits = { partner: days(2), month: month(1) }
  await partners.create({
    slug: partner,
    name: 'Spent',
    modules: ['pricing'],
    selfService: ['revoke'],
    limits,
  })
  const key = await issue({ partner })
  const request = () => get(service, `/public/plans?partner=${partner}`, { key })
  t.strictSame([(await request()).status, (await request()).status], [200, 429])
  const problems = await get(service, `/developer/problems?partner=${partner}`, { key })
  t.strictSame([problems.status, policyOf(problems)], [200, ['"key";q=600;w=60']])
  const target = `${service.root}/developer/revoke-key`
  const revoked = await post(service, JSON.stringify({ partner }), { key, target })
  t.strictSame([revoked.status, policyOf(revoked)], [200, ['"key";q=600;w=60']])
}

async function changedQuotas(t: TestContext, service: Service, partner: string): Promise<void> {
  const { partners, issue } = service.world
  const monthly = (quota: number) => ({ limits: { set: { month: month(quota) } } })
  await partners.create({ slug: partner, name: 'Monthly', modules: ['pricing'], limits: { month: month(2) } })
  const key = await issue({ partner })
  const request = () => get(service, `/public/plans?partner=${partner}`, { key })
  const quotaOf = (response: TestResponse) => /"month";q=(\d+)/.exec(fieldsOf(response)[0] ?? '')?.[1]
  const left = (response: TestResponse) => Number(/"month";r=(\d+)/.exec(fieldsOf(response)[1] ?? '')?.[1])
  const statuses = [await request(), await request(), await request()].map(({ status }) => status)
  t.strictSame(statuses, [200, 200, 429])
  await partners.update(partner, monthly(10))
  const { response: raised } = await until(request, ({ status }) => status === 200)
  t.equal(left(raised), 7, 'a raised quota')
  await partners.update(partner, { limits: { clear: ['month'] } })
  await until(request, (response) => quotaOf(response) === undefined)
  await partners.update(partner, monthly(100))
  const { response: again } = await until(request, (response) => quotaOf(response) === '100')
  t.ok(left(again) < 97, `${left(again)} of 100 are left: those of before count`)
  await partners.update(partner, monthly(3))
  const { response: lowered } = await until(request, (response) => quotaOf(response) === '3')
  expectProblem(t, lowered, 'rate_limited', 'lowered below what was used')
}
