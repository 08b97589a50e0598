/** A database that several processes have open, and what stays when they have ended. */
import process from 'node:process'
import t from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import {
  actor,
  apply,
  createPartners,
  industry,
  key,
  partner,
  profile,
  publish,
  query,
  stamp,
  T0,
} from '../contract/store/samples.ts'
import { hasServer } from '../postgres/binaries.ts'
import { intrude } from '../postgres/intruder.ts'
import { PATIENT, startServer } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'

const reason = hasServer()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

const server = await startServer()
t.teardown(() => server.close())

await t.test('all of it is there when the database is opened again', async (t) => {
  const url = await server.createDatabase()
  const first = await openPostgresStore(url, PATIENT)
  await createPartners(first, 'acme')
  await apply(first, { type: 'key.issued', key: key() })
  await publish(first, [profile('a')])
  const { settings } = first
  const revision = await first.revision()
  await first.close()
  const second = await openPostgresStore(url, { migrate: false, ...PATIENT })
  t.strictSame(second.settings, settings)
  t.strictSame(await second.revision(), revision)
  t.strictSame(await second.findKey(key().id), { key: key(), partner: partner({ slug: 'acme' }) })
  t.equal((await second.listProfiles('acme', query(), T0)).length, 1)
  await second.close()
})

await t.test('stores see at once what others have committed', async (t) => {
  const url = await server.createDatabase()
  const [a, b] = [await openPostgresStore(url, PATIENT), await openPostgresStore(url, PATIENT)]
  t.strictSame(await a.revision(), await b.revision())
  for (const [writer, reader] of [[a, b], [b, a], [a, b]] as const) {
    const before = await reader.revision()
    await createPartners(writer, `p${(await writer.listPartners(undefined, 1000)).length}`)
    t.not((await reader.revision()).facts, before.facts)
    t.equal((await reader.revision()).content, before.content)
    t.strictSame(await reader.revision(), await writer.revision())
    await publish(writer, [profile(`p${(await writer.listPartners(undefined, 1000)).length}`)])
    t.not((await reader.revision()).content, before.content)
    t.strictSame(await reader.revision(), await writer.revision())
  }
  t.equal((await a.listProfiles('acme', query(), T0)).length, 3)
  t.equal((await b.listProfiles('acme', query(), T0)).length, 3)
  await a.close()
  await b.close()
})

await t.test('of changes that were decided under the same facts, one is applied', async (t) => {
  const url = await server.createDatabase()
  const stores = await Promise.all(Array.from({ length: 4 }, () => openPostgresStore(url, PATIENT)))
  await createPartners(stores[0]!, 'acme')
  for (let round = 0; round < 10; round++) {
    const { facts } = await stores[0]!.revision()
    const applied = await Promise.all(
      stores.map((store) =>
        store.apply(
          [{ type: round % 2 ? 'partner.resumed' : 'partner.suspended', slug: 'acme' }],
          facts,
          stamp,
        )
      ),
    )
    t.strictSame([...applied].sort(), [false, false, false, true])
  }
  t.equal((await stores[0]!.auditHead()).sequence, 11)
  await Promise.all(stores.map((store) => store.close()))
})

await t.test('an import keeps no key from being revoked', async (t) => {
  const url = await server.createDatabase()
  const [importer, operator] = [await openPostgresStore(url), await openPostgresStore(url)]
  await createPartners(operator, 'acme')
  await apply(operator, { type: 'key.issued', key: key() })
  const imported = (name: string) =>
    importer.importContent('industries', [industry('a', { name })], { actor, now: T0 })
  await imported('First')
  await intrude(url, async (sql) => {
    await sql.begin(async (sql) => {
      await sql`select slug from partner_api.industry for update`
      const importing = imported('Second')
      await until(
        async () => (await sql`select 1 from pg_locks where not granted`).length > 0,
        'the import to wait for a row',
      )
      t.equal(await apply(operator, { type: 'key.revoked', id: key().id }), true)
      t.equal((await importer.findKey(key().id))?.key.state, 'revoked')
      return { importing }
    }).then(async ({ importing }) => t.equal((await importing).replaced, 1))
  })
  await importer.close()
  await operator.close()
})

await t.test('replicas that note the same uses at once, while keys change, lose none', async (t) => {
  const url = await server.createDatabase()
  const stores = await Promise.all(Array.from({ length: 4 }, () => openPostgresStore(url, PATIENT)))
  const ids = Array.from({ length: 50 }, (_, index) => `key-${index}`)
  await createPartners(stores[0]!, 'acme')
  await apply(stores[0]!, ...ids.map((id) => ({ type: 'key.issued' as const, key: key({ id }) })))
  for (let round = 1; round <= 5; round++) {
    const orders = stores.map((_, place) => place % 2 ? ids : [...ids].reverse())
    await Promise.all([
      ...stores.map((store, place) =>
        store.recordKeyUses(new Map(orders[place]!.map((id) => [id, T0 + round * 10 + place])))
      ),
      apply(stores[0]!, ...ids.map((id) => ({ type: 'key.disabled' as const, id }))),
    ])
    const used = (await stores[0]!.listKeys(undefined, undefined, 1000)).map(({ lastUsedAt }) => lastUsedAt)
    t.strictSame(new Set(used), new Set([T0 + round * 10 + 3]))
  }
  await Promise.all(stores.map((store) => store.close()))
})

await t.test('a thousand look-ups at once find each its own key', async (t) => {
  const store = await openPostgresStore(await server.createDatabase(), PATIENT)
  const ids = Array.from({ length: 1000 }, (_, index) => `k${index}`)
  const held = ids.filter((_, index) => index % 3 > 0)
  await createPartners(store, 'acme')
  await apply(
    store,
    ...held.map((id) => ({ type: 'key.issued' as const, key: key({ id, name: `Key ${id}` }) })),
  )
  const found = await Promise.all(ids.map(async (id) => (await store.findKey(id))?.key.name))
  t.strictSame(found, ids.map((id, index) => index % 3 > 0 ? `Key ${id}` : undefined))
  await store.close()
})

await t.test('the revisions of two stores are never equal', async (t) => {
  const [a, b] = [
    await openPostgresStore(await server.createDatabase(), PATIENT),
    await openPostgresStore(await server.createDatabase(), PATIENT),
  ]
  t.not((await a.revision()).facts, (await b.revision()).facts)
  t.not((await a.revision()).content, (await b.revision()).content)
  t.not(a.settings.cursorSecret, b.settings.cursorSecret)
  await a.close()
  await b.close()
})

await t.test('nor are those of a store that went back and took another way', async (t) => {
  const url = await server.createDatabase()
  const store = await openPostgresStore(url, PATIENT)
  await createPartners(store, 'acme')
  const seen = new Set<string>()
  for (let times = 0; times < 5; times++) {
    await apply(store, { type: 'partner.suspended', slug: 'acme' })
    await publish(store, [profile(`p${times}`)])
    const { facts, content } = await store.revision()
    seen.add(facts).add(content)
    // As after the loss of a server whose standby had not heard of the last changes yet.
    await intrude(url, (sql) => sql`update partner_api.revision set changes = 1`)
  }
  t.equal(seen.size, 10)
  await store.close()
})

await t.test('the key prefix can be settled until there is a key', async (t) => {
  const url = await server.createDatabase()
  const open = async (keyPrefix?: string) => {
    const store = await openPostgresStore(url, keyPrefix === undefined ? PATIENT : { keyPrefix, ...PATIENT })
    await store.close()
    return store.settings
  }
  const first = await open('first')
  t.equal(first.keyPrefix, 'first')
  t.strictSame(await open(), first)
  t.strictSame(await open('last'), { ...first, keyPrefix: 'last' })
  const store = await openPostgresStore(url, PATIENT)
  await createPartners(store, 'acme')
  await apply(store, { type: 'key.issued', key: key() })
  await store.close()
  t.strictSame(await open('last'), { ...first, keyPrefix: 'last' })
  await t.rejects(open('other'), {
    code: 'refused',
    message: /cannot become other: it holds keys that begin with last/,
  })
  await t.rejects(open('Other'), { code: 'refused', message: /2 to 10 lower-case/ })
  t.strictSame(await open(), { ...first, keyPrefix: 'last' })
})

await t.test('what cannot be reached is named, and no password with it', async (t) => {
  const url = new URL(await server.createDatabase())
  url.password = 'hunter2secret'
  for (const address of [url.href, server.url('nowhere'), 'postgres://ada:hunter2secret@127.0.0.1:1/store']) {
    const { pathname, host } = new URL(address)
    await t.rejects(openPostgresStore(address), { code: 'unreachable', message: new RegExp(host + pathname) })
    await openPostgresStore(address).catch((error: Error) => {
      const { password } = new URL(address)
      for (let told: unknown = error; told instanceof Error; told = told.cause) {
        t.notOk(`${told.message}${told.stack}`.includes(password), 'the password stands nowhere')
      }
    })
  }
})

await t.test('a store whose rows are gone is not healthy', async (t) => {
  const url = await server.createDatabase()
  const store = await openPostgresStore(url, PATIENT)
  await store.check()
  await intrude(url, (sql) => sql`delete from partner_api.store`)
  await t.rejects(async () => await store.check(), {
    code: 'unreachable',
    message: /its settings are missing/,
  })
  await store.close()
})
