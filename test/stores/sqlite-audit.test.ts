/** The audit log of a file that other programs write to. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { verifyChain } from '../../core/audit/chain.ts'
import { apply, createKeys, industry, stamp, T0 } from '../contract/store/samples.ts'
import { tamperingContract } from '../contract/store/tampering.ts'

const folder = mkdtempSync(join(tmpdir(), 'partner-api-audit-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

let tampered = 0
await tamperingContract(t, async () => {
  const file = join(folder, `tampered-${++tampered}.db`)
  const store = await openSqliteStore(file)
  return {
    store,
    // deno-lint-ignore require-await -- what is thrown on the way is a rejection, too
    async tamper(sql) {
      const database = new DatabaseSync(file)
      database.exec(sql)
      database.close()
    },
    table: (name) => name,
    derived: {},
    undo: {
      create: `CREATE TRIGGER undo AFTER UPDATE ON partner_key WHEN new.state = 'revoked' BEGIN
        UPDATE partner_key SET state = old.state WHERE id = new.id; END`,
      drop: 'DROP TRIGGER undo',
    },
  }
})

await t.test('the log continues after the entries of another connection', async (t) => {
  const file = join(folder, 'two.db')
  const [store, other] = [await openSqliteStore(file), await openSqliteStore(file)]
  await createKeys(store, 'acme')
  const { sequence } = await store.auditHead()
  for (const writer of [other, store, other]) {
    await apply(writer, { type: 'key.disabled', id: 'acme-live' })
    await writer.importContent('industries', [industry('b', { name: `${Math.random()}` })], {
      ...stamp,
      now: T0,
    })
    t.equal(await verifyChain(store, store.sha256), undefined)
  }
  t.equal((await store.auditHead()).sequence, sequence + 6)
  await other.close()
  await store.close()
})
