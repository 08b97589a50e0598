/** The audit log in a database that is modified without the store. */
import t from 'tap'
import type { Test } from 'tap'
import { verifyChain } from '../../core/audit/verify.ts'
import { apply, createKeys, createPartners, industry, key, stamp, T0 } from '../contract/store/samples.ts'
import { tamperingContract } from '../contract/store/tampering.ts'
import { createPlace, databasesFor, type StorePlace } from '../postgres/fixtures.ts'

const server = await databasesFor(t)

/** A store with nine entries. */
async function open(t: Test): Promise<StorePlace> {
  const place = await createPlace(t, server)
  await createKeys(place.store, 'acme', 'globex')
  await apply(place.store, { type: 'scope.granted', id: 'acme-live', scope: 'read:plans' })
  await place.store.importContent('industries', [industry('a')], { ...stamp, now: T0 })
  await place.store.removeContent('industries', ['a'], stamp)
  return place
}

await tamperingContract(t, async () => {
  const { store, sql } = await createPlace(t, server)
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

await t.test('an entry whose position in reports was changed is detected', async (t) => {
  const { store, sql } = await open(t)
  const set = (recency: string) =>
    sql.unsafe(`update partner_api.audit set recency = ${recency} where sequence = 4`)
  for (const recency of ['recency + 1', '0', '-9223372036854775808', '9223372036854775807']) {
    await set(recency)
    t.equal(await verifyChain(store, store.sha256), 4, recency)
    await set('-at')
  }
  await set('recency - 1, at = at + 1')
  t.equal(await verifyChain(store, store.sha256), 4)
})

await t.test('rows with impossible numbers are listed', async (t) => {
  const { store, sql } = await open(t)
  const others = 'at, actor, type, partner, key_id, subject, before, after, hash, recency'
  const numbers = ['-9223372036854775808', '9223372036854775806', '9223372036854775807']
  for (const [index, number] of numbers.entries()) {
    await sql.unsafe(`
      insert into partner_api.audit (sequence, id, ${others})
      select ${number}, 'another${index}', ${others} from partner_api.audit where sequence = 5`)
  }
  const sequences = (await store.listAudit(-Infinity, 100)).map(({ sequence }) => sequence)
  t.strictSame(sequences, [-Infinity, 1, 2, 3, 4, 5, 6, 7, 8, 9, Infinity, Infinity])
  t.strictSame((await store.listAudit(9, 1)).map(({ sequence }) => sequence), [Infinity])
  t.strictSame(await store.listAudit(Infinity, 100), [])
})

await t.test('triggers, rules and policies are reported', async (t) => {
  const { store, sql } = await open(t)
  t.strictSame(await store.auditIntruders(), [], 'triggers of foreign keys are not reported')
  await sql.unsafe(`
    create function public.swallow() returns trigger language plpgsql as 'begin return null; end';
    create trigger b_swallow before insert on partner_api.audit
      for each row when (new.type = 'partner.removed') execute function public.swallow();
    create trigger elsewhere before insert on partner_api.partner
      for each row execute function public.swallow();
    drop trigger elsewhere on partner_api.partner;
    create rule a_rule as on update to partner_api.store where new.audit_sequence = 77 do instead nothing;
    create policy c_policy on partner_api.audit using (type <> 'key.revoked')`)
  t.strictSame(await store.auditIntruders(), ['a_rule', 'b_swallow', 'c_policy'])
  await sql.unsafe(`
    drop trigger b_swallow on partner_api.audit;
    drop rule a_rule on partner_api.store;
    drop policy c_policy on partner_api.audit`)
  t.strictSame(await store.auditIntruders(), [])
})

await t.test('removing a partner with many keys adds an entry for each key', async (t) => {
  const { store } = await createPlace(t, server)
  const ids = Array.from({ length: 1500 }, (_, index) => `key-${String(index).padStart(5, '0')}`)
  await createPartners(store, 'acme')
  await apply(store, ...ids.map((id) => ({ type: 'key.issued' as const, key: key({ id }) })))
  await apply(store, { type: 'partner.removed', slug: 'acme' })
  const revoked = await store.listAudit(ids.length + 2, 10_000)
  t.strictSame(revoked.map(({ keyId }) => keyId), ids)
  t.ok(
    (await store.listKeys({}, undefined, 10_000)).every(({ state }) => state === 'revoked'),
    'all keys are revoked',
  )
  t.equal(await verifyChain(store, store.sha256), undefined)
})
