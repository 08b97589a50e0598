/** Copies of a store in a database with odd settings. `postgres-pooler.test.ts` runs the contract on one. */
import t from 'tap'
import { verifyAuditLog } from '../../core/audit/verify.ts'
import { serverFor } from '../postgres/fixtures.ts'
import { createOddDatabase } from '../postgres/odd-settings.ts'
import { hasPooler, startPooler } from '../postgres/pooler.ts'
import { fillStore } from './copies/full-store.ts'
import { newFile } from '../support/cli-program.ts'
import { copy, withStoreAt } from './copies/stores.ts'

const server = await serverFor(t)
const skip = hasPooler() ?? false

await t.test('a store is copied from and into it without a difference', { skip }, async (t) => {
  const pooler = await startPooler(server)
  t.teardown(() => pooler.close())
  const first = `sqlite:${newFile()}`
  const second = `sqlite:${newFile()}`
  await withStoreAt(first, fillStore)
  const odd = `${pooler.url(await createOddDatabase(server))}?pooler=transaction`
  const tables = await copy(first, odd)
  t.strictSame(await copy(odd, second), tables)
  await withStoreAt(odd, async (store) => {
    t.match(await verifyAuditLog(store), { brokenAt: undefined, differences: [] })
  })
})
