/** Lists of any length in a database: each page reads its own rows and no others. */
import process from 'node:process'
import t from 'tap'
import { createAuditLog } from '../../adapters/stores/postgres/audit.ts'
import { connect } from '../../adapters/stores/postgres/database.ts'
import { createAdministration } from '../../adapters/stores/postgres/partners-and-keys.ts'
import { createRevisions } from '../../adapters/stores/postgres/revisions.ts'
import { createSignups } from '../../adapters/stores/postgres/signups.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { hasServer } from '../postgres/binaries.ts'
import { intrude } from '../postgres/intruder.ts'
import { explaining, rowsRead } from '../postgres/plans.ts'
import { startServer } from '../postgres/server.ts'

const reason = hasServer()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

const server = await startServer()
t.teardown(() => server.close())

await t.test('no page of a list reads rows of others', async (t) => {
  const url = await server.createDatabase()
  await (await openPostgresStore(url)).close()
  // Half of all rows are a partner's, and the newest: a plan that looks for them among all others reads thousands.
  const partner = `case when n <= 10000 then 'other' when n > 19990 then 'rare' else 'late' end`
  await intrude(url, (sql) =>
    sql.unsafe(`
    insert into partner_api.partner
      select slug, slug, 'active', 0, null, 1 from unnest('{late,other,rare}'::text[]) as slugs (slug);
    insert into partner_api.partner_key (id, partner, name, environment, digest, hint, state, scopes, created_at)
      select 'key-' || n, ${partner}, 'Key', 'live', repeat('0', 64), '9xQ2', 'active', 0, n / 10
      from generate_series(1, 20000) as numbers (n);
    insert into partner_api.signup (id, partner, key_id, environment, created_at, record, recency)
      select 'sgn_' || n, ${partner}, 'key-1', 'live', -n, '{}', n from generate_series(1, 20000) as numbers (n);
    insert into partner_api.audit (sequence, id, at, actor, type, partner, seal, recency)
      select n, 'act_' || n, n, 'root', 'key.issued', ${partner}, '', -n from generate_series(1, 20000) as numbers (n);
    update partner_api.store set audit_sequence = 20000;
    analyze`))
  const database = connect(url)
  t.teardown(() => database.close())
  let read = 0
  const explained = explaining(database, (plan) => read += rowsRead(plan))
  const trail = createAuditLog(explained)
  const administration = createAdministration(explained, createRevisions(database), trail)
  const signups = createSignups(explained)

  await administration.listPartners(undefined, 2)
  t.ok(read <= 3, `partners: ${read} rows read`)
  for (const partner of [undefined, 'other', 'late', 'rare']) {
    const lists: Record<string, () => unknown> = {
      keys: () => administration.listKeys(partner, undefined, 50),
      'keys after one': () => administration.listKeys(partner, { createdAt: 1500, id: 'key-15000' }, 50),
      audit: () => trail.listAudit(0, 50, partner),
      'audit after an entry': () => trail.listAudit(15_000, 50, partner),
      'tail of the audit': () => trail.auditTail(49, partner),
      signups: () => signups.listSignups(partner, undefined, 50),
    }
    for (const [name, list] of Object.entries(lists)) {
      read = 0
      await list()
      t.ok(read <= 51, `${name} of ${partner}: ${read} rows read`)
    }
  }
})
