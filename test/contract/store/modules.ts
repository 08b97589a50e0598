import { createClaim, revokeClaim } from '../../../core/admin/claims.ts'
import { createKeyAdministration } from '../../../core/admin/keys.ts'
import { createModuleAdministration } from '../../../core/admin/modules.ts'
import { createPartnerAdministration } from '../../../core/admin/partners.ts'
import { verifyAuditLog } from '../../../core/audit/verify.ts'
import type { Store } from '../../../core/ports/store.ts'
import type { Check } from './suites.ts'

const orders = { name: 'orders', scope: 'read:orders', feature: 'Orders' }
const exports = { name: 'a-export', scope: 'create:a-export', feature: 'Exports ñ \u{1f600}' }
const operator = { actor: 'grace' }

const administer = (store: Store) => ({
  modules: createModuleAdministration(store, operator),
  partners: createPartnerAdministration(store, operator),
  keys: createKeyAdministration(store, operator),
})

/** The error code of an administrative change; `undefined` when it succeeds. */
async function codeOf(change: Promise<unknown>): Promise<unknown> {
  try {
    await change
  } catch (error) {
    return (error as { code?: unknown }).code ?? error
  }
}

/** Modules that the operator has defined (contract, section 12). */
export async function modulesContract(check: Check): Promise<void> {
  await check('modules are listed in the order of definition, and forgotten', async (t, store) => {
    const { modules } = administer(store)
    for (const module of [orders, exports, orders]) t.strictSame(await modules.define(module), module)
    t.strictSame(store.knownModules(), [orders, exports], 'a service that is created next knows them')
    t.strictSame(await store.listModules(), [orders, exports])
    await modules.forget('orders')
    await modules.define(orders)
    t.strictSame(await store.listModules(), [exports, orders])
    const { facts } = await store.revision()
    await modules.forget('orders')
    t.ok((await store.revision()).facts !== facts, 'the revision of facts moves')
    t.strictSame(
      (await store.listAudit(0, 10)).map(({ type, subject, partner }) => [type, subject, partner]),
      [
        ['module.defined', 'orders', undefined],
        ['module.defined', 'a-export', undefined],
        ['module.forgotten', 'orders', undefined],
        ['module.defined', 'orders', undefined],
        ['module.forgotten', 'orders', undefined],
      ],
    )
    t.strictSame((await verifyAuditLog(store)).differences, [])
  })

  await check(
    'endpoints are recorded by service and name, and are no administrative change',
    async (t, store) => {
      const list = async () => await store.listEndpoints()
      t.strictSame(await list(), [])
      const { facts, content } = await store.revision()
      const show = {
        service: 'x',
        name: 'order',
        method: 'GET',
        path: '/x/orders/{id}',
        scope: 'read:orders',
        limits: ['key'],
      } as const
      const add = { ...show, name: 'order-create', method: 'POST', limits: ['key', 'signup'] } as const
      const open = { ...show, name: 'Health', path: '/x/health', scope: undefined, limits: [] }
      await store.recordEndpoints([add, show])
      await store.recordEndpoints([open])
      t.strictSame(await list(), [open, show, add])
      const moved = { ...add, path: '/y/orders', scope: undefined, limits: [] }
      await store.recordEndpoints([moved])
      t.strictSame(await list(), [open, show, moved])
      const renamed = { ...show, name: 'order-show' }
      await store.recordEndpoints([renamed])
      t.strictSame(await list(), [open, moved, renamed])
      const other = { ...renamed, service: 'y', path: '/y/orders/{id}' }
      await store.recordEndpoints([other])
      t.strictSame(await list(), [open, moved, renamed, other])
      t.strictSame(await store.revision(), { facts, content })
      t.strictSame(await store.listAudit(0, 10), [])
    },
  )

  await check(
    'partners and keys have defined modules and scopes after the built-in ones',
    async (t, store) => {
      const { modules, partners, keys } = administer(store)
      await modules.define(orders)
      await modules.define(exports)
      await partners.create({ slug: 'acme', name: 'Acme', modules: ['orders', 'banner', 'a-export'] })
      t.strictSame((await partners.show('acme')).modules, ['banner', 'a-export', 'orders'])
      const { key } = await keys.issue({ partner: 'acme', name: 'Key', environment: 'live' })
      const scopes = ['read:banner', 'create:a-export', 'read:orders']
      t.strictSame((await store.findKey(key.id))!.key.scopes, scopes)
      t.strictSame((await keys.rotate(key.id)).key.scopes, scopes)
      for (const scope of scopes) t.equal((await store.listKeys({ scope }, undefined, 10)).length, 2, scope)
      t.strictSame((await keys.remove(key.id, ['read:orders'])).scopes, scopes.slice(0, 2))
      t.equal((await store.listKeys({ scope: 'read:orders' }, undefined, 10)).length, 1)
      t.strictSame((await keys.grant(key.id, ['read:orders'])).scopes, scopes)
      await partners.deactivate('acme', ['a-export'])
      t.strictSame((await partners.show('acme')).modules, ['banner', 'orders'])
      t.equal(await codeOf(keys.grant(key.id, ['create:a-export'])), 'module_inactive')
      t.strictSame((await verifyAuditLog(store)).differences, [])
    },
  )

  await check(
    'a module in use is not forgotten, and a key that held it does not get it back',
    async (t, store) => {
      const { modules, partners, keys } = administer(store)
      await modules.define(orders)
      await partners.create({ slug: 'acme', name: 'Acme', modules: ['orders'] })
      const { key } = await keys.issue({ partner: 'acme', name: 'Key', environment: 'live' })
      t.equal(await codeOf(modules.forget('orders')), 'module_in_use')
      await partners.deactivate('acme', ['orders'])
      t.equal(await codeOf(modules.forget('orders')), 'module_in_use')
      const { key: successor } = await keys.rotate(key.id)
      await keys.remove(successor.id, ['read:orders'])
      t.equal(await codeOf(modules.forget('orders')), 'module_in_use', 'the key retires')
      await keys.disable(key.id)
      await partners.activate('acme', ['orders'])
      const offer = () =>
        createClaim(store, operator, { partner: 'acme', name: 'Key', environment: 'live' }, 3_600_000)
      const { claim } = await offer()
      const { claim: other } = await offer()
      await partners.deactivate('acme', ['orders'])
      t.equal(
        await codeOf(modules.forget('orders')),
        'module_in_use',
        'a link would make a key with its scope',
      )
      await revokeClaim(store, operator, claim.id)
      t.equal(await codeOf(modules.forget('orders')), 'module_in_use')
      await revokeClaim(store, operator, other.id)
      await modules.forget('orders')
      await modules.define(orders)
      await partners.activate('acme', ['orders'])
      t.strictSame((await keys.enable(key.id)).scopes, [])
      t.strictSame((await verifyAuditLog(store)).differences, [])
    },
  )

  await check('24 modules are forgotten and defined anew, and nobody has them back', async (t, store) => {
    const { modules, partners, keys } = administer(store)
    const numbers = [...Array(24).keys()]
    const names = numbers.map((number) => `m${number}`)
    const issue = async () => (await keys.issue({ partner: 'acme', name: 'Key', environment: 'live' })).key.id
    await partners.create({ slug: 'acme', name: 'Acme', modules: [] })
    await partners.create({ slug: 'globex', name: 'Globex', modules: [] })
    const earlier: string[] = []
    for (const shift of [0, 1, 7]) {
      const scopes = numbers.map((number) => `read:s${(number + shift) % 24}`)
      for (const [index, name] of names.entries()) {
        await modules.define({ name, scope: scopes[index]!, feature: name })
      }
      for (const slug of ['acme', 'globex']) {
        t.strictSame((await partners.show(slug)).modules, [])
        await partners.activate(slug, names)
      }
      for (const id of earlier) t.strictSame((await store.findKey(id))!.key.scopes, [], id)
      const held = await issue()
      const disabled = await issue()
      const revoked = await issue()
      const rotated = await issue()
      t.strictSame((await store.findKey(held))!.key.scopes, scopes.toSorted())
      const successor = (await keys.rotate(rotated)).key.id
      await keys.revoke(revoked)
      for (const scope of scopes) t.equal((await store.listKeys({ scope }, undefined, 10)).length, 5, scope)
      for (const slug of ['acme', 'globex']) await partners.deactivate(slug, names)
      for (const id of [held, rotated, successor]) await keys.remove(id, scopes)
      await keys.disable(disabled)
      for (const name of names.toReversed()) await modules.forget(name)
      await keys.enable(disabled)
      earlier.push(held, disabled, revoked, rotated, successor)
    }
    t.strictSame(await store.listModules(), [])
    t.strictSame((await verifyAuditLog(store)).differences, [])
  })

  await check('what cannot be a module is refused, and nothing is stored', async (t, store) => {
    const { modules } = administer(store)
    await modules.define(orders)
    for (
      const [code, wrong] of [
        ['invalid_module', { name: 'banner' }],
        ['invalid_module', { name: 'Orders' }],
        ['invalid_module', { name: '1st' }],
        ['invalid_module', { name: 'a'.repeat(41) }],
        ['invalid_module', { name: 'new', scope: 'list:orders' }],
        ['invalid_module', { name: 'new', scope: 'read:' }],
        ['invalid_module', { name: 'new', scope: `read:${'a'.repeat(41)}` }],
        ['invalid_module', { name: 'new', feature: ' ' }],
        ['module_exists', { name: 'new' }],
        ['module_exists', { name: 'new', scope: 'read:banner' }],
        ['module_exists', { scope: 'create:orders' }],
        ['module_exists', { feature: 'Another' }],
      ] as const
    ) t.equal(await codeOf(modules.define({ ...orders, ...wrong })), code, JSON.stringify(wrong))
    t.equal(await codeOf(modules.forget('new')), 'module_not_found')
    t.equal(await codeOf(modules.forget('banner')), 'invalid_module')
    const names = Array.from({ length: 23 }, (_, index) => `m${index}`)
    for (const name of names) await modules.define({ name, scope: `read:${name}`, feature: name })
    t.equal(
      await codeOf(modules.define({ name: 'm23', scope: 'read:m23', feature: 'One more' })),
      'too_many_modules',
    )
    await modules.forget('m0')
    await modules.define({ name: 'm23', scope: 'read:m23', feature: 'In its place' })
    t.strictSame((await store.listModules()).map(({ name }) => name), ['orders', ...names.slice(1), 'm23'])
  })
}
