/** Section 5: policies of a key, what their fields say, and what happens when one is used up. */
import type { TestKey } from '../../support/world.ts'
import { expectProblem } from './expect.ts'
import { get, type Heard, post, type Service, type Suite, type Tester, until } from './service.ts'

const plans = '/public/plans?partner=demo'

const off = { quota: 0, windowSeconds: 60 }

export const limits: readonly Suite[] = [{
  settings: { limits: {} },
  tests: {
    'the default quotas': defaults,
    'every authenticated response has the remainder': everywhere,
    'quotas of a key and of a partner': overrides,
    'exactly the quota passes': exact,
    'concurrent requests are counted one by one': atOnce,
    'a window ends': windows,
    'a window is not longer than its length': lengths,
  },
}, {
  settings: { limits: { key: off, verify: { quota: 50, windowSeconds: 86_400 }, authfail: off } },
  tests: { 'quotas of the service, and 0 turns a policy off': settings },
}]

async function settings(t: Tester, service: Service): Promise<void> {
  const heard = await get(service, plans)
  t.strictSame([heard.status, fieldsOf(heard)], [200, [undefined, undefined]], 'no field names it')
  const verified = await post(service, '{"partner":"demo"}')
  t.strictSame(policyOf(verified), ['"verify";q=50;w=86400'], 'the service’s own')
  const policies = verified.json.data.limits.map(({ policy }: { policy: string }) => policy)
  t.strictSame(policies.toSorted(), ['signup', 'verify'], 'a policy that is off is not listed')
  const own = await service.world.issue({ limits: { key: { quota: 7, windowSeconds: 9 } } })
  t.strictSame(policyOf(await get(service, plans, { key: own })), ['"key";q=7;w=9'], 'a key may have its own')
  const free = await service.world.issue({ limits: { verify: off, signup: off } })
  const none = await post(service, '{"partner":"demo"}', { key: free })
  t.strictSame([none.json.data.limits, fieldsOf(none)], [[], [undefined, undefined]], 'all of them off')
  for (let count = 0; count < 40; count++) {
    expectProblem(t, await get(service, plans, { key: { text: 'x' } }), 'key_invalid', `failure ${count}`)
  }
}

function fieldsOf({ headers }: Heard): [string | undefined, string | undefined] {
  return [headers.get('ratelimit-policy'), headers.get('ratelimit')]
}

function policyOf({ headers }: Heard): string[] {
  return (headers.get('ratelimit-policy') ?? '').split(', ')
}

/** What one policy says: quota, window, what is left and until when. */
function left(heard: Heard, policy: string): { q: number; w: number; r: number; t: number } {
  const number = String.raw`(0|[1-9]\d*)`
  const [, q, w] = new RegExp(`^"${policy}";q=${number};w=${number}$`).exec(fieldsOf(heard)[0] ?? '') ?? []
  const [, r, t] = new RegExp(`^"${policy}";r=${number};t=${number}$`).exec(fieldsOf(heard)[1] ?? '') ?? []
  return { q: Number(q), w: Number(w), r: Number(r), t: Number(t) }
}

async function defaults(t: Tester, service: Service): Promise<void> {
  for (let count = 1; count <= 3; count++) {
    const said = left(await get(service, plans), 'key')
    t.strictSame({ ...said, t: 0 }, { q: 600, w: 60, r: 600 - count, t: 0 }, `request ${count}`)
    t.ok(said.t >= 1 && said.t <= 60, 't is seconds of the window')
  }
  const verified = left(await post(service, '{"partner":"demo"}'), 'verify')
  t.strictSame({ ...verified, t: 0 }, { q: 30, w: 60, r: 29, t: 0 }, 'verify-key has its own')
  t.equal(left(await get(service, plans), 'key').r, 596, 'and spends nothing of the key’s')
  const other = await get(service, plans, { key: service.world.keys['demo test'] })
  t.equal(left(other, 'key').r, 599, 'another key, another quota')
  t.equal(left(await get(service, plans, { method: 'HEAD' }), 'key').r, 595, 'HEAD spends like GET')
  await service.send({ method: 'OPTIONS', target: service.root + plans })
  const wrong = await service.send({ method: 'PUT', target: service.root + plans })
  t.strictSame(fieldsOf(wrong), [undefined, undefined], 'what is not authenticated says nothing')
  t.equal(left(await get(service, plans), 'key').r, 594, 'and spends nothing')
}

async function everywhere(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const key = await world.issue({
    limits: { key: { quota: 100, windowSeconds: 60 } },
    scopes: ['read:plans'],
  })
  const etag = (await get(service, plans, { key })).headers.get('etag') ?? ''
  const asks: readonly [number, string, Record<string, string>][] = [
    [304, plans, { 'if-none-match': etag }],
    [400, '/public/plans', {}],
    [403, '/public/plans?partner=acme', {}],
    [403, '/public/banner?partner=demo', {}],
    [400, '/public/plans?partner=demo&x=1', {}],
    [200, plans, {}],
  ]
  let expected = 99
  for (const [status, path, headers] of asks) {
    const heard = await get(service, path, { key, headers })
    expected--
    t.strictSame([heard.status, left(heard, 'key').r], [status, expected], `${status} ${path}`)
  }
  const bodies = { '{': 400, '{"partner":"acme"}': 403, '{"partner":"demo","x":1}': 422 }
  for (const [body, status] of Object.entries(bodies)) {
    const heard = await post(service, body, { key })
    t.strictSame([heard.status, left(heard, 'verify').q], [status, 30], `POST ${status}`)
  }
  const missing = await get(service, '/public/profiles/no-such?partner=demo')
  t.strictSame([missing.status, left(missing, 'key').q], [404, 600], 'a 404 of a profile, too')
}

async function overrides(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const limit = (quota: number) => ({ quota, windowSeconds: 60 })
  const big = { slug: 'big', name: 'Big', limits: { key: limit(5000) } }
  await world.partners.create({ ...big, modules: ['pricing'] })
  const [ofPartner, own] = [
    await world.issue({ partner: 'big' }),
    await world.issue({ partner: 'big', limits: { key: limit(9) } }),
  ]
  const ask = (key: TestKey) => get(service, '/public/plans?partner=big', { key })
  t.equal(left(await ask(ofPartner), 'key').q, 5000, 'the partner’s')
  t.equal(left(await ask(own), 'key').q, 9, 'the key’s before the partner’s')
  const verified = await post(service, '{"partner":"big"}', { key: own })
  t.equal(left(verified, 'verify').q, 30, 'what neither names is the service’s')
}

async function exact(t: Tester, service: Service): Promise<void> {
  const key = await service.world.issue({
    limits: { key: { quota: 5, windowSeconds: 60 }, verify: { quota: 2, windowSeconds: 60 } },
  })
  for (let rest = 4; rest >= 0; rest--) {
    const heard = await get(service, plans, { key })
    t.strictSame([heard.status, left(heard, 'key').r], [200, rest], `${rest} left`)
  }
  const paths = [plans, '/public/profiles?partner=demo', '/public/plans', '/public/plans?partner=acme']
  for (const path of paths) {
    const heard = await get(service, path, { key })
    expectProblem(t, heard, 'rate_limited', `then none: ${path}`)
    const { r, t: reset } = left(heard, 'key')
    t.equal(r, 0)
    const retry = heard.headers.get('retry-after') ?? ''
    t.ok(/^[1-9]\d*$/.test(retry) && Number(retry) >= reset, `Retry-After: ${retry}, t=${reset}`)
  }
  const options = await service.send({ method: 'OPTIONS', target: service.root + plans })
  t.equal(options.status, 204, 'OPTIONS meets no limit')

  const verified = await post(service, '{"partner":"demo"}', { key })
  t.equal(verified.status, 200, 'verify-key has a quota of its own')
  t.equal((await post(service, '{', { key })).status, 400, 'which a wrong request spends, too')
  const heard = await post(service, '{"partner":"demo"}', { key })
  expectProblem(t, heard, 'rate_limited', 'and then it is spent')
  t.ok(Number(heard.headers.get('retry-after')) >= left(heard, 'verify').t, 'Retry-After')
}

async function atOnce(t: Tester, service: Service): Promise<void> {
  const key = await service.world.issue({ limits: { key: { quota: 20, windowSeconds: 60 } } })
  const answers = await Promise.all(Array.from({ length: 30 }, () => get(service, plans, { key })))
  t.equal(answers.filter(({ status }) => status === 200).length, 20, 'twenty of thirty pass')
  t.equal(answers.filter(({ status }) => status === 429).length, 10, 'and ten do not')
  const rests = answers.filter(({ status }) => status === 200).map((heard) => left(heard, 'key').r)
  t.equal(new Set(rests).size, 20, 'each got another number')
}

async function windows(t: Tester, service: Service): Promise<void> {
  // A busy machine may need longer for three requests than a window lasts; then the window has to be longer.
  const exhaust = async (windowSeconds: number): Promise<readonly [() => Promise<Heard>, Heard[]]> => {
    const key = await service.world.issue({ limits: { key: { quota: 2, windowSeconds } } })
    const ask = () => get(service, plans, { key })
    const openedAt = performance.now()
    const answers = [await ask(), await ask(), await ask()]
    const isOver = performance.now() > openedAt + windowSeconds * 1_000
    return isOver ? await exhaust(2 * windowSeconds) : [ask, answers]
  }
  const [ask, answers] = await exhaust(1)
  const refusedAt = performance.now()
  t.strictSame(answers.map(({ status }) => status), [200, 200, 429])
  const retryAfterSeconds = Number(answers[2]?.headers.get('retry-after'))
  t.ok(retryAfterSeconds >= 1, 'Retry-After')
  const { heard, lastBefore } = await until(ask, ({ status }) => status === 200)
  t.ok(lastBefore <= refusedAt + retryAfterSeconds * 1_000, 'who waits as long as Retry-After says, passes')
  t.ok(left(heard, 'key').r <= 1, 'and is counted')
}

async function lengths(t: Tester, service: Service): Promise<void> {
  // In milliseconds just below a power of two: a sum with the clock is rounded there, which would add a second.
  const windowSeconds = 67_108
  const resets: number[] = []
  for (let count = 0; count < 20; count++) {
    const key = await service.world.issue({ limits: { key: { quota: 9, windowSeconds } } })
    resets.push(left(await get(service, plans, { key }), 'key').t)
  }
  t.strictSame([...new Set(resets)], [windowSeconds], 'a new window is as long as w')
}
