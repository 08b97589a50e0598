/** Section 13, rotation and revocation by partners: what the contract suites cannot see. */
import t from 'tap'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { LogEvent } from '../../core/log.ts'
import type { KeyFacts } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import type { OpenStores } from '../contract/http/deploy.ts'
import { memory, sqliteFile } from '../contract/http/stores.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { serveStore, withService } from '../support/partner-service.ts'
import { until } from '../postgres/until.ts'

const members = { partner: 'acme' }

/** A service whose partner may do both. */
async function serveSelfService(store?: Store, options: PartnerApiOptions = {}) {
  const service = await serveStore(store ?? await openMemoryStore(), options)
  await service.world.partners.update('acme', { selfService: ['rotate', 'revoke'] })
  const key = await service.world.issue({ partner: 'acme' })
  const act = (action: string, sender = key) =>
    service.post(`/developer/${action}-key`, members, { key: sender })
  return { ...service, key, act }
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

for (const open of [memory, sqliteFile]) {
  t.test(`${open.name}: of concurrent rotations, one successor stays in force, and no response has another`, (t) => {
    const { openGated, close } = gated(open)
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
        for await (const { id, createdAt, state } of world.keyRing.list({ partner: 'acme' })) {
          if (createdAt >= startedAt && id !== successorId && id !== key.id) t.equal(state, 'revoked')
        }
      }
    })
  })
}

t.test('the audit log names the key, and no log has its text', async (t) => {
  const log: LogEvent[] = []
  const options = { log: (event: LogEvent) => void log.push(event), logLevel: 'all' as const }
  const { act, key, store, world } = await serveSelfService(undefined, options)
  const { sequence } = await store.auditHead()
  const [first, second] = [await act('rotate'), await act('rotate')].map(({ json }) => json.data)
  await act('revoke', { id: second.id, text: second.key })
  const entries = await store.listAudit(sequence, 100)
  t.strictSame(entries.map(({ actor, type, keyId }) => [actor, type, keyId]), [
    [`key:${key.id}`, 'key.issued', first.id],
    [`key:${key.id}`, 'key.rotated', key.id],
    [`key:${key.id}`, 'key.issued', second.id],
    [`key:${key.id}`, 'key.rotated', key.id],
    [`key:${key.id}`, 'key.revoked', first.id],
    [`key:${second.id}`, 'key.revoked', second.id],
  ])
  t.equal((await world.keyRing.show(second.id)).state, 'revoked')
  const written = JSON.stringify([log, entries])
  for (const text of [key.text, first.key, second.key]) t.notOk(written.includes(text))
})

t.test('the first use of a key is recorded at once, and by this server known before that', async (t) => {
  let isDown = true
  const used: string[] = []
  const { act, request, world } = await serveSelfService(
    await storeWith(({ recordKeyUses }) => ({
      recordKeyUses: (uses) => {
        if (isDown) throw new Error('silent')
        used.push(...uses.keys())
        return recordKeyUses(uses)
      },
    })),
  )
  const { json: { data } } = await act('rotate')
  await request('/partner-widget?partner=acme', { key: { text: data.key } })
  const refused = await act('rotate')
  t.strictSame([refused.status, refused.json.code], [409, 'rotation_conflict'], 'known by this server')
  isDown = false
  const next = await world.issue({ partner: 'acme' })
  await request('/partner-widget?partner=acme', { key: next })
  await until(() => used.includes(next.id) && used.includes(data.id), 'both uses')
  t.ok((await world.keyRing.show(data.id)).lastUsedAt, 'known by others')
})

t.test('what an operator has taken from a successor does not come back with the next one', async (t) => {
  const { act, key, world: { keyRing } } = await serveSelfService()
  const expiresAt = Date.now() + 86_400_000
  const { key: first } = await keyRing.rotate(key.id, { expiresAt })
  const allow = ['0.0.0.0/0', '::/0', '192.0.2.0/24']
  await keyRing.update(first.id, {
    allow,
    limits: { set: { key: { quota: 7, windowSeconds: 60 } }, clear: [] },
  })
  await keyRing.remove(first.id, first.scopes.slice(1))
  await keyRing.disable(first.id)
  const { status, json } = await act('rotate')
  t.equal(status, 201)
  const rights = async (id: string) => {
    const { allow, limits, scopes, expiresAt } = await keyRing.show(id)
    return { allow, limits, scopes, expiresAt }
  }
  t.strictSame(await rights(json.data.id), await rights(first.id))
  t.strictSame([json.data.expires_at, json.data.scopes], [
    new Date(expiresAt).toISOString(),
    first.scopes.slice(0, 1),
  ])
  t.equal((await keyRing.show(json.data.id)).state, 'active')
})

t.test('a successor that an operator let expire is not replaced', async (t) => {
  const { act, store } = await serveSelfService()
  const { json: { data } } = await act('rotate')
  const now = Date.now()
  const keys = createKeyAdministration(store, { actor: 'operator', clock: () => now - 2_000 })
  await keys.update(data.id, { expiresAt: now - 1_000 })
  t.equal((await act('rotate')).json.code, 'rotation_conflict')
})

t.test('a use that another server has recorded keeps the successor', async (t) => {
  const { act, store } = await serveSelfService()
  const { json: { data } } = await act('rotate')
  await store.recordKeyUses(new Map([[data.id, Date.now()]]))
  t.equal((await act('rotate')).json.code, 'rotation_conflict')
})

t.test('a use that is recorded while the successor is read, or that a standby lacks, keeps it', async (t) => {
  const { act, store } = await serveSelfService(
    await storeWith(({ findKey }) => ({
      findKey(id) {
        const { key, partner } = findKey(id) as KeyFacts
        return { key: { ...key, lastUsedAt: undefined }, partner }
      },
    })),
  )
  const { json: { data } } = await act('rotate')
  await store.recordKeyUses(new Map([[data.id, Date.now()]]))
  t.equal((await act('rotate')).json.code, 'rotation_conflict')
  t.equal((await store.findKey(data.id))?.key.state, 'active')
})

t.test('a use that another server is about to record keeps the successor', async (t) => {
  const { act, store } = await serveSelfService()
  const other = createPartnerApi({ store }, { maxStalenessMs: 0 })
  const { json: { data } } = await act('rotate')
  const headers = { 'x-service-partner-key': data.key }
  const request = new Request('http://localhost/service/partner-widget?partner=acme', { headers })
  await (await other.fetch(request)).text()
  t.equal((await act('rotate')).json.code, 'rotation_conflict')
  await other.close()
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
  t.equal((await world.keyRing.show(successorId!)).state, 'revoked')
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
  for (const [end, code] of [['revoke', 'key_revoked'], ['disable', 'key_disabled']] as const) {
    let before: () => unknown = () => undefined
    const { act, key, world } = await serveSelfService(
      await storeWith(({ revision }) => ({
        revision: async () => (await before(), await revision()),
      })),
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

t.test('a change takes effect in its process before the response', async (t) => {
  const { act, key, request } = await serveSelfService(undefined, { maxStalenessMs: 10_000 })
  await act('rotate')
  t.equal((await act('rotate')).status, 201, 'the first successor is known')
  t.equal((await act('revoke')).status, 200)
  t.equal((await request('/partner-widget?partner=acme', { key })).json.code, 'key_revoked')
})
