/** The audit trail in a database: what becomes of it when somebody writes past the store. */
import process from 'node:process'
import t from 'tap'
import type { Test } from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { verifyChain } from '../../core/audit/chain.ts'
import { apply, createKeys, createPartners, industry, key, stamp, T0 } from '../contract/store/samples.ts'
import { tamperingContract } from '../contract/store/tampering.ts'
import { hasServer } from '../postgres/binaries.ts'
import { intrude } from '../postgres/intruder.ts'
import { PATIENT, startServer } from '../postgres/server.ts'

const reason = hasServer()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

const server = await startServer()
t.teardown(() => server.close())

/** A store with nine entries, and somebody who writes in its database. */
async function open(t: Test) {
  const url = await server.createDatabase()
  const store = await openPostgresStore(url, PATIENT)
  t.teardown(() => store.close())
  await createKeys(store, 'acme', 'globex')
  await apply(store, { type: 'scope.granted', id: 'acme-live', scope: 'read:plans' })
  await store.importContent('industries', [industry('a')], { ...stamp, now: T0 })
  await store.removeContent('industries', ['a'], stamp)
  return {
    store,
    verify: () => verifyChain(store, store.sha256),
    tamper: async (sql: string) => await intrude(url, (database) => database.unsafe(sql)),
    /** What `verifyAudit` says once SQL has been run, which is undone then. */
    async after(sql: string): Promise<number | undefined> {
      return await intrude(url, async (database) => {
        await database.unsafe(`
          create table public.entries as select * from partner_api.audit;
          create table public.head as select audit_sequence, audit_seal from partner_api.store;
          ${sql}`)
        const broken = await verifyChain(store, store.sha256)
        await database.unsafe(`
          delete from partner_api.audit;
          insert into partner_api.audit select * from public.entries;
          update partner_api.store s set audit_sequence = h.audit_sequence, audit_seal = h.audit_seal from public.head h;
          drop table public.entries, public.head`)
        return broken
      })
    },
  }
}

await tamperingContract(t, async () => {
  const url = await server.createDatabase()
  return {
    store: await openPostgresStore(url, PATIENT),
    tamper: (sql) => intrude(url, (database) => database.unsafe(sql)),
    table: (name) => `partner_api.${name}`,
    undo: {
      create: `
        CREATE FUNCTION public.undo() RETURNS trigger LANGUAGE plpgsql AS
          'BEGIN IF new.state = ''revoked'' THEN new.state := old.state; END IF; RETURN new; END';
        CREATE TRIGGER undo BEFORE UPDATE ON partner_api.partner_key
          FOR EACH ROW EXECUTE FUNCTION public.undo()`,
      drop: 'DROP TRIGGER undo ON partner_api.partner_key',
    },
  }
})

await t.test('every change of every column of every entry is found where it was made', async (t) => {
  const { after, verify } = await open(t)
  const values: Readonly<Record<string, string>> = { sequence: '99', at: 'at + 1' }
  const columns = 'sequence id at actor type partner key_id subject before after seal'.split(' ')
  for (let sequence = 1; sequence <= 9; sequence++) {
    for (const column of columns) {
      const value = values[column] ?? `coalesce(${column}, '') || 'x'`
      const broken = await after(
        `update partner_api.audit set ${column} = ${value} where sequence = ${sequence}`,
      )
      t.equal(broken, sequence, `${column} of ${sequence}`)
    }
  }
  t.equal(await verify(), undefined, 'it was whole before and is whole again')
})

await t.test('so is an entry that was moved in reports, whatever its instant says', async (t) => {
  const { after, verify } = await open(t)
  for (const recency of ['recency + 1', 'recency - 1', '0', '-9223372036854775808', '9223372036854775807']) {
    t.equal(await after(`update partner_api.audit set recency = ${recency} where sequence = 4`), 4, recency)
  }
  t.equal(
    await after('update partner_api.audit set recency = recency - 1, at = at + 1 where sequence = 4'),
    4,
  )
  t.equal(await verify(), undefined)
})

await t.test('rows that were deleted, added or cut off are found', async (t) => {
  const { after, verify } = await open(t)
  const others = 'id, at, actor, type, partner, key_id, subject, before, after, seal, recency'
  for (let sequence = 1; sequence <= 9; sequence++) {
    t.equal(await after(`delete from partner_api.audit where sequence = ${sequence}`), sequence)
    t.equal(await after(`delete from partner_api.audit where sequence >= ${sequence}`), sequence)
  }
  const places = ['-9223372036854775808', '-5', '0', '10', '9007199254740993', '9223372036854775807']
  for (const place of places) {
    const broken = await after(`
      insert into partner_api.audit (sequence, ${others})
      select ${place}, ${others.replace('id', "'another'")} from partner_api.audit where sequence = 5`)
    t.equal(broken, place.startsWith('-') || place === '0' ? 1 : 10, `a row at ${place}`)
  }
  t.equal(await verify(), undefined)
})

await t.test('rows with numbers that no store counts to are read, and read past', async (t) => {
  const { store, tamper } = await open(t)
  const others = 'at, actor, type, partner, key_id, subject, before, after, seal, recency'
  const numbers = ['-9223372036854775808', '9223372036854775806', '9223372036854775807']
  for (const [index, number] of numbers.entries()) {
    await tamper(`
      insert into partner_api.audit (sequence, id, ${others})
      select ${number}, 'another${index}', ${others} from partner_api.audit where sequence = 5`)
  }
  const sequences = (await store.listAudit(-Infinity, 100)).map(({ sequence }) => sequence)
  t.strictSame(sequences, [-Infinity, 1, 2, 3, 4, 5, 6, 7, 8, 9, Infinity, Infinity])
  t.strictSame((await store.listAudit(9, 1)).map(({ sequence }) => sequence), [Infinity])
  t.strictSame(await store.listAudit(Infinity, 100), [])
})

await t.test('whatever acts when the trail is written is named', async (t) => {
  const { store, tamper } = await open(t)
  t.strictSame(await store.auditIntruders?.(), [], 'foreign keys and the like are nobody’s doing')
  await tamper(`
    create function public.swallow() returns trigger language plpgsql as 'begin return null; end';
    create trigger b_swallow before insert on partner_api.audit
      for each row when (new.type = 'partner.removed') execute function public.swallow();
    create trigger elsewhere before insert on partner_api.partner
      for each row execute function public.swallow();
    drop trigger elsewhere on partner_api.partner;
    create rule a_rule as on update to partner_api.store where new.audit_sequence = 77 do instead nothing;
    create policy c_policy on partner_api.audit using (type <> 'key.revoked')`)
  t.strictSame(await store.auditIntruders?.(), ['a_rule', 'b_swallow', 'c_policy'])
  await tamper(`
    drop trigger b_swallow on partner_api.audit;
    drop rule a_rule on partner_api.store;
    drop policy c_policy on partner_api.audit`)
  t.strictSame(await store.auditIntruders?.(), [])
})

await t.test('the removal of a partner with many keys is noted key by key', async (t) => {
  const store = await openPostgresStore(await server.createDatabase(), PATIENT)
  t.teardown(() => store.close())
  const ids = Array.from({ length: 2500 }, (_, index) => `key-${String(index).padStart(5, '0')}`)
  await createPartners(store, 'acme')
  await apply(store, ...ids.map((id) => ({ type: 'key.issued' as const, key: key({ id }) })))
  await apply(store, { type: 'partner.removed', slug: 'acme' })
  const revoked = await store.listAudit(ids.length + 2, 10_000)
  t.strictSame(revoked.map(({ keyId }) => keyId), ids)
  t.ok(
    (await store.listKeys(undefined, undefined, 10_000)).every(({ state }) => state === 'revoked'),
    'and done',
  )
  t.equal(await verifyChain(store, store.sha256), undefined)
})
