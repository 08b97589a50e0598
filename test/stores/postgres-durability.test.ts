/** What is acknowledged is on disk, whatever `synchronous_commit` the server, database or role defaults to. */
import process from 'node:process'
import t from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { Store } from '../../core/ports/store.ts'
import { actor, apply, claim, createPartners, key, plan, signup, T0 } from '../contract/store/samples.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'

const reason = hasServer()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

// Whatever is committed asynchronously stays in memory until long after the server was killed.
const server = await startServer({ settings: { synchronous_commit: 'off', wal_writer_delay: '10s' } })
t.teardown(() => server.close())

/** One write of each kind, and whether it is there. */
const writes: Readonly<Record<string, [write: (store: Store) => unknown, kept: (store: Store) => unknown]>> =
  {
    'a signup': [
      (store) => store.createSignup(signup('plain'), undefined),
      async (store) => (await store.listSignups('acme', undefined, 10)).length === 1,
    ],
    'a signup with an idempotency key': [
      (store) => store.createSignup(signup('claimed'), claim()),
      async (store) => (await store.createSignup(signup('again'), claim())).outcome === 'replayed',
    ],
    'an administrative change': [
      (store) => apply(store, { type: 'key.revoked', id: key().id }),
      async (store) => (await store.findKey(key().id))?.key.state === 'revoked',
    ],
    'an import': [
      (store) => store.importContent('plans', [plan], { now: T0, actor }),
      async (store) => (await store.listPlans()).length === 1,
    ],
  }

for (const [what, [write, isKept]] of Object.entries(writes)) {
  await t.test(`${what} survives a crash although commits are asynchronous by default`, async (t) => {
    for (const parameters of ['', '?pooler=transaction']) {
      const url = `${await server.createDatabase()}${parameters}`
      const before = await openPostgresStore(url)
      await createPartners(before, 'acme')
      await apply(before, { type: 'key.issued', key: key() })
      await write(before)
      await server.kill()
      await before.close()
      await server.restart()
      const store = await openPostgresStore(url)
      t.ok(await isKept(store), parameters || 'on a direct connection')
      await store.close()
    }
  })
}

await t.test('a stronger setting is kept', async (t) => {
  const url = await server.createDatabase()
  const store = await openPostgresStore(url)
  t.teardown(() => store.close())
  await createPartners(store, 'acme')
  await apply(store, { type: 'key.issued', key: key() })
  // Only what a transaction runs with says that it would wait for a standby, of which there is none.
  await server.admin.unsafe(
    `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET synchronous_commit = remote_apply`,
  )
  const strict = await openPostgresStore(url)
  t.teardown(() => strict.close())
  const { default: postgres } = await import('postgres')
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  await sql.unsafe(`
    CREATE TABLE seen (setting TEXT);
    CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN INSERT INTO seen VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END';
    CREATE TRIGGER see AFTER INSERT ON partner_api.signup FOR EACH ROW EXECUTE FUNCTION see();
    CREATE TRIGGER see AFTER INSERT ON partner_api.audit FOR EACH ROW EXECUTE FUNCTION see();`)
  await strict.createSignup(signup('1'), undefined)
  await apply(strict, { type: 'key.disabled', id: key().id })
  t.same((await sql`SELECT setting FROM seen`).map(({ setting }) => setting), [
    'remote_apply',
    'remote_apply',
  ])
})
