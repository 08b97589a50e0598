/** The audit log and copies of a store in a database with odd settings. `postgres.test.ts` runs the contract on one. */
import t, { type Test } from 'tap'
import { verifyAuditLog } from '../../core/audit/verify.ts'
import { tamperingContract } from '../contract/store/tampering.ts'
import { createPlace, serverFor } from '../postgres/fixtures.ts'
import { createOddDatabase } from '../postgres/odd-settings.ts'
import { hasPooler, startPooler } from '../postgres/pooler.ts'
import { fillStore } from './copies/full-store.ts'
import { newFile } from '../support/cli-program.ts'
import { copy, withStoreAt } from './copies/stores.ts'

const server = await serverFor(t)
const skip = hasPooler() ?? false

async function pooled(t: Test) {
  const pooler = await startPooler(server)
  t.teardown(() => pooler.close())
  return (url: string) => `${pooler.url(url)}?pooler=transaction`
}

await t.test('reports what was tampered with, and nothing else', { skip }, async (t) => {
  const way = await pooled(t)
  await tamperingContract(t, async () => {
    const { store, sql } = await createPlace(t, {
      ...server,
      createDatabase: () => createOddDatabase(server),
    }, way)
    return {
      store,
      tamper: (statements) => sql.unsafe(statements),
      table: (name) => `partner_api.${name}`,
      derived: { recency: '-at' },
      undo: {
        create: `
          CREATE FUNCTION public.undo() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN new.state := old.state; new.name := old.name; RETURN new; END';
          CREATE TRIGGER undo BEFORE UPDATE ON partner_api.partner_key
            FOR EACH ROW EXECUTE FUNCTION public.undo()`,
        drop: 'DROP TRIGGER undo ON partner_api.partner_key',
      },
    }
  })
})

await t.test('is copied from and into without a difference', { skip }, async (t) => {
  const way = await pooled(t)
  const first = `sqlite:${newFile()}`
  const second = `sqlite:${newFile()}`
  await withStoreAt(first, fillStore)
  const odd = way(await createOddDatabase(server))
  const tables = await copy(first, odd)
  t.strictSame(await copy(odd, second), tables)
  await withStoreAt(odd, async (store) => {
    t.match(await verifyAuditLog(store), { brokenAt: undefined, differences: [] })
  })
})
