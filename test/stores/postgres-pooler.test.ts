/** A store behind a pooler that gives each transaction another connection. */
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
import { type Check, sharedStoreContract } from '../contract/store/suites.ts'
import { contractStore, openSql, serverFor } from '../postgres/fixtures.ts'
import { startCounter } from '../postgres/network.ts'
import { createOddDatabase } from '../postgres/odd-settings.ts'
import { hasPooler, startPooler } from '../postgres/pooler.ts'
import { PATIENT } from '../postgres/server.ts'
import { programOn } from '../support/cli-program.ts'

const server = await serverFor(t)
const skip = hasPooler() ?? false

await t.test('the contracts of a store, in a database with odd settings', { skip }, async (t) => {
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

  await t.test('statements are pipelined on a direct connection only', async (t) => {
    const direct = await startCounter(server.port)
    const counted = await startCounter(pooler.port)
    t.teardown(() => direct.close())
    t.teardown(() => counted.close())
    const url = await server.createDatabase()
    for (const way of [direct.url(url), `${counted.url(url)}&pooler=transaction`]) {
      const store = await openPostgresStore(way, PATIENT)
      const ask = { policy: 'key' as const, quota: 10, windowSeconds: 60, wanted: 1 }
      await Promise.all(Array.from({ length: 50 }, (_, index) =>
        Promise.all([
          store.findKey(`k${index}`),
          store.quotas.leaseQuota({ ...ask, subject: `s${index % 5}` }),
          store.findProfile('acme', `p${index}`, 0),
        ])))
      await store.close()
    }
    t.ok(direct.most() > 10, `directly, ${direct.most()} at once`)
    t.equal(counted.most(), 1, 'a pooler that answers some gives the server connection away')
  })
})

await t.test('behind an undeclared pooler, nothing is created', { skip }, async (t) => {
  const url = await server.createDatabase()
  const pooler = await startPooler(server)
  t.teardown(() => pooler.close())
  const hint = { code: 'unreachable', message: /pooler=transaction in the URL/ }
  await t.rejects(openPostgresStore(pooler.url(url), PATIENT), hint)
  const sql = openSql(t, url)
  t.same(await sql`select 1 from pg_namespace where nspname = 'partner_api'`, [])
  await (await openPostgresStore(`${pooler.url(url)}?pooler=transaction`, PATIENT)).close()
  await t.rejects(openPostgresStore(pooler.url(url), { migrate: false, ...PATIENT }), hint)
})

await t.test('doctor names a pooler that the URL does not declare', { skip }, async (t) => {
  const url = await server.createDatabase()
  await (await openPostgresStore(url, PATIENT)).close()
  const pooler = await startPooler(server, ['options', 'statement_timeout', 'synchronous_commit'])
  t.teardown(() => pooler.close())
  const diagnose = async (url: string) => {
    const { code, data } = await programOn(url).json('doctor')
    const found = data.checks.find(({ check }: { check: string }) => check === 'postgres-pooler')
    return [code, found.severity, found.command]
  }
  t.same(await diagnose(pooler.url(url)), [1, 'error', 'pooler=transaction'])
  const [, severity] = await diagnose(`${pooler.url(url)}?pooler=transaction`)
  t.equal(severity, null)
})
