/** The contracts of a store, on a direct connection and through a pooler. */
import fc from 'fast-check'
import t from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { asOneAssertion } from '../contract/http/checks.ts'
import { auditContract } from '../contract/store/audit.ts'
import { contentContract } from '../contract/store/content.ts'
import { directoryContract } from '../contract/store/directory.ts'
import { factsContract } from '../contract/store/facts.ts'
import { signupsContract } from '../contract/store/signups.ts'
import { summaryContract } from '../contract/store/summary.ts'
import { type Check, sharedStoreContract, storeContract } from '../contract/store/suites.ts'
import { contractStore, serverFor } from '../postgres/fixtures.ts'
import { startCounter } from '../postgres/network.ts'
import { createOddDatabase } from '../postgres/odd-settings.ts'
import { hasPooler, startPooler } from '../postgres/pooler.ts'
import { PATIENT } from '../postgres/server.ts'

// The properties run on 60 memory and SQLite stores. PostgreSQL takes ten times as long.
fc.configureGlobal({ numRuns: 15 })
const server = await serverFor(t)

await t.test('PostgreSQL', async (t) => {
  const { emptied, open, close } = await contractStore(server)
  t.teardown(close)
  await storeContract(t, emptied)
  await sharedStoreContract(t, () => emptied().then(() => open))
})

await t.test('PostgreSQL through a pooler, with odd settings', { skip: hasPooler() ?? false }, async (t) => {
  const pooler = await startPooler(server)
  t.teardown(() => pooler.close())
  const pooled = (url: string) => `${pooler.url(url)}?pooler=transaction`
  const { emptied, open, close } = await contractStore(
    { createDatabase: () => createOddDatabase(server) },
    pooled,
  )
  t.teardown(close)
  // A pooler changes how statements and transactions are sent, not what they find.
  fc.configureGlobal({ numRuns: 5 })
  const check: Check = async (name, body) => {
    await asOneAssertion(t, name, async (t) => body(t, await emptied()))
  }
  const contracts = [
    factsContract,
    contentContract,
    signupsContract,
    directoryContract,
    auditContract,
    summaryContract,
  ]
  for (const contract of contracts) {
    await contract(check, emptied)
  }
  await sharedStoreContract(t, () => emptied().then(() => open))

  await t.test('ten programs that start at once create one store', async (t) => {
    const url = pooled(await server.createDatabase())
    const stores = await Promise.all(Array.from({ length: 10 }, () => openPostgresStore(url, PATIENT)))
    t.equal(new Set(stores.map(({ settings }) => settings.cursorSecret)).size, 1)
    await Promise.all(stores.map((store) => store.close()))
  })

  await t.test('statements are pipelined on a direct connection only', async (t) => {
    const [direct, counted] = [await startCounter(server.port), await startCounter(pooler.port)]
    t.teardown(() => direct.close())
    t.teardown(() => counted.close())
    const url = await server.createDatabase()
    for (const way of [direct.url(url), `${counted.url(url)}&pooler=transaction`]) {
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
    t.ok(direct.most() > 10, `directly, ${direct.most()} at once`)
    t.equal(counted.most(), 1, 'a pooler that answers some gives the server connection away')
  })
})
