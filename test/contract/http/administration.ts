/** Section 6: what an operator changes, through a connection of their own, binds within the bound. */
import type { TestKey } from '../../support/world.ts'
import { type Code, expectProblem } from './expect.ts'
import { before, get, type Heard, post, type Service, type Suite, type Tester, until } from './service.ts'

/** Milliseconds. */
const bound = 200

export const administration: readonly Suite[] = [{
  tests: {
    'with a bound of 0, a change applies to the next request': (t, service) => changes(t, service, 0),
  },
}, {
  settings: { maxStalenessMs: bound },
  tests: {
    'a change applies within the bound': (t, service) => changes(t, service, bound),
    'nothing passes after the first refusal': firstRefusal,
    'keys end at their instant, with no change at all': instants,
    'a new key': newKey,
  },
}]

/** One change, how it shows, and what undoes it. */
type Step = readonly [string, () => Promise<unknown>, Code | 200]

/** A partner and key of its own, so that nothing else is known about them. */
async function settle(service: Service, slug: string): Promise<{ key: TestKey; ask: () => Promise<Heard> }> {
  await service.world.partners.create({ slug, name: slug, modules: ['pricing', 'profiles'] })
  const key = await service.world.issue({ partner: slug })
  return { key, ask: () => get(service, `/public/plans?partner=${slug}`, { key }) }
}

function is(code: Code | 200): (heard: Heard) => boolean {
  return ({ status, json }) => code === 200 ? status === 200 : json?.code === code
}

async function changes(t: Tester, service: Service, maxStalenessMs: number): Promise<void> {
  const { partners, keyRing } = service.world
  const slug = `changing-${maxStalenessMs}`
  const { key: { id, text }, ask } = await settle(service, slug)
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
    await ask()
    await change()
    const changed = performance.now()
    const { heard, lastBefore } = await until(ask, is(code))
    t.ok(lastBefore <= changed + maxStalenessMs, `${what} binds within ${maxStalenessMs} ms`)
    if (code !== 200) expectProblem(t, heard, code, what)
    const verified = await post(service, JSON.stringify({ partner: slug }), { key: { text } })
    const allowed = verified.json?.data?.endpoints?.find(({ path }: { path: string }) =>
      path.endsWith('/plans')
    )
    const reported = verified.status === 200 ? allowed?.allowed : false
    t.equal(reported, code === 200, `${what}: verify-key says the same`)
  }
}

async function firstRefusal(t: Tester, service: Service): Promise<void> {
  const { key, ask } = await settle(service, 'refused')
  for (let count = 0; count < 50; count++) await ask()
  const answers: { status: number; sentAt: number }[] = []
  const loop = async (): Promise<void> => {
    for (let refusals = 0; refusals < 30;) {
      const sentAt = performance.now()
      const { status } = await ask()
      answers.push({ status, sentAt })
      refusals += status === 401 ? 1 : 0
      if (sentAt - answers[0]!.sentAt > 60_000) throw new Error('never refused')
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const looping = loop()
  await service.world.keyRing.revoke(key.id)
  const revokedAt = performance.now()
  await looping
  const first = answers.findIndex(({ status }) => status === 401)
  const passed = answers.slice(first).filter(({ status }) => status !== 401)
  t.strictSame(passed, [], 'after it there are only refusals')
  const late = answers.filter(({ status, sentAt }) => status === 200 && sentAt > revokedAt + bound)
  t.strictSame(late, [], 'and it comes within max_staleness_ms')
  t.ok(answers.every(({ status }) => status === 200 || status === 401), 'there is nothing in between')
}

async function instants(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const plans = '/public/plans?partner=demo'
  const { at, observed: { keys, successor, statuses } } = await before(async (at) => {
    const [ending, retiring, successor] = [
      await world.issue({ expiresAt: at }),
      await world.issue({}),
      await world.issue({}),
    ]
    await world.rotate(retiring.id, successor.id, at)
    const keys = { 'an expiry': ending, 'the end of an overlap': retiring }
    const statuses = []
    for (const key of Object.values(keys)) statuses.push((await get(service, plans, { key })).status)
    return { keys, successor, statuses }
  })
  t.strictSame(statuses, [200, 200], 'before')
  for (const [what, key] of Object.entries(keys)) {
    const ask = () => get(service, plans, { key })
    const { heard, lastBefore } = await until(ask, ({ status }) => status !== 200, Date.now)
    expectProblem(t, heard, 'key_expired', `after ${what}`)
    t.ok(Date.now() >= at, 'not before')
    t.ok(lastBefore < at, 'and no bound is waited for')
  }
  t.equal((await get(service, plans, { key: successor })).status, 200, 'the successor goes on')
}

async function newKey(t: Tester, service: Service): Promise<void> {
  const { world } = service
  await world.partners.create({ slug: 'brand-new', name: 'Brand new', modules: ['pricing'] })
  const key = await world.issue({ partner: 'brand-new' })
  const ask = () => get(service, '/public/plans?partner=brand-new', { key })
  const began = performance.now()
  const { lastBefore } = await until(ask, ({ status }) => status === 200)
  t.ok(lastBefore <= began + bound, 'a key is usable within the bound')
}
