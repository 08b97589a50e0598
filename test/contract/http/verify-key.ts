/** Section 4, verify-key: it predicts the outcome of requests. */
import { SCOPED_ENDPOINTS, SCOPES } from './expect.ts'
import type { TestKey } from '../../support/world.ts'
import { get, post, type Service, type Suite, type TestContext, until, VERSION } from './service.ts'

type Module = keyof typeof SCOPES
const modules = Object.keys(SCOPES) as Module[]

export const verifyKey: readonly Suite[] = [{
  settings: { maxStalenessMs: 200 },
  tests: { 'the response has all members': responseMembers },
}, {
  tests: {
    'endpoints are allowed exactly as reported': predictedEndpoints,
    'a rotated key reports its successor': rotatedKey,
    'the response is not cached': notCached,
    'own modules and scopes follow the built-in ones': ownModules,
  },
}, { settings: { limits: {} }, tests: { 'limits report the remaining quota': remainingQuotas } }]

async function responseMembers(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const { id, text } = world.keys['demo full']
  const before = Date.now()
  const { status, json: { data } } = await post(service, '{"partner":"demo"}')
  const {
    key: { created_at: createdAt, ...key },
    checked_at: checkedAt,
    limits,
    endpoints,
    ...rest
  } = data
  t.equal(status, 200)
  t.ok(limits.length === 4 && endpoints.length === 11, 'four limits and eleven endpoints')
  t.strictSame(key, {
    id,
    name: 'WordPress plugin',
    environment: 'live',
    hint: `…${text.slice(-4)}`,
    expires_at: null,
    rotation: null,
  })
  t.ok(Date.parse(createdAt) >= world.importedAt - 60_000 && Date.parse(createdAt) <= before, 'created_at')
  t.ok(Date.parse(checkedAt) >= before && Date.parse(checkedAt) <= Date.now(), 'checked_at is now')
  const sorted = { ...rest, scopes: byName(rest.scopes, 'scope'), modules: byName(rest.modules, 'module') }
  t.strictSame(sorted, {
    valid: true,
    partner: { slug: 'demo', name: 'Demo partner' },
    scopes: byName(modules.map((module) => ({ scope: SCOPES[module], in_force: true })), 'scope'),
    modules: byName(
      modules.map((module) => ({ module, active: true, ready: true, missing_scope: null })),
      'module',
    ),
    version: VERSION,
    max_staleness_ms: 200,
  })

  const test = await post(service, '{"partner":"demo"}', { key: world.keys['demo test'] })
  t.equal(test.json.data.key.environment, 'test', 'a test key')
  const expiresAt = Date.now() + 3_600_000
  const ending = await post(service, '{"partner":"demo"}', { key: await world.issue({ expiresAt }) })
  t.equal(ending.json.data.key.expires_at, new Date(expiresAt).toISOString(), 'a key with an expiry')
}

async function predictedEndpoints(t: TestContext, service: Service): Promise<void> {
  const { world, root } = service
  const cases = [
    ['demo', 'demo full', modules],
    ['demo', 'demo profiles', ['profiles']],
    ['demo', 'demo powerless', []],
    ['acme', 'acme full', ['widget', 'profiles', 'countries', 'industries', 'signup', 'reporting']],
    ['kiosk', 'kiosk full', ['widget']],
  ] as const
  for (const [partner, name, ready] of cases) {
    const key = world.keys[name]
    const { data } = (await post(service, JSON.stringify({ partner }), { key })).json
    const active: readonly string[] = (await world.partners.show(partner)).modules
    const held: readonly string[] = (await world.keyRing.show(key.id)).scopes
    const isReady = (module: Module): boolean => ready.some((one) => one === module)
    const wanted = modules.map((module) => ({
      module,
      active: active.includes(module),
      ready: isReady(module),
      missing_scope: held.includes(SCOPES[module]) ? null : SCOPES[module],
    }))
    t.strictSame(byName(data.modules, 'module'), byName(wanted, 'module'), `modules of ${partner}`)
    const scopes = modules.filter((module) => held.includes(SCOPES[module]))
      .map((module) => ({ scope: SCOPES[module], in_force: active.includes(module) }))
    t.strictSame(byName(data.scopes, 'scope'), byName(scopes, 'scope'), `scopes of ${partner}`)
    const endpoints = SCOPED_ENDPOINTS.map(({ method, path, module }) => ({
      method,
      path: root + path,
      scope: SCOPES[module],
      allowed: isReady(module),
    }))
    t.strictSame(byName(data.endpoints, 'path'), byName(endpoints, 'path'), `endpoints of ${partner}`)
    for (const { method, path, module } of SCOPED_ENDPOINTS) {
      if (method !== 'GET') continue
      const target = `${path.replace('{slug}', 'universite-de-valmorne')}?partner=${partner}`
      const { status } = await get(service, target, { key })
      t.equal(status === 200 || status === 404, isReady(module), `${target}: ${status}`)
    }
  }
}

async function rotatedKey(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const old = await world.issue({})
  const successor = await world.issue({})
  const retiresAt = Date.now() + 3_600_000
  await world.rotate(old.id, successor.id, retiresAt)
  const rotationOf = async (key: { readonly text: string }): Promise<unknown> =>
    (await post(service, '{"partner":"demo"}', { key })).json.data.key.rotation
  const expected = { successor_id: successor.id, retires_at: new Date(retiresAt).toISOString() }
  t.strictSame(await rotationOf(old), expected)
  t.equal(await rotationOf(successor), null, 'the successor has no rotation')
}

async function ownModules(t: TestContext, service: Service): Promise<void> {
  const { modules: defined, partners, issue } = service.world
  const request = (key: TestKey) => post(service, '{"partner":"owner"}', { key })
  const read = async (key: TestKey) => {
    const { modules, scopes } = (await request(key)).json.data
    return { modules: modules.slice(8), scopes: scopes.slice(1) }
  }
  await partners.create({ slug: 'owner', name: 'Owner', modules: ['banner'] })
  const before = await issue({ partner: 'owner' })
  t.strictSame(await read(before), { modules: [], scopes: [] })
  for (const name of ['orders', 'exports']) {
    await defined.define({ name, scope: `read:${name}`, feature: name })
  }
  await partners.activate('owner', ['orders'])
  const key = await issue({ partner: 'owner' })
  const exports = { module: 'exports', active: false, ready: false, missing_scope: 'read:exports' }
  t.strictSame(await read(key), {
    modules: [{ module: 'orders', active: true, ready: true, missing_scope: null }, exports],
    scopes: [{ scope: 'read:orders', in_force: true }],
  })
  await partners.deactivate('owner', ['orders'])
  await until(() => request(key), ({ json }) => !json.data.scopes[1].in_force)
  const orders = { module: 'orders', active: false, ready: false, missing_scope: 'read:orders' }
  t.strictSame(await read(before), { modules: [orders, exports], scopes: [] })
}

async function notCached(t: TestContext, service: Service): Promise<void> {
  const response = await post(service, '{"partner":"demo"}', { headers: { 'if-none-match': '*' } })
  t.equal(response.status, 200, 'If-None-Match is ignored')
  t.equal(response.headers.get('cache-control'), 'no-store')
}

interface Limit {
  readonly policy: string
  readonly quota: number
  readonly window_seconds: number
  readonly remaining: number
  readonly resets_in_seconds: number
}

async function remainingQuotas(t: TestContext, service: Service): Promise<void> {
  const key = await service.world.issue({ limits: { key: { quota: 5, windowSeconds: 30 } } })
  const read = async (): Promise<readonly Limit[]> =>
    byName((await post(service, '{"partner":"demo"}', { key })).json.data.limits, 'policy')
  const shown = (limits: readonly Limit[]) =>
    limits.map(({ policy, quota, window_seconds: window, remaining }) =>
      `${policy} ${remaining} of ${quota} in ${window} s`
    )
  const authfail = 'authfail 20 of 20 in 60 s'
  const signup = 'signup 20 of 20 in 60 s'
  t.strictSame(shown(await read()), [authfail, 'key 5 of 5 in 30 s', signup, 'verify 29 of 30 in 60 s'])
  await get(service, '/public/plans?partner=demo', { key })
  await get(service, '/public/plans?partner=demo', { key })
  const after = await read()
  const spent = [authfail, 'key 3 of 5 in 30 s', signup, 'verify 28 of 30 in 60 s']
  t.strictSame(shown(after), spent, 'GET spends `key`, verify-key spends `verify`')
  for (const { resets_in_seconds: seconds, window_seconds: window } of after) {
    t.ok(
      Number.isInteger(seconds) && seconds >= 1 && seconds <= window,
      'an integer of seconds within the window',
    )
  }
}

/** Sorts a list whose order the contract leaves open. */
function byName<T extends object>(items: readonly T[], name: keyof T): T[] {
  return items.toSorted((a, b) => String(a[name]) < String(b[name]) ? -1 : 1)
}
