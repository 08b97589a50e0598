/** Section 6: changes by an operator on another connection take effect within `maxStalenessMs`. */
import type { TestKey } from '../../support/world.ts'
import { type Code, expectProblem } from './expect.ts'
import {
  before,
  get,
  post,
  type Service,
  type Suite,
  type TestContext,
  type TestResponse,
  until,
} from './service.ts'

/** Milliseconds. */
const bound = 200

export const administration: readonly Suite[] = [{
  tests: {
    'with a bound of 0, a change takes effect on the next request': (t, service) => changes(t, service, 0),
  },
}, {
  settings: { maxStalenessMs: bound },
  tests: {
    'a change takes effect within the bound': (t, service) => changes(t, service, bound),
    'no request with a revoked key succeeds after the first refusal': firstRefusal,
    'keys expire and retire at their instant, without a write': expiryInstants,
    'a new key works within the bound': newKeyWorks,
  },
}]

/** Name and change, and the response that shows it. */
type Step = readonly [string, () => Promise<unknown>, Code | 200]

/** Creates a partner with a key, both unknown to the service's caches. */
async function createPartnerWithKey(
  service: Service,
  slug: string,
): Promise<{ key: TestKey; request: () => Promise<TestResponse> }> {
  await service.world.partners.create({ slug, name: slug, modules: ['pricing', 'profiles'] })
  const key = await service.world.issue({ partner: slug })
  return { key, request: () => get(service, `/public/plans?partner=${slug}`, { key }) }
}

function hasOutcome(code: Code | 200): (response: TestResponse) => boolean {
  return ({ status, json }) => code === 200 ? status === 200 : json?.code === code
}

async function changes(t: TestContext, service: Service, maxStalenessMs: number): Promise<void> {
  const { partners, keyRing } = service.world
  const slug = `changing-${maxStalenessMs}`
  const { key: { id, text }, request } = await createPartnerWithKey(service, slug)
  const steps: readonly Step[] = [
    ['disabled', () => keyRing.disable(id), 'key_disabled'],
    ['enabled', () => keyRing.enable(id), 200],
    ['scope removed', () => keyRing.remove(id, ['read:plans']), 'scope_missing'],
    ['scope granted', () => keyRing.grant(id, ['read:plans']), 200],
    ['module deactivated', () => partners.deactivate(slug, ['pricing']), 'module_inactive'],
    ['module activated', () => partners.activate(slug, ['pricing']), 200],
    ['partner suspended', () => partners.suspend(slug), 'partner_suspended'],
    ['partner resumed', () => partners.resume(slug), 200],
    ['revoked', () => keyRing.revoke(id), 'key_revoked'],
  ]
  for (const [what, change, code] of steps) {
    await request()
    await change()
    const changed = performance.now()
    const { response, lastBefore } = await until(request, hasOutcome(code))
    t.ok(lastBefore <= changed + maxStalenessMs, `${what} takes effect within ${maxStalenessMs} ms`)
    if (code !== 200) expectProblem(t, response, code, what)
    const verified = await post(service, JSON.stringify({ partner: slug }), { key: { text } })
    const allowed = verified.json?.data?.endpoints?.find(({ path }: { path: string }) =>
      path.endsWith('/plans')
    )
    const reported = verified.status === 200 ? allowed?.allowed : false
    t.equal(reported, code === 200, `${what}: verify-key agrees`)
  }
}

async function firstRefusal(t: TestContext, service: Service): Promise<void> {
  const { key, request } = await createPartnerWithKey(service, 'refused')
  for (let count = 0; count < 50; count++) await request()
  const responses: { status: number; sentAt: number }[] = []
  const loop = async (): Promise<void> => {
    for (let refusals = 0; refusals < 30;) {
      const sentAt = performance.now()
      const { status } = await request()
      responses.push({ status, sentAt })
      refusals += status === 401 ? 1 : 0
      if (sentAt - responses[0]!.sentAt > 60_000) throw new Error('the revoked key was never refused')
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const looping = loop()
  await service.world.keyRing.revoke(key.id)
  const revokedAt = performance.now()
  await looping
  const first = responses.findIndex(({ status }) => status === 401)
  const passed = responses.slice(first).filter(({ status }) => status !== 401)
  t.strictSame(passed, [], 'every response after the first refusal is a refusal')
  const late = responses.filter(({ status, sentAt }) => status === 200 && sentAt > revokedAt + bound)
  t.strictSame(late, [], 'the first refusal comes within max_staleness_ms')
  t.ok(responses.every(({ status }) => status === 200 || status === 401), 'every response is 200 or 401')
}

async function expiryInstants(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const plans = '/public/plans?partner=demo'
  const { at, observed: { keys, successor, statuses } } = await before(async (at) => {
    const ending = await world.issue({ expiresAt: at })
    const retiring = await world.issue({})
    const successor = await world.issue({})
    await world.rotate(retiring.id, successor.id, at)
    const keys = { 'the expiry': ending, 'the end of an overlap': retiring }
    const statuses = []
    for (const key of Object.values(keys)) statuses.push((await get(service, plans, { key })).status)
    return { keys, successor, statuses }
  })
  t.strictSame(statuses, [200, 200], 'both keys work before the instant')
  for (const [what, key] of Object.entries(keys)) {
    const request = () => get(service, plans, { key })
    const { response, lastBefore } = await until(request, ({ status }) => status !== 200, Date.now)
    expectProblem(t, response, 'key_expired', `after ${what}`)
    t.ok(Date.now() >= at, 'not early')
    t.ok(lastBefore < at, 'not late: expiry does not wait for the bound')
  }
  t.equal((await get(service, plans, { key: successor })).status, 200, 'the successor still works')
}

async function newKeyWorks(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  await world.partners.create({ slug: 'brand-new', name: 'Brand new', modules: ['pricing'] })
  const key = await world.issue({ partner: 'brand-new' })
  const request = () => get(service, '/public/plans?partner=brand-new', { key })
  const began = performance.now()
  const { lastBefore } = await until(request, ({ status }) => status === 200)
  t.ok(lastBefore <= began + bound, 'a key is usable within the bound')
}
