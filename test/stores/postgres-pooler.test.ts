import process from 'node:process'
import fc from 'fast-check'
import t from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { wholeStoreContract } from '../contract/store/complete-store.ts'
import { hasServer } from '../postgres/binaries.ts'
import { contractStores } from '../postgres/contract-stores.ts'
import { startCounter } from '../postgres/outstanding.ts'
import { hasPooler, startPooler } from '../postgres/pooler.ts'
import { PATIENT, startServer } from '../postgres/server.ts'

const reason = hasServer() ?? hasPooler()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

// A pooler changes nothing about what is found, which many runs without one have shown.
fc.configureGlobal({ numRuns: 10 })

const server = await startServer()
t.teardown(() => server.close())
const pooler = await startPooler(server, { mode: 'transaction' })
t.teardown(() => pooler.close())
const way = (url: string) => `${pooler.url(url)}?pooler=transaction`

await t.test('Postgres behind a pooler', async (t) => {
  const { open, openMany, close } = await contractStores(server, way)
  t.teardown(close)
  await wholeStoreContract(t, open, openMany)
})

await t.test('of many that begin at once behind a pooler, one makes the store', async (t) => {
  for (let round = 0; round < 5; round++) {
    const url = way(await server.createDatabase())
    const stores = await Promise.all(Array.from({ length: 10 }, () => openPostgresStore(url, PATIENT)))
    t.equal(new Set(stores.map(({ settings }) => settings.cursorSecret)).size, 1)
    await Promise.all(stores.map((store) => store.close()))
  }
})

await t.test('no connection asks a pooler before it has the answer to what it asked', async (t) => {
  const [straight, pooled] = [await startCounter(server.port), await startCounter(pooler.port)]
  t.teardown(() => straight.close())
  t.teardown(() => pooled.close())
  const url = await server.createDatabase()
  for (const way of [straight.url(url), `${pooled.url(url)}&pooler=transaction`]) {
    const store = await openPostgresStore(way, PATIENT)
    const ask = { policy: 'key' as const, quota: 10, windowSeconds: 60, wanted: 1 }
    await Promise.all(Array.from({ length: 50 }, (_, index) =>
      Promise.all([
        store.findKey(`k${index}`),
        store.quotas!.leaseQuota({ ...ask, subject: `s${index % 5}` }),
        store.findProfile('acme', `p${index}`, 0),
      ])))
    await store.close()
  }
  t.ok(straight.most() > 10, `on the straight way, ${straight.most()} at once`)
  t.equal(pooled.most(), 1, 'a pooler that answers half of them takes the server away from the rest')
})
