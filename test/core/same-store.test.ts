/** Several services of one process on one store. */
import t from 'tap'
import { serve } from '../../adapters/runtimes/node.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createPartnerApi, type PartnerApi } from '../../core/api.ts'
import { internalsOf } from '../../core/internals.ts'
import type { Store } from '../../core/ports/store.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { plan, stamp } from '../contract/store/samples.ts'
import { newFile } from '../support/cli-program.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createPartner } from '../support/partner.ts'

const limits = { key: { quota: 4, windowSeconds: 60 } }
const path = '/service/public/plans?partner=acme'

/** The store as the command line wraps it. */
async function openWrapped(): Promise<Store> {
  return { ...await openMemoryStore() }
}

const stores = {
  'a file': () => openSqliteStore(newFile()),
  'a file with shared limits': () => openSqliteStore(newFile(), { shareLimits: true }),
  'memory': openMemoryStore,
  'a copied object': openWrapped,
}

async function statusOf(api: PartnerApi, key: string): Promise<number> {
  const response = await api.fetch(
    new Request(`http://localhost${path}`, { headers: { 'x-service-partner-key': key } }),
  )
  return response.status
}

for (const [name, open] of Object.entries(stores)) {
  t.test(`two services share limits: ${name}`, async (t) => {
    const store = await open()
    const { issue } = await createPartner(store)
    const { text } = await issue()
    const options: PartnerApiOptions = { limits }
    const services = [
      createPartnerApi({ store }, options),
      createPartnerApi({ store: name === 'a copied object' ? { ...store } : store }, options),
    ]
    const statuses: number[] = []
    for (let turn = 0; turn < 4; turn++) {
      for (const service of services) statuses.push(await statusOf(service, text))
    }
    t.strictSame(statuses, [200, 200, 200, 200, 429, 429, 429, 429])
    const counted = await Promise.all(
      services.map(async (service) => (await internalsOf(service).measurements()).limits.key),
    )
    t.strictSame(counted, [{ allowed: 2, refused: 2 }, { allowed: 2, refused: 2 }], 'each reports its own')
    await Promise.all(services.map((service) => service.close()))
    await store.close()
  })
}

t.test('two servers of a process share limits, without sharing them with other processes, too', async (t) => {
  const store = await openMemoryStore({ shareLimits: false })
  const { issue } = await createPartner(store)
  const { text } = await issue()
  const servers = await Promise.all(
    [1, 2].map(() => serve(createPartnerApi({ store }, { limits }), { port: 0 })),
  )
  const statuses: number[] = []
  for (let turn = 0; turn < 3; turn++) {
    for (const { url } of servers) {
      const response = await fetch(`${url}${path}`, { headers: { 'x-service-partner-key': text } })
      await response.text()
      statuses.push(response.status)
    }
  }
  t.strictSame(statuses, [200, 200, 200, 200, 429, 429])
  await Promise.all(servers.map((server) => server.close()))
})

t.test('windows of another length do not end those of a service', async (t) => {
  const real = performance.now
  let ahead = 0
  performance.now = () => real.call(performance) + ahead
  t.teardown(() => {
    performance.now = real
  })
  const store = await openMemoryStore()
  const { issue } = await createPartner(store)
  const { text } = await issue()
  const api = createPartnerApi({ store }, { limits })
  const other = createPartnerApi({ store }, { limits: { key: { quota: 4, windowSeconds: 1 } } })
  const statuses: number[] = []
  for (let turn = 0; turn < 6; turn++) {
    statuses.push(await statusOf(api, text))
    ahead += 1_000
    t.equal(await statusOf(other, text), 200)
  }
  t.strictSame(statuses, [200, 200, 200, 200, 429, 429])
  await Promise.all([api.close(), other.close()])
})

t.test('services on two stores count apart', async (t) => {
  const statuses: number[] = []
  for (let count = 0; count < 2; count++) {
    const store = await openMemoryStore()
    const { issue } = await createPartner(store)
    const { text } = await issue()
    const api = createPartnerApi({ store }, { limits })
    for (let turn = 0; turn < 4; turn++) statuses.push(await statusOf(api, text))
    await api.close()
  }
  t.strictSame(statuses, Array(8).fill(200))
})

t.test('a change through a store binds its services at once, whatever their staleness', async (t) => {
  const store = await openMemoryStore()
  const { issue, keys, partners } = await createPartner(store)
  const services = [1, 2].map(() => createPartnerApi({ store }, { maxStalenessMs: 10_000 }))
  const { key, text } = await issue()
  const both = () => Promise.all(services.map((service) => statusOf(service, text)))
  t.strictSame(await both(), [200, 200])
  await keys.disable(key.id)
  t.strictSame(await both(), [401, 401])
  await keys.enable(key.id)
  t.strictSame(await both(), [200, 200])
  await partners.suspend('acme')
  t.strictSame(await both(), [403, 403])
  await partners.resume('acme')
  t.strictSame(await both(), [200, 200])
  const countOf = async (service: PartnerApi) => {
    const headers = { 'x-service-partner-key': text }
    const response = await service.fetch(new Request(`http://localhost${path}`, { headers }))
    return (await response.json()).data.length
  }
  t.equal(await countOf(services[0]!), 0)
  await store.importContent('plans', [plan], { now: Date.now(), actor: 'test' })
  t.equal(await countOf(services[0]!), 1)
  await store.removeContent('plans', [plan.slug], { at: Date.now(), actor: 'test' })
  t.equal(await countOf(services[0]!), 0)
  await services[0]!.close()
  await keys.revoke(key.id)
  t.equal(await statusOf(services[1]!, text), 401)
  await services[1]!.close()
})

t.test('a change that fails leaves stale responses to an outage', async (t) => {
  const store = await openMemoryStore()
  const { issue } = await createPartner(store)
  const { text } = await issue()
  let isDown = false
  const revision: Store['revision'] = () => {
    if (isDown) throw new Error('down')
    return store.revision()
  }
  const options = { maxStalenessMs: 0, staleIfErrorSeconds: 60 }
  const api = createPartnerApi({ store: { ...store, revision } }, options)
  t.equal(await statusOf(api, text), 200)
  isDown = true
  const { facts } = await store.revision()
  await t.rejects(async () => await store.apply([{ type: 'partner.suspended', slug: 'none' }], facts, stamp))
  t.equal(await statusOf(api, text), 200)
  await api.close()
})
