/** Creating the schema of a PostgreSQL store, migrating it, and refusing it. */
import type { Sql } from 'postgres'
import t from 'tap'
import {
  migrate,
  type Migration,
  MIGRATIONS,
  migrationStatus,
} from '../../adapters/stores/postgres/migrate.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { actor, apply, createPartners, industry, key, T0 } from '../contract/store/samples.ts'
import { databasesFor, openDatabase, openSql, waitsForLock } from '../postgres/fixtures.ts'
import { PATIENT } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'

const server = await databasesFor(t)

async function relationsOf(sql: Sql): Promise<string[]> {
  const rows = await sql`
    select relname from pg_class join pg_namespace n on n.oid = relnamespace
    where nspname = 'partner_api' order by 1`
  return rows.map(({ relname }) => relname)
}

const latest = MIGRATIONS.length

await t.test('a missing store is created unless migrate is false', async (t) => {
  const url = await server.createDatabase()
  const sql = openSql(t, url)
  const { current, pending } = await migrationStatus(url)
  t.equal(current, 0)
  t.strictSame(pending, MIGRATIONS.map(({ name }) => name))
  await t.rejects(openPostgresStore(url, { migrate: false }), {
    code: 'missing',
    message: /^There is no store at 127\.0\.0\.1:\d+\/test_\w+\.$/,
    remedy: { command: 'migrate' },
  })
  t.same(await sql`select 1 from pg_namespace where nspname = 'partner_api'`, [], 'nothing was made')

  await (await openPostgresStore(url, PATIENT)).close()
  t.strictSame(await migrationStatus(url), { current: latest, latest, pending: [] })
  await (await openPostgresStore(url, { migrate: false, ...PATIENT })).close()
})

await t.test('ten concurrent programs create the store once', async (t) => {
  for (let round = 0; round < 3; round++) {
    const url = await server.createDatabase()
    const stores = await Promise.all(Array.from({ length: 10 }, () => openPostgresStore(url, PATIENT)))
    t.equal(new Set(stores.map(({ settings }) => settings.cursorSecret)).size, 1)
    t.equal(new Set(await Promise.all(stores.map(async (store) => (await store.revision()).facts))).size, 1)
    await Promise.all(stores.map((store) => store.close()))
    const [row] = await openSql(t, url)`
      select (select count(*)::int from partner_api.migration) as migrations,
        (select count(*)::int from partner_api.store) as stores,
        (select count(*)::int from partner_api.revision) as revisions`
    t.strictSame({ ...row }, { migrations: latest, stores: 1, revisions: 2 })
  }
})

await t.test('a failed migration is rolled back and can be repeated', async (t) => {
  const url = await server.createDatabase()
  const sql = openSql(t, url)
  await sql`create schema partner_api`
  // A table creates a type of its name, so that this one conflicts.
  await sql`create type partner_api.audit as enum ()`
  await t.rejects(openPostgresStore(url), { code: 'unreachable', message: /cannot be opened: .*audit/ })
  t.strictSame(await relationsOf(sql), [])
  t.equal((await migrationStatus(url)).current, 0)
  await sql`drop type partner_api.audit`
  const store = await openPostgresStore(url, PATIENT)
  t.strictSame(await store.listPartners(undefined, 1000), [])
  await store.close()
})

await t.test('a schema of another program is refused unchanged', async (t) => {
  for (const table of ['migration (version integer)', 'store (id text)', 'orders (id text)']) {
    const url = await server.createDatabase()
    const sql = openSql(t, url)
    await sql.unsafe(`create schema partner_api; create table partner_api.${table}`)
    const refusal = { code: 'refused', message: /schema partner_api .* belongs to another program\.$/ }
    await t.rejects(openPostgresStore(url), refusal, table)
    await t.rejects(openPostgresStore(url, { migrate: false }), refusal)
    await t.rejects(migrationStatus(url), refusal)
    t.equal((await relationsOf(sql)).length, 1)
  }
  const url = await server.createDatabase()
  const sql = openSql(t, url)
  await sql`create schema partner_api`
  await sql`create table partner_api.migration (version integer)`
  await sql`create table partner_api.store (id text)`
  await t.rejects(
    openPostgresStore(url, PATIENT),
    { code: 'refused', message: /belongs to another program/ },
    'with tables of the same names',
  )
})

await t.test('a store without its settings is refused', async (t) => {
  const url = await server.createDatabase()
  const running = await openPostgresStore(url, PATIENT)
  await openSql(t, url)`delete from partner_api.store`
  const loss = { code: 'damaged', message: /its settings are missing\.$/ }
  await t.rejects(openPostgresStore(url), loss)
  await t.rejects(migrationStatus(url), loss)
  await t.rejects(async () => await running.check(), loss)
  await running.close()
})

await t.test('a database in another encoding is refused unchanged', async (t) => {
  await server.admin`create database latin owner partner_api encoding 'LATIN1' template template0`
  await t.rejects(openPostgresStore(server.url('latin')), {
    code: 'refused',
    message: /in LATIN1, .* 'UTF8'\.$/,
  })
  t.strictSame(await relationsOf(openSql(t, server.url('latin'))), [])
  t.equal((await migrationStatus(server.url('latin'))).current, 0)
})

await t.test('a role that may not create a schema can use an existing one', async (t) => {
  await server.admin`create database lent`
  const admin = openSql(t, server.adminUrl('lent'))
  const url = server.url('lent')
  await t.rejects(openPostgresStore(url), {
    code: 'unreachable',
    message: /permission denied for database lent/,
  })
  await admin.unsafe(`create schema partner_api; grant usage on schema partner_api to ${server.user}`)
  await t.rejects(openPostgresStore(url), { code: 'unreachable', message: /permission denied for schema/ })
  await admin.unsafe(`grant create on schema partner_api to ${server.user}`)
  const store = await openPostgresStore(url, PATIENT)
  await createPartners(store, 'acme')
  await store.close()
})

await t.test('a schema of another build, with the same version or a later one, is refused', async (t) => {
  const url = await server.createDatabase()
  await (await openPostgresStore(url, PATIENT)).close()
  const sql = openSql(t, url)
  const refusal = { code: 'refused', message: /another build .* migration 001-store differs/ }
  for (
    const change of [
      sql`update partner_api.migration set hash = 'other'`,
      sql`insert into partner_api.migration values (2, '002-of-before', 0, 'other')`,
      sql`alter table partner_api.migration drop column hash`,
    ]
  ) {
    await change
    for (const migrate of [true, false]) await t.rejects(openPostgresStore(url, { migrate }), refusal)
  }
  await t.rejects(migrationStatus(url), refusal)
  t.same(await sql`select version from partner_api.migration order by 1`, [{ version: 1 }, { version: 2 }])
})

await t.test('a newer schema is used if it permits this version', async (t) => {
  const url = await server.createDatabase()
  const running = await openPostgresStore(url, PATIENT)
  await createPartners(running, 'acme')
  const sql = openSql(t, url)
  await sql`insert into partner_api.migration values (99, '099-of-tomorrow', 0)`
  t.strictSame(await migrationStatus(url), { current: 99, latest, pending: [] })
  for (const migrate of [true, false]) {
    const store = await openPostgresStore(url, { migrate, ...PATIENT })
    t.equal(await apply(store, { type: 'partner.suspended', slug: 'acme' }), true)
    await store.close()
  }

  await sql`update partner_api.store set served_from = 98`
  const message = new RegExp(`version 98\\b.* knows ${latest} at most`)
  for (const migrate of [true, false]) {
    await t.rejects(openPostgresStore(url, { migrate }), { code: 'newer_schema', message })
  }
  t.equal((await migrationStatus(url)).current, 99)
  const newer = { code: 'newer_schema', message }
  await t.rejects(async () => await running.revision(), newer, 'a running program refuses it too')
  await t.rejects(async () => await running.check(), newer)
  await t.rejects(
    async () => await running.apply([{ type: 'partner.resumed', slug: 'acme' }], 'any', { actor, at: T0 }),
    newer,
  )
  await t.rejects(
    async () => await running.importContent('industries', [industry('a')], { actor, now: T0 }),
    newer,
  )
  t.same(await sql`select state from partner_api.partner`, [{ state: 'suspended' }])
  t.same(await sql`select slug from partner_api.industry`, [])
  await sql`update partner_api.store set served_from = ${latest}`
  t.equal(await apply(running, { type: 'partner.resumed', slug: 'acme' }), true)
  await running.close()
})

/** The migrations of a later version. */
const later = (servedFrom: number): Migration[] => [
  ...MIGRATIONS,
  { name: 'next', sql: 'ALTER TABLE partner_api.partner ADD COLUMN colour TEXT', servedFrom: latest },
  { name: 'after', sql: 'ALTER TABLE partner_api.partner ADD COLUMN size TEXT', servedFrom },
]

await t.test('a newer program migrates a store that programs of this version use', async (t) => {
  const url = await server.createDatabase()
  const running = await openPostgresStore(url, PATIENT)
  await createPartners(running, 'acme')
  await apply(running, { type: 'key.issued', key: key() })
  const newer = Array.from({ length: 5 }, () => openDatabase(t, url))
  const programs = newer.map((database) => migrate(database, undefined, later(latest)))
  // Concurrent changes are applied before or after the migration.
  for (let times = 0; times < 10; times++) {
    await apply(running, { type: times % 2 === 0 ? 'key.disabled' : 'key.enabled', id: key().id })
  }
  await Promise.all(programs)
  const sql = openSql(t, url)
  const names = (await sql`select name from partner_api.migration order by version`).map(({ name }) => name)
  t.strictSame(names, later(latest).map(({ name }) => name))
  t.equal((await running.findKey(key().id))?.key.state, 'active')
  t.equal(await apply(running, { type: 'key.disabled', id: key().id }), true)
  t.equal((await migrationStatus(url)).current, latest + 2)
  await running.close()
})

await t.test('a change that waited for a migration checks the schema version again', async (t) => {
  const url = await server.createDatabase()
  const running = await openPostgresStore(url, PATIENT)
  await createPartners(running, 'acme')
  const { facts } = await running.revision()
  const sql = openSql(t, url)
  const database = openDatabase(t, url)
  const held = Promise.withResolvers<void>()
  const migrated = Promise.withResolvers<void>()
  const migrating = database.transaction(async (query) => {
    await query('SELECT kind FROM partner_api.revision ORDER BY kind FOR UPDATE')
    held.resolve()
    await migrated.promise
    await query('UPDATE partner_api.store SET served_from = $1', [latest + 1])
  })
  await held.promise
  const changed = running.apply([{ type: 'partner.suspended', slug: 'acme' }], facts, { actor, at: T0 })
  const refused = t.rejects(async () => await changed, { code: 'newer_schema' })
  await until(() => waitsForLock(sql), 'the change to wait for the lock')
  migrated.resolve()
  await migrating
  await refused
  t.same(await sql`select state from partner_api.partner`, [{ state: 'active' }])
  await running.close()
})
