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

/** A store with nine entries, and a connection that tampers with its file. */
async function open(file: string) {
  const store = await openSqliteStore(join(folder, file))
  await createKeys(store, 'acme', 'globex')
  await apply(store, { type: 'scope.granted', id: 'acme-live', scope: 'read:plans' })
  await store.importContent('industries', [industry('a')], { ...stamp, now: T0 })
  await store.removeContent('industries', ['a'], stamp)
  const tamperer = new DatabaseSync(join(folder, file))
  tamperer.exec('PRAGMA synchronous = OFF')
  const columns = tamperer.prepare('PRAGMA table_info(audit)').all()
    .map((column) => ({ name: String(column.name), type: column.type, optional: column.notnull === 0 }))
  const rows = tamperer.prepare('SELECT * FROM audit ORDER BY sequence').all()
  const head = await store.auditHead()
  const verify = async () => await verifyChain(store, store.sha256)
  return {
    store,
    columns,
    verify,
    /** Verifies the log after some SQL, which it then reverts. `undefined` when the SQL changed nothing. */
    async after(
      sql: string,
      look: () => Promise<unknown> = async () => {},
    ): Promise<{ readonly broken: number | undefined } | undefined> {
      const everything = tamperer.prepare('SELECT * FROM audit, store')
      everything.setReadBigInts(true)
      const all = () =>
        JSON.stringify(everything.all(), (_, value) => typeof value === 'bigint' ? `${value}` : value)
      const before = all()
      tamperer.exec(sql)
      if (all() === before) return undefined
      await look()
      const broken = await verify()
      tamperer.exec('BEGIN; DELETE FROM audit')
      const insert = tamperer.prepare(
        `INSERT INTO audit (${columns.map(({ name }) => name)}) VALUES (${columns.map(() => '?')})`,
      )
      for (const row of rows) insert.run(...columns.map(({ name }) => row[name]!))
      tamperer.prepare('UPDATE store SET audit_sequence = ?, audit_seal = ?').run(head.sequence, head.hash)
      tamperer.exec('COMMIT')
      return { broken }
    },
    async close() {
      tamperer.close()
      await store.close()
    },
  }
}

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
    undo: {
      create: `CREATE TRIGGER undo AFTER UPDATE ON partner_key WHEN new.state = 'revoked' BEGIN
        UPDATE partner_key SET state = old.state WHERE id = new.id; END`,
      drop: 'DROP TRIGGER undo',
    },
  }
})

await t.test('every change of every column of every entry is found at its place', async (t) => {
  const { columns, after, verify, close } = await open('columns.db')
  t.equal(columns.length, 11, 'all except the generated one')
  let changes = 0
  const missed: unknown[] = []
  for (let sequence = 1; sequence <= 9; sequence++) {
    for (const { name, type, optional } of columns) {
      const values = name === 'sequence'
        ? ['99']
        : type === 'INTEGER'
        ? [`${name} + 1`, `-${name}`]
        : [`ifnull(${name}, '') || 'x'`, `replace(${name}, 'a', 'b')`, ...(optional ? ['NULL', `''`] : [])]
      for (const value of values) {
        const found = await after(`UPDATE audit SET ${name} = ${value} WHERE sequence = ${sequence}`)
        if (found === undefined) continue
        changes++
        if (found.broken !== sequence) missed.push([sequence, name, value, found.broken])
      }
    }
  }
  t.strictSame(missed, [])
  t.ok(changes > 150, `${changes} changes`)
  t.equal(await verify(), undefined, 'the log is intact again')
  await close()
})

await t.test('rows that were deleted, swapped, added or cut off are found', async (t) => {
  const { after, verify, close } = await open('rows.db')
  const broken = async (sql: string) => (await after(sql))?.broken
  const others = 'id, at, actor, type, partner, key_id, subject, before, after, seal'
  for (let sequence = 1; sequence <= 9; sequence++) {
    const from = `sequence >= ${sequence}`
    t.equal(await broken(`DELETE FROM audit WHERE sequence = ${sequence}`), sequence, `${sequence} deleted`)
    t.equal(await broken(`DELETE FROM audit WHERE ${from}`), sequence, `cut off from ${sequence}`)
    t.equal(
      await broken(`
        DELETE FROM audit WHERE ${from};
        UPDATE store SET audit_sequence = ${sequence - 1}`),
      Math.max(1, sequence - 1),
      `cut off from ${sequence}, and the head set back without its seal`,
    )
    if (sequence === 9) continue
    t.equal(
      await broken(`
        UPDATE audit SET sequence = -1 WHERE sequence = ${sequence};
        UPDATE audit SET sequence = ${sequence} WHERE sequence = ${sequence + 1};
        UPDATE audit SET sequence = ${sequence + 1} WHERE sequence = -1`),
      sequence,
      `${sequence} swapped with the next`,
    )
    t.equal(
      await broken(`
        DELETE FROM audit WHERE sequence = ${sequence};
        UPDATE audit SET sequence = -sequence WHERE ${from};
        UPDATE audit SET sequence = -sequence - 1 WHERE sequence < 0;
        UPDATE store SET audit_sequence = 8`),
      sequence,
      `${sequence} deleted and the others moved up`,
    )
  }
  for (const place of [-5, 0, 10]) {
    const sql = `INSERT INTO audit (sequence, ${others}) SELECT ${place}, ${
      others.replace('id,', `id || 'x',`)
    } FROM audit WHERE sequence = 9`
    t.equal(await broken(sql), Math.max(1, place), `a row at ${place}`)
  }
  t.equal(await broken('DELETE FROM audit'), 1, 'all of it deleted')
  t.equal(await broken('UPDATE store SET audit_sequence = 10'), 10)
  t.equal(await broken(`UPDATE store SET audit_seal = 'x'`), 9)
  t.equal(await verify(), undefined, 'the log is intact again')
  await close()
})

await t.test('rows with numbers outside of the log are found, and never reported', async (t) => {
  const { store, after, verify, close } = await open('numbers.db')
  const numbers = ['0', '-1', '-9007199254740991', '-9223372036854775807', '10', '1152921504606846976']
  const query = { types: [], after: undefined, limit: 100 }
  const reported = await store.listActivity('acme', query, T0 * 2)
  for (const number of numbers) {
    const found = await after(
      `INSERT INTO audit (sequence, id, at, actor, type, partner, key_id, subject, before, after, seal)
      SELECT ${number}, 'act_added', at, actor, type, partner, key_id, subject, before, after, seal
      FROM audit WHERE type = 'key.issued' LIMIT 1`,
      async () =>
        t.same(await store.listActivity('acme', query, T0 * 2), reported, `${number} is not reported`),
    )
    t.equal(found?.broken, Number(number) > 9 ? 10 : 1, number)
  }
  t.equal(await verify(), undefined, 'the log is intact again')
  await close()
})

await t.test('the log continues after the entries of another connection', async (t) => {
  const { store, verify, close } = await open('two.db')
  const other = await openSqliteStore(join(folder, 'two.db'))
  for (const writer of [other, store, other]) {
    await apply(writer, { type: 'key.disabled', id: 'acme-live' })
    await writer.importContent('industries', [industry('b', { name: `${Math.random()}` })], {
      ...stamp,
      now: T0,
    })
    t.equal(await verify(), undefined)
  }
  t.equal((await store.auditHead()).sequence, 15)
  await other.close()
  await close()
})
