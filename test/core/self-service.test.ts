/** Section 13, rotation and revocation by partners: what the contract suites cannot see. */
import t from 'tap'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import type { LogEvent } from '../../core/log.ts'
import type { Store } from '../../core/ports/store.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import type { OpenStores } from '../contract/http/deploy.ts'
import { sqliteFile } from '../contract/http/stores.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { serveStore, withService } from '../support/partner-service.ts'
import type { World } from '../support/world.ts'

const members = { partner: 'acme' }
/** The client of every request. */
const headers = { 'x-forwarded-for': '192.0.2.7' }
const DAY = 86_400_000

/** A service whose partner may do both. */
async function serveSelfService(store?: Store, options: PartnerApiOptions = {}) {
  const service = await serveStore(store ?? await openMemoryStore(), { trustedProxies: 1, ...options })
  await service.world.partners.update('acme', { selfService: ['rotate', 'revoke'] })
  const key = await service.world.issue({ partner: 'acme' })
  const act = (action: string, sender: { readonly text: string } = key, more: object = {}) =>
    service.post(`/developer/${action}-key`, { ...members, ...more }, { key: sender, headers })
  /** Rotates a key. @returns The response's `data`, with the text of the key. */
  const rotate = async (sender: { readonly text: string } = key, overlapSeconds?: number) => {
    const { status, json } = await act('rotate', sender, { overlap_seconds: overlapSeconds ?? null })
    return { status, code: json.code, detail: json.detail, id: json.data?.id, text: json.data?.key }
  }
  const stateOf = async (id: string) => keyState(await service.world.keyRing.show(id), Date.now())
  return { ...service, key, act, rotate, stateOf }
}

/** Stores whose next eight changes, after `close()`, wait for each other. */
function gated(open: () => Promise<OpenStores>) {
  let gate: { waiting: number; opened: PromiseWithResolvers<void> } | undefined
  const openGated = async (): Promise<OpenStores> => {
    const stores = await open()
    const apply: Store['apply'] = async (...change) => {
      if (gate && ++gate.waiting === 8) gate.opened.resolve()
      await gate?.opened.promise
      return stores.operator.apply(...change)
    }
    return { ...stores, operator: { ...stores.operator, apply } }
  }
  return { openGated, close: () => void (gate = { waiting: 0, opened: Promise.withResolvers() }) }
}

/** A store in which some methods are replaced. */
async function storeWith(replace: (store: Store) => Partial<Store>): Promise<Store> {
  const store = await openMemoryStore()
  return { ...store, ...replace(store) }
}

t.test('of concurrent rotations, one successor stays active, and no response has another', (t) => {
  const { openGated, close } = gated(sqliteFile)
  return withService(openGated, async ({ world, post }) => {
    await world.partners.update('acme', { selfService: ['rotate'] })
    const startedAt = Date.now()
    const key = await world.issue({ partner: 'acme' })
    for (let round = 0; round < 3; round++) {
      const rotate = () => post('/developer/rotate-key', members, { key })
      close()
      const responses = await Promise.all(Array.from({ length: 8 }, rotate))
      const made = responses.filter(({ status }) => status === 201).map(({ json }) => json.data.id)
      const codes = responses.filter(({ status }) => status !== 201).map(({ json }) => json.code)
      const { successorId } = await world.keyRing.show(key.id)
      t.strictSame(made, [successorId], 'one is answered with the successor')
      t.strictSame(codes, Array(7).fill('rotation_conflict'))
      for await (const each of world.keyRing.list({ partner: 'acme' })) {
        const isActive = keyState(each, Date.now()) === 'active'
        if (each.createdAt >= startedAt) {
          t.equal(isActive, each.id === successorId)
        }
      }
    }
  })
})

t.test('the audit log names the key, and no log has its text', async (t) => {
  const log: LogEvent[] = []
  const options = { log: (event: LogEvent) => void log.push(event), logLevel: 'all' as const }
  const { act, rotate, key, store, world } = await serveSelfService(undefined, options)
  const { sequence } = await store.auditHead()
  const first = await rotate()
  const second = await rotate()
  await act('revoke', second)
  const entries = await store.listAudit(sequence, 100)
  t.strictSame(entries.map(({ actor, type, keyId }) => [actor, type, keyId]), [
    [`key:${key.id}`, 'key.issued', first.id],
    [`key:${key.id}`, 'key.rotated', key.id],
    [`key:${key.id}`, 'key.issued', second.id],
    [`key:${key.id}`, 'key.rotated', key.id],
    [`key:${key.id}`, 'key.rotated', first.id],
    [`key:${second.id}`, 'key.revoked', second.id],
  ])
  t.equal((await world.keyRing.show(second.id)).state, 'revoked')
  const written = JSON.stringify([log, entries])
  for (const text of [key.text, first.text, second.text]) {
    t.notOk(written.includes(text))
  }
})

t.test('a key whose limits or addresses cannot be compared with those of its successor is not rotated', async (t) => {
  const { world: { keyRing, issue }, rotate, store } = await serveSelfService()
  const limits = { key: { quota: 9, windowSeconds: 60 } }
  const key = await issue({ partner: 'acme', allow: ['0.0.0.0/0', '::/0'], limits })
  await rotate(key)
  const { sequence } = await store.auditHead()
  await keyRing.update(key.id, { limits: { set: { key: { quota: 9, windowSeconds: 61 } } } })
  t.match(await rotate(key), { status: 409, code: 'rotation_conflict', detail: /windows/ })
  await keyRing.update(key.id, { limits: { set: { key: { quota: 0, windowSeconds: 61 } } } })
  const { id } = await rotate(key)
  t.strictSame((await keyRing.show(id)).limits, limits, 'without a limit, a window has no meaning')
  const types = (await store.listAudit(sequence, 100)).map(({ type }) => type)
  t.strictSame(types.slice(0, 3), ['key.updated', 'key.updated', 'key.issued'], 'nothing was changed before')
})

t.test('a limit of the service is compared with that of a key', async (t) => {
  const service = { key: { quota: 100, windowSeconds: 60 } }
  const { world: { keyRing, partners, issue }, rotate } = await serveSelfService(undefined, {
    limits: service,
  })
  const limited = async (quota: number) => {
    const key = await issue({ partner: 'acme' })
    await rotate(key)
    await keyRing.update(key.id, { limits: { set: { key: { quota, windowSeconds: 60 } } } })
    const made = await rotate(key)
    return made.status === 201 ? (await keyRing.show(made.id)).limits : made.code
  }
  t.strictSame(await limited(99), { key: { quota: 99, windowSeconds: 60 } })
  t.strictSame(await limited(101), {}, 'its unused successor has that of the service')
  await partners.update('acme', { limits: { set: { key: { quota: 50, windowSeconds: 60 } } } })
  t.strictSame(await limited(99), {}, 'that of the partner comes before')
})

t.test('a successor that anyone else has changed is not replaced', async (t) => {
  const changes: Record<
    string,
    (world: World, id: string) => Promise<unknown>
  > = {
    revoked: ({ keyRing }, id) => keyRing.revoke(id),
    disabled: ({ keyRing }, id) => keyRing.disable(id),
    enabled: async ({ keyRing }, id) => (await keyRing.disable(id), await keyRing.enable(id)),
    renamed: ({ keyRing }, id) => keyRing.update(id, { name: 'Other' }),
    cut: ({ keyRing }, id) => keyRing.remove(id, ['read:profiles']),
    rotated: ({ keyRing }, id) => keyRing.rotate(id),
  }
  const { world, rotate, store } = await serveSelfService()
  for (const [name, change] of Object.entries(changes)) {
    const key = await world.issue({ partner: 'acme' })
    const { id } = await rotate(key)
    await change(world, id)
    const { sequence } = await store.auditHead()
    t.match(await rotate(key), { status: 409, code: 'rotation_conflict' }, name)
    t.equal((await store.auditHead()).sequence, sequence, 'nothing was changed')
  }
})

t.test('a successor that an operator let expire is not replaced', async (t) => {
  const { world: { issue }, rotate, store } = await serveSelfService()
  const now = Date.now()
  const key = await issue({ partner: 'acme' })
  const keys = createKeyAdministration(store, { actor: 'operator', clock: () => now - 2_000 })
  await keys.rotate(key.id, { expiresAt: now - 1_000 })
  t.equal((await rotate(key)).code, 'rotation_conflict')
})

t.test('a used successor whose use no store knows yet works until the key itself ends', async (t) => {
  const { rotate, key, request, world: { keyRing }, store } = await serveSelfService()
  const use = (sender: { readonly text: string }) =>
    request('/partner-widget?partner=acme', { key: sender, headers }).then(({ status }) => status)
  const first = await rotate(key, 3_600)
  // Used on another server, which could not record it.
  t.equal((await rotate(key)).status, 201)
  t.equal(await use(first), 200)
  const ends = await Promise.all(
    [key.id, first.id].map(async (id: string) => (await keyRing.show(id)).retiresAt),
  )
  t.equal(ends[0], ends[1])
  await store.recordKeyUses(new Map([[first.id, Date.now()]]))
  t.equal((await rotate(key, 0)).status, 201)
  t.equal((await rotate(key)).code, 'key_expired')
})

t.test('unused keys that are no former successors stay in force', async (t) => {
  const { rotate, world: { keyRing, issue }, stateOf } = await serveSelfService()
  const unused = await issue({ partner: 'acme' })
  const successor = await keyRing.rotate(unused.id, { overlapMs: 30 * DAY })
  const second = await rotate(successor)
  t.equal(second.status, 201)
  t.equal((await rotate(second)).code, 'rotation_conflict')
  t.equal(await stateOf(unused.id), 'retiring')
})

t.test('what takes a right away while a change waits for the store refuses it', async (t) => {
  const cases: Record<
    string,
    readonly [(world: World, id: string) => Promise<unknown>, code: string]
  > = {
    'self-service': [({ partners }) => partners.update('acme', { selfService: [] }), 'self_service_disabled'],
    suspension: [({ partners }) => partners.suspend('acme'), 'partner_suspended'],
    addresses: [({ keyRing }, id) => keyRing.update(id, { allow: ['192.0.2.8'] }), 'address_not_allowed'],
    revocation: [({ keyRing }, id) => keyRing.revoke(id), 'key_revoked'],
    disabling: [({ keyRing }, id) => keyRing.disable(id), 'key_disabled'],
  }
  for (const [name, [change, code]] of Object.entries(cases)) {
    for (const action of ['rotate', 'revoke']) {
      let whilePending: () => unknown = () => undefined
      const { act, key, store, world } = await serveSelfService(
        await storeWith(({ apply }) => ({
          async apply(changes, revision, context) {
            if (context.actor.startsWith('key:')) await whilePending()
            return apply(changes, revision, context)
          },
        })),
      )
      let sequence = 0
      whilePending = async () => {
        whilePending = () => undefined
        await change(world, key.id)
        sequence = (await store.auditHead()).sequence
      }
      const { json } = await act(action)
      t.equal(json.code, code, `${action}, ${name}`)
      t.equal((await store.auditHead()).sequence, sequence, 'nothing was changed after it')
    }
  }
})

t.test('a rotation whose outcome is unknown can be repeated', async (t) => {
  let isSilent = true
  const silent = new Promise<never>(() => {})
  const { act, world, key } = await serveSelfService(
    await storeWith(({ apply }) => ({
      async apply(changes, revision, context) {
        const isApplied = await apply(changes, revision, context)
        return context.actor.startsWith('key:') && isSilent ? await silent : isApplied
      },
    })),
    { storeTimeoutMs: 20 },
  )
  const lost = await act('rotate')
  t.strictSame([lost.status, lost.json.code, lost.headers.get('retry-after')], [
    503,
    'store_unavailable',
    '1',
  ])
  const { successorId } = await world.keyRing.show(key.id)
  t.ok(successorId, 'it was applied')
  isSilent = false
  const { status, json } = await act('rotate')
  t.equal(status, 201)
  t.equal((await world.keyRing.show(successorId!)).successorId, json.data.id, 'it ends with the key')
  t.equal((await world.keyRing.show(key.id)).successorId, json.data.id)
})

t.test('changes of others are retried, and too many of them are an overload', async (t) => {
  let conflicts = 3
  const { act } = await serveSelfService(
    await storeWith(({ apply }) => ({
      apply: (changes, revision, context) =>
        context.actor.startsWith('key:') && conflicts-- > 0 ? false : apply(changes, revision, context),
    })),
  )
  t.equal((await act('rotate')).status, 201)
  conflicts = 1_000
  const response = await act('rotate')
  t.strictSame([response.status, response.json.code], [503, 'overloaded'])
  t.equal(response.headers.get('retry-after'), '1')
})

t.test('a key that ends while its request waits is refused with its state', async (t) => {
  for (
    const [end, code] of [['revoke', 'key_revoked'], ['disable', 'key_disabled']] as const
  ) {
    let before: () => unknown = () => undefined
    const { act, key, world } = await serveSelfService(
      await storeWith(({ revision }) => ({ revision: async () => (await before(), await revision()) })),
      { maxStalenessMs: 10_000 },
    )
    await act('verify')
    before = () => {
      before = () => undefined
      return world.keyRing[end](key.id)
    }
    const response = await act('rotate')
    t.strictSame([response.status, response.json.code], [401, code])
  }
})
