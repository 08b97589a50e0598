/** A PostgreSQL store shared by several processes: replicas, quotas, revisions and concurrent changes. */
import process from 'node:process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Revision } from '../../core/ports/facts.ts'
import type { Replica, ReplicaProgress } from '../../core/ports/replicas.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { ImportReport } from '../../core/ports/content.ts'
import type { Store } from '../../core/ports/store.ts'
import { PATIENT } from '../postgres/server.ts'
import {
  actor,
  apply,
  createPartners,
  industry,
  key,
  profile,
  publish,
  stamp,
  T0,
} from '../contract/store/samples.ts'
import { durableContract } from '../contract/store/durable.ts'
import { createPlace, serverFor, waitsForLock } from '../postgres/fixtures.ts'
import { until, within } from '../postgres/until.ts'

const server = await serverFor(t)

await durableContract(t, async () => {
  const url = await server.createDatabase()
  return (options) => openPostgresStore(url, { ...PATIENT, ...options })
})

/** A replica that confirms revisions when it is notified, and otherwise once an hour. */
function replica(store: Store, more: Partial<Replica> = {}): Replica {
  return {
    name: 'one',
    leaseMs: 60_000,
    revalidateEveryMs: 3_600_000,
    revalidate: async () => await store.revision(),
    skewMs: () => 0,
    ...more,
  }
}

const progress = async (store: Store, revision?: Revision): Promise<readonly ReplicaProgress[]> =>
  await store.replicas.progress(revision ?? await store.revision())

const hasApplied = async (store: Store, revision: Revision): Promise<boolean> =>
  (await progress(store, revision)).every(({ applied }) => applied)

await t.test('replicas are notified of a change and confirm it', async (t) => {
  const { store, open } = await createPlace(t, server)
  const others = await Promise.all(Array.from({ length: 4 }, open))
  const members = others.map((one) => one.replicas.register(replica(one)))
  for (const member of members) await member.registered()
  await createPartners(store, 'acme')
  const first = await store.revision()
  await until(() => hasApplied(store, first), 'all replicas to listen')
  for (let round = 0; round < 10; round++) {
    await apply(store, { type: round % 2 ? 'partner.resumed' : 'partner.suspended', slug: 'acme' })
    const revision = await store.revision()
    await until(() => hasApplied(store, revision), 'all replicas to have applied the change')
  }
  await Promise.all(members.map((member) => member.deregister()))
})

await t.test('notifications during a confirmation lead to one more', async (t) => {
  const { store, open } = await createPlace(t, server)
  const other = await open()
  let confirmations = 0
  let running = 0
  let atOnce = 0
  let held: Promise<void> = Promise.resolve()
  const member = other.replicas.register(replica(other, {
    async revalidate() {
      confirmations++
      atOnce = Math.max(atOnce, ++running)
      await held
      running--
      return await other.revision()
    },
  }))
  await member.registered()
  await createPartners(store, 'acme')
  const before = await store.revision()
  await until(() => hasApplied(store, before), 'the replica to listen')
  const gate = Promise.withResolvers<void>()
  held = gate.promise
  confirmations = 0
  for (let round = 0; round < 10; round++) {
    await apply(store, { type: round % 2 ? 'partner.resumed' : 'partner.suspended', slug: 'acme' })
    await until(() => confirmations > 0, 'the first confirmation')
  }
  t.equal(confirmations, 1)
  gate.resolve()
  const last = await store.revision()
  await until(() => hasApplied(store, last), 'the replica to have applied the last change')
  t.equal(atOnce, 1)
  // A notification may arrive during the following confirmation.
  t.ok(confirmations <= 3, `${confirmations} confirmations of 10 changes`)
  await member.deregister()
})

await t.test('a removed replica is listed again after its next confirmation', async (t) => {
  const { store, sql } = await createPlace(t, server)
  const member = store.replicas.register(replica(store, { leaseMs: 77, revalidateEveryMs: 5 }))
  await member.registered()
  await sql`DELETE FROM partner_api.replica`
  await until(async () => (await progress(store)).length === 1, 'the replica to be listed again')
  const revision = await store.revision()
  await until(() => hasApplied(store, revision), 'the replica to be up to date')
  t.match(await progress(store), [{ name: 'one', leaseMs: 77 }])
  await member.deregister()
})

await t.test('a replica that has confirmed a revision writes it again with a heartbeat only', async (t) => {
  const { store, sql } = await createPlace(t, server)
  let polls = 0
  const revalidate = async () => {
    polls++
    return await store.revision()
  }
  const member = store.replicas.register(replica(store, { revalidateEveryMs: 1, revalidate }))
  await member.registered()
  const revision = await store.revision()
  await until(() => hasApplied(store, revision), 'the first confirmation')
  const clocks = [[performance, performance.now], [Date, Date.now]] as const
  t.teardown(() => clocks.forEach(([clock, now]) => clock.now = now))
  const standAt = (ms: number) => {
    for (const [clock, now] of clocks) clock.now = ((at) => () => at)(now.call(clock) + ms)
  }
  const written = async () => (await sql`SELECT xmin::text FROM partner_api.replica`)[0]!['xmin']
  const morePolls = async () => {
    const first = polls
    await until(() => polls > first + 20, 'more polls')
  }
  standAt(0)
  // A heartbeat may be on its way.
  await morePolls()
  const before = await written()
  await morePolls()
  t.equal(await written(), before)
  standAt(2_000)
  await until(async () => await written() !== before, 'the heartbeat')
  await member.deregister()
})

await t.test('a replica that was unresponsive for too long registers again', async (t) => {
  const { store, sql } = await createPlace(t, server)
  // It does not confirm by itself.
  const member = store.replicas.register(replica(store, { revalidate: () => new Promise(() => {}) }))
  await member.registered()
  await sql`DELETE FROM partner_api.replica`
  t.equal(member.registered(), undefined)
  const { now } = performance
  t.teardown(() => void (performance.now = now))
  performance.now = () => now.call(performance) + 60_000
  const joining = member.registered()
  performance.now = now
  t.ok(joining instanceof Promise)
  await joining
  t.equal((await progress(store)).length, 1)
  t.equal(member.registered(), undefined)
  await member.deregister()
  t.same(await progress(store), [])
})

await t.test('an unresponsive replica counts until the end of its lease and a grace period', async (t) => {
  const { store, sql } = await createPlace(t, server)
  const silent = (id: string, leaseMs: number, agoMs: number) =>
    sql`
      INSERT INTO partner_api.replica
      SELECT ${id}, ${id}, ${leaseMs}, '', '', floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - ${agoMs}::bigint`
  await silent('alive', 10_000, 14_000)
  await silent('listed', 10_000, 16_000)
  await silent('just listed', 10_000, 69_000)
  await silent('gone', 10_000, 71_000)
  await silent('forgotten', 10_000, 3_611_000)
  await silent('standing in', 9_000_000, 3_601_000)
  const names = async () => (await progress(store)).map(({ name }) => name).sort()
  t.same(await names(), ['alive', 'just listed', 'listed', 'standing in'])
  const member = store.replicas.register(replica(store))
  await member.registered()
  await until(() => member.replicaCount() > 1, 'the replica to count the others')
  t.equal(member.replicaCount(), 3, 'replicas with a valid lease are counted')
  const left = async () => (await sql`SELECT id FROM partner_api.replica`).map(({ id }) => id)
  await until(async () => !(await left()).includes('forgotten'), 'the oldest row to be deleted')
  t.ok((await left()).includes('gone'))
  t.ok((await names()).includes('standing in'), 'a replica with stale-if-error stays listed')
  await member.deregister()
})

await t.test('a replica that was killed is not listed beside the one that replaces it', async (t) => {
  const { store, sql, open } = await createPlace(t, server)
  const killed = {
    name: 'web-1',
    leaseMs: 1_000,
    revalidateEveryMs: 1e6,
    revalidate: () => new Promise<never>(() => {}),
    skewMs: () => 0,
  }
  const names = async () => (await store.replicas.progress(await store.revision())).map(({ name }) => name)
  const start = async (more = {}) => {
    const member = (await open()).replicas.register({ ...killed, ...more })
    t.teardown(() => member.deregister())
    await member.registered()
  }
  await start()
  await start()
  t.same(await names(), ['web-1', 'web-1'], 'two that run under one name')
  await sql`UPDATE partner_api.replica SET seen_at = seen_at - 4_000`
  await start()
  t.same(await names(), ['web-1'])
})

await t.test('equal numbers of changes on two servers are different revisions', async (t) => {
  const { store, sql } = await createPlace(t, server)
  await createPartners(store, 'acme')
  const revision = await store.revision()
  // No replica of this process: it could confirm the revision again at any time.
  await sql`
    INSERT INTO partner_api.replica
    SELECT 'web-1', 'web-1', 60_000, ${revision.facts}, ${revision.content},
      floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint`
  t.ok(await hasApplied(store, revision))
  // As on a promoted standby that lacks the last changes.
  await sql`UPDATE partner_api.replica SET facts = regexp_replace(facts, '-.*', '-00000000.1')`
  t.notOk(await hasApplied(store, revision))
  await sql`UPDATE partner_api.replica SET facts = regexp_replace(facts, '-.*', '-00000000.9')`
  t.notOk(await hasApplied(store, revision), 'further changes do not make it equal')
})

await t.test('a replica survives a restart of the server, and deregisters in time while the server is unresponsive', async (t) => {
  const { store, open } = await createPlace(t, server)
  const other = await open()
  const member = other.replicas.register(replica(other, { revalidateEveryMs: 20 }))
  await member.registered()
  await server.restart()
  await until(async () => {
    try {
      await createPartners(store, 'acme')
      return true
    } catch {
      return false
    }
  }, 'the server to accept changes again')
  const revision = await store.revision()
  await until(() => hasApplied(store, revision), 'the replica to have applied a later change')
  await server.pause()
  try {
    await within(member.deregister(), 'the replica to deregister')
  } finally {
    await server.resume()
  }
})

await t.test('a replica does not keep its process alive', async (t) => {
  const { url } = await createPlace(t, server)
  const child = spawn(process.execPath, [
    fileURLToPath(new URL('postgres-replica-child.ts', import.meta.url)),
  ], {
    env: { ...process.env, STORE: url },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  child.stdout.setEncoding('utf8')
  let said = ''
  child.stdout.on('data', (text) => said += text)
  const [code] = await within(once(child, 'close'), 'the process to end')
  t.equal(said, 'joined\n')
  t.equal(code, 0)
})

const leaseRequest = { policy: 'key', subject: 'a', quota: 10, windowSeconds: 60, wanted: 4 } as const

await t.test('expired windows are deleted when others are opened, except for locked ones', async (t) => {
  const { store, sql } = await createPlace(t, server)
  for (let index = 0; index < 6; index++) {
    await store.quotas.leaseQuota({ ...leaseRequest, subject: `old${index}` })
  }
  await sql`UPDATE partner_api.quota_window SET opened_at = 1, ends_at = 2`
  const left = async () =>
    (await sql`SELECT subject FROM partner_api.quota_window ORDER BY subject`).map(({ subject }) => subject)
  await sql.begin(async (held) => {
    await held`SELECT 1 FROM partner_api.quota_window WHERE subject = 'old0' FOR UPDATE`
    for (let index = 0; index < 4; index++) {
      await store.quotas.leaseQuota({ ...leaseRequest, subject: `new${index}` })
    }
    await until(async () => (await left()).join() === 'new0,new1,new2,new3,old0', 'all but one to be deleted')
  })
  t.match(await store.quotas.leaseQuota({ ...leaseRequest, subject: 'old0' }), { granted: 4, remaining: 6 })
})

await t.test('of concurrent changes based on the same facts, one is applied', async (t) => {
  const { store, open } = await createPlace(t, server)
  const stores = [store, await open(), await open(), await open()]
  await createPartners(store, 'acme')
  for (let round = 0; round < 10; round++) {
    const { facts } = await store.revision()
    const applied = await Promise.all(
      stores.map((one) =>
        one.apply(
          [{ type: round % 2 ? 'partner.resumed' : 'partner.suspended', slug: 'acme' }],
          facts,
          stamp,
        )
      ),
    )
    t.strictSame([...applied].sort(), [false, false, false, true])
  }
  t.equal((await store.auditHead()).sequence, 11)
})

await t.test('a key can be revoked during an import', async (t) => {
  const { store: importer, open, sql } = await createPlace(t, server)
  const operator = await open()
  await createPartners(operator, 'acme')
  await apply(operator, { type: 'key.issued', key: key() })
  const imported = async (name: string) =>
    await importer.importContent('industries', [industry('a', { name })], { actor, now: T0 })
  await imported('First')
  let importing: Promise<ImportReport> | undefined
  await sql.begin(async (transaction) => {
    await transaction`select slug from partner_api.industry for update`
    importing = imported('Second')
    await until(() => waitsForLock(sql), 'the import to wait for a row')
    t.equal(await apply(operator, { type: 'key.revoked', id: key().id }), true)
    t.equal((await importer.findKey(key().id))?.key.state, 'revoked')
  })
  t.equal((await importing)?.replaced, 1)
})

await t.test('concurrent uses of keys are all recorded, while the keys change', async (t) => {
  const { store, open } = await createPlace(t, server)
  const stores = [store, await open(), await open(), await open()]
  const ids = Array.from({ length: 50 }, (_, index) => `key-${index}`)
  await createPartners(store, 'acme')
  await apply(store, ...ids.map((id) => ({ type: 'key.issued' as const, key: key({ id }) })))
  for (let round = 1; round <= 5; round++) {
    const orders = stores.map((_, place) => place % 2 ? ids : [...ids].reverse())
    await Promise.all([
      ...stores.map((one, place) =>
        one.recordKeyUses(new Map(orders[place]!.map((id) => [id, T0 + round * 10 + place])))
      ),
      apply(store, ...ids.map((id) => ({ type: 'key.disabled' as const, id }))),
    ])
    const used = (await store.listKeys({}, undefined, 1000)).map(({ lastUsedAt }) => lastUsedAt)
    t.strictSame(new Set(used), new Set([T0 + round * 10 + 3]))
  }
})

await t.test('a store that lost its last changes does not repeat their revisions', async (t) => {
  const { store, sql } = await createPlace(t, server)
  await createPartners(store, 'acme')
  const seen = new Set<string>()
  for (let times = 0; times < 5; times++) {
    await apply(store, { type: 'partner.suspended', slug: 'acme' })
    await publish(store, [profile(`p${times}`)])
    const { facts, content } = await store.revision()
    seen.add(facts).add(content)
    // As on a promoted standby that lacks the last changes.
    await sql`update partner_api.revision set changes = 1`
  }
  t.equal(seen.size, 10)
})
