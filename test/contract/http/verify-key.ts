/** Section 4, verify-key: what it says is what will happen. */
import { expectProblem, keyedPaths } from './expect.ts'
import { type Deploy, get, post, type Service, type Tester, VERSION } from './service.ts'

const modules = {
  widget: 'read:partner-widget',
  profiles: 'read:profiles',
  banner: 'read:banner',
  countries: 'read:countries',
  industries: 'read:industries',
  pricing: 'read:plans',
  signup: 'create:partner-signups',
  reporting: 'read:partner-reports',
} as const

/** The endpoints with a scope, below the service's path; the last three may still be missing. */
const endpoints = [
  ['GET', '/partner-widget', 'read:partner-widget'],
  ['GET', '/public/profiles/recent', 'read:profiles'],
  ['GET', '/public/profiles', 'read:profiles'],
  ['GET', '/public/profiles/{slug}', 'read:profiles'],
  ['GET', '/public/banner', 'read:banner'],
  ['GET', '/public/countries', 'read:countries'],
  ['GET', '/public/industries', 'read:industries'],
  ['GET', '/public/plans', 'read:plans'],
  ['GET', '/partner/reports/summary', 'read:partner-reports'],
  ['GET', '/partner/reports/activity', 'read:partner-reports'],
  ['POST', '/partner/signups', 'create:partner-signups'],
] as const

interface Endpoint {
  readonly method: string
  readonly path: string
  readonly scope: string
  readonly allowed: boolean
}

export async function verifyKey(t: Tester, deploy: Deploy): Promise<void> {
  await deploy({ maxStalenessMs: 700 }, async (service) => {
    await t.test('the whole shape', (t) => shape(t, service))
    await t.test('what it says of endpoints is what happens', (t) => truth(t, service))
    await t.test('a key that is being replaced', (t) => rotation(t, service))
    await t.test('it is never kept', (t) => kept(t, service))
  })
  await deploy({ limits: {} }, async (service) => {
    await t.test('what is left of each limit', (t) => limits(t, service))
  })
}

async function shape(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const { id, text } = world.keys['demo full']
  const before = Date.now()
  const heard = await post(service, '{"partner":"demo"}')
  const { data } = heard.json
  t.equal(heard.status, 200)
  t.strictSame(Object.keys(data).toSorted(), [
    'checked_at',
    'endpoints',
    'key',
    'limits',
    'max_staleness_ms',
    'modules',
    'partner',
    'scopes',
    'valid',
    'version',
  ])
  t.equal(data.valid, true)
  t.strictSame(data.partner, { slug: 'demo', name: 'Demo partner' })
  const { created_at: createdAt, ...key } = data.key
  const hint = `…${text.slice(-4)}`
  const expected = {
    id,
    name: 'WordPress plugin',
    environment: 'live',
    hint,
    expires_at: null,
    rotation: null,
  }
  t.strictSame(key, expected)
  t.ok(Date.parse(createdAt) >= world.importedAt - 60_000 && Date.parse(createdAt) <= before, 'created_at')
  const checkedAt = Date.parse(data.checked_at)
  t.ok(checkedAt >= before && checkedAt <= Date.now(), 'checked_at is now')
  t.strictSame([data.version, data.max_staleness_ms], [VERSION, 700])

  const scopes = Object.values(modules)
  t.strictSame(
    byName(data.scopes, 'scope'),
    byName(scopes.map((scope) => ({ scope, in_force: true })), 'scope'),
  )
  const everything = Object.keys(modules).map((module) => ({
    module,
    active: true,
    ready: true,
    missing_scope: null,
  }))
  t.strictSame(byName(data.modules, 'module'), byName(everything, 'module'))

  const test = await post(service, '{"partner":"demo"}', { key: world.keys['demo test'] })
  t.equal(test.json.data.key.environment, 'test', 'a test key')
  const expiresAt = Date.now() + 3_600_000
  const ending = await post(service, '{"partner":"demo"}', { key: await world.issue({ expiresAt }) })
  t.equal(ending.json.data.key.expires_at, new Date(expiresAt).toISOString(), 'a key with an expiry')
}

async function truth(t: Tester, service: Service): Promise<void> {
  const { world, root } = service
  const cases = [
    ['demo', world.keys['demo full'], Object.keys(modules)],
    ['demo', world.keys['demo profiles'], ['profiles']],
    ['demo', world.keys['demo powerless'], []],
    ['acme', world.keys['acme full'], [
      'widget',
      'profiles',
      'countries',
      'industries',
      'signup',
      'reporting',
    ]],
    ['kiosk', world.keys['kiosk full'], ['widget']],
  ] as const
  for (const [partner, key, ready] of cases) {
    const { data } = (await post(service, JSON.stringify({ partner }), { key })).json
    const facts = await world.partners.show(partner)
    const { scopes } = await world.keyRing.show(key.id)
    const names = Object.keys(modules) as (keyof typeof modules)[]
    const wanted = names.map((module) => {
      const held = scopes.includes(modules[module])
      const active = facts.modules.includes(module)
      return { module, active, ready: active && held, missing_scope: held ? null : modules[module] }
    })
    t.strictSame(byName(data.modules, 'module'), byName(wanted, 'module'), `modules of ${partner}`)
    const isReady = wanted.filter(({ ready }) => ready).map(({ module }) => module)
    t.strictSame(isReady.toSorted(), [...ready].toSorted(), 'the ones that are ready')
    const inForce = scopes.map((scope) => ({
      scope,
      in_force: facts.modules.some((module) => modules[module] === scope),
    }))
    t.strictSame(byName(data.scopes, 'scope'), byName(inForce, 'scope'), `scopes of ${partner}`)

    const told: readonly Endpoint[] = data.endpoints
    const possible = endpoints.map((parts) => parts.join(' '))
    const found = told.map(({ method, path, scope }) => `${method} ${path.replace(root, '')} ${scope}`)
    t.strictSame(found.toSorted(), possible.toSorted(), 'all endpoints, each once')
    for (const { scope, allowed, path } of told) {
      const module = names.find((name) => modules[name] === scope)
      t.equal(allowed, isReady.some((name) => name === module), `${partner} ${path}`)
    }
    for (const path of keyedPaths(service)) {
      const line = told.find((endpoint) => endpoint.path.replace('{slug}', 'universite-de-valmorne') === path)
      const { status } = await get(service, `${path.slice(root.length)}?partner=${partner}`, { key })
      t.equal(
        line?.allowed,
        status === 200 || status === 404,
        `${partner} ${path} does as was said: ${status}`,
      )
    }
  }
}

async function rotation(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const [old, successor] = [await world.issue({}), await world.issue({})]
  const retiresAt = Date.now() + 3_600_000
  await world.rotate(old.id, successor.id, retiresAt)
  const { data } = (await post(service, '{"partner":"demo"}', { key: old })).json
  t.strictSame(data.key.rotation, {
    successor_id: successor.id,
    retires_at: new Date(retiresAt).toISOString(),
  })
  const next = (await post(service, '{"partner":"demo"}', { key: successor })).json
  t.equal(next.data.key.rotation, null, 'its successor is not being replaced')
}

async function kept(t: Tester, service: Service): Promise<void> {
  const heard = await post(service, '{"partner":"demo"}', { headers: { 'if-none-match': '*' } })
  t.equal(heard.status, 200, 'no precondition applies')
  t.equal(heard.headers.get('cache-control'), 'no-store')
  const get = await service.send({ target: `${service.root}/developer/verify-key` })
  expectProblem(t, get, 'method_not_allowed', 'it is a POST')
}

interface Limit {
  readonly policy: string
  readonly quota: number
  readonly window_seconds: number
  readonly remaining: number
  readonly resets_in_seconds: number
}

async function limits(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const key = await world.issue({ limits: { key: { quota: 5, windowSeconds: 30 } } })
  const told = async (): Promise<readonly Limit[]> =>
    (await post(service, '{"partner":"demo"}', { key })).json.data.limits
  const shown = (limits: readonly Limit[]) =>
    limits.map(({ policy, quota, window_seconds: window, remaining }) => [policy, quota, window, remaining])
      .toSorted()

  t.strictSame(shown(await told()), [
    ['authfail', 20, 60, 20],
    ['key', 5, 30, 5],
    ['signup', 20, 60, 20],
    ['verify', 30, 60, 29],
  ], 'the policies that are on, with the numbers of this key')
  await get(service, '/public/plans?partner=demo', { key })
  await get(service, '/public/plans?partner=demo', { key })
  const after = await told()
  t.strictSame(shown(after), [
    ['authfail', 20, 60, 20],
    ['key', 5, 30, 3],
    ['signup', 20, 60, 20],
    ['verify', 30, 60, 28],
  ], 'reading spends `key`, asking spends `verify`')
  for (const { resets_in_seconds: seconds, window_seconds: window } of after) {
    t.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= window, 'whole seconds, within the window')
  }
  const off = await world.issue({ limits: { key: { quota: 0, windowSeconds: 60 } } })
  const { data } = (await post(service, '{"partner":"demo"}', { key: off })).json
  const names = data.limits.map(({ policy }: Limit) => policy).toSorted()
  t.strictSame(names, ['authfail', 'signup', 'verify'], 'a policy that is off is not named')
}

/** The contract fixes no order for these. */
function byName<T extends object>(items: readonly T[], name: keyof T): T[] {
  return items.toSorted((a, b) => String(a[name]) < String(b[name]) ? -1 : 1)
}
