/** What replicas that share a Postgres store know of each other, and what they take out of quotas. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import type { Sql } from 'postgres'
import t from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { Revision } from '../../core/ports/facts.ts'
import type { Replica, ReplicaProgress } from '../../core/ports/replicas.ts'
import type { Store } from '../../core/ports/store.ts'
import { apply, createPartners } from '../contract/store/samples.ts'
import type { SharedStore } from '../contract/store/suites.ts'
import { hasServer } from '../postgres/binaries.ts'
import { PATIENT, startServer } from '../postgres/server.ts'
import { until, within } from '../postgres/until.ts'

const reason = hasServer()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

const server = await startServer()
t.teardown(() => server.close())

interface Place {
  readonly url: string
  readonly store: SharedStore
  /** Asks the database itself, past the store. */
  readonly sql: Sql
  open(): Promise<SharedStore>
}

/** A store in a database, which ends with the test. */
async function createPlace(t: { teardown(end: () => Promise<void>): void }): Promise<Place> {
  const url = await server.createDatabase()
  const sql = postgres(url, { max: 2, onnotice: () => {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  async function open(): Promise<SharedStore> {
    const store: Store = await openPostgresStore(url, PATIENT)
    t.teardown(async () => await store.close())
    return store as SharedStore
  }
  return { url, sql, open, store: await open() }
}

/** A replica that confirms what its store is at when it hears of something, and otherwise hardly ever. */
function replica(store: SharedStore, more: Partial<Replica> = {}): Replica {
  const confirm = async () => await store.revision()
  return { name: 'one', leaseMs: 60_000, revalidateEveryMs: 3_600_000, revalidate: confirm, ...more }
}

const progress = async (store: SharedStore, revision?: Revision): Promise<readonly ReplicaProgress[]> =>
  await store.replicas.progress(revision ?? await store.revision())

const hasApplied = async (store: SharedStore, revision: Revision): Promise<boolean> =>
  (await progress(store, revision)).every(({ applied }) => applied)

await t.test('replicas that hear of a change say at once that they have applied it', async (t) => {
  const { store, open } = await createPlace(t)
  const others = await Promise.all(Array.from({ length: 4 }, open))
  const members = others.map((one) => one.replicas.register(replica(one)))
  for (const member of members) await member.registered()
  await createPartners(store, 'acme')
  const first = await store.revision()
  await until(() => hasApplied(store, first), 'all of them to listen')
  const taken: number[] = []
  for (let round = 0; round < 20; round++) {
    await apply(store, { type: round % 2 ? 'partner.resumed' : 'partner.suspended', slug: 'acme' })
    const since = performance.now()
    const revision = await store.revision()
    await until(() => hasApplied(store, revision), 'all of them to have applied the change')
    taken.push(performance.now() - since)
  }
  const median = taken.sort((a, b) => a - b)[10]!
  t.comment(`four replicas after ${median.toFixed(1)} ms, the median of 20`)
  await Promise.all(members.map((member) => member.deregister()))
})

await t.test('however much is heard of during a confirmation, one more does', async (t) => {
  const { store, open } = await createPlace(t)
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
  await until(() => hasApplied(store, before), 'it to listen')
  const gate = Promise.withResolvers<void>()
  held = gate.promise
  confirmations = 0
  for (let round = 0; round < 20; round++) {
    await apply(store, { type: round % 2 ? 'partner.resumed' : 'partner.suspended', slug: 'acme' })
    await until(() => confirmations > 0, 'the first confirmation')
  }
  t.equal(confirmations, 1)
  gate.resolve()
  const last = await store.revision()
  await until(() => hasApplied(store, last), 'it to have applied the last change')
  t.equal(atOnce, 1)
  // News of the last change may come when the one that follows has begun.
  t.ok(confirmations <= 3, `${confirmations} confirmations of 20 changes`)
  await member.deregister()
})

await t.test('a replica that was struck off is listed again with what it confirms next', async (t) => {
  const { store, sql } = await createPlace(t)
  const member = store.replicas.register(replica(store, { leaseMs: 77, revalidateEveryMs: 5 }))
  await member.registered()
  await sql`DELETE FROM partner_api.replica`
  await until(async () => (await progress(store)).length === 1, 'it to be listed again')
  const revision = await store.revision()
  await until(() => hasApplied(store, revision), 'it to be up to date')
  t.match(await progress(store), [{ name: 'one', leaseMs: 77 }])
  await member.deregister()
})

await t.test('who was not heard of for so long that nobody may know of it joins anew', async (t) => {
  const { store, sql } = await createPlace(t)
  // It says nothing by itself.
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

await t.test('who is silent counts for as long as it may use something, then goes', async (t) => {
  const { store, sql } = await createPlace(t)
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
  await until(() => member.replicaCount() > 1, 'it to hear of the others')
  t.equal(member.replicaCount(), 3, 'of those whose lease may be used')
  const left = async () => (await sql`SELECT id FROM partner_api.replica`).map(({ id }) => id)
  await until(async () => !(await left()).includes('forgotten'), 'the oldest row to be cleared away')
  t.ok((await left()).includes('gone'))
  t.ok((await names()).includes('standing in'), 'however long it may stand in for the store')
  await member.deregister()
})

await t.test('as many changes as another server counted are not the same changes', async (t) => {
  const { store, sql } = await createPlace(t)
  const member = store.replicas.register(replica(store, { revalidateEveryMs: 3_600_000 }))
  await createPartners(store, 'acme')
  await member.registered()
  const revision = await store.revision()
  await until(() => hasApplied(store, revision), 'it to have applied what there is')
  // As a standby has it that takes over without the last changes.
  await sql`UPDATE partner_api.replica SET facts = regexp_replace(facts, '-.*', '-00000000.1')`
  t.notOk(await hasApplied(store, revision))
  await sql`UPDATE partner_api.replica SET facts = regexp_replace(facts, '-.*', '-00000000.9')`
  t.notOk(await hasApplied(store, revision), 'nor are more of them')
  await member.deregister()
})

await t.test('a replica outlives its server, and leaves in time while it is silent', async (t) => {
  const { store, open } = await createPlace(t)
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
  }, 'the server to take changes again')
  const revision = await store.revision()
  await until(() => hasApplied(store, revision), 'it to have applied a change after that')
  await server.pause()
  try {
    await within(member.deregister(), 'it to leave')
  } finally {
    await server.resume()
  }
})

await t.test('a replica keeps no process from ending', async (t) => {
  const { url } = await createPlace(t)
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

const ask = { policy: 'key', subject: 'a', quota: 10, windowSeconds: 60, wanted: 4 } as const

await t.test('windows that are over are cleared away when others are opened, unless somebody holds them', async (t) => {
  const { store, sql } = await createPlace(t)
  for (let index = 0; index < 6; index++) await store.quotas.leaseQuota({ ...ask, subject: `old${index}` })
  await sql`UPDATE partner_api.quota_window SET opened_at = 1, ends_at = 2`
  const left = async () =>
    (await sql`SELECT subject FROM partner_api.quota_window ORDER BY subject`).map(({ subject }) => subject)
  await sql.begin(async (held) => {
    await held`SELECT 1 FROM partner_api.quota_window WHERE subject = 'old0' FOR UPDATE`
    for (let index = 0; index < 4; index++) await store.quotas.leaseQuota({ ...ask, subject: `new${index}` })
    await until(async () => (await left()).join() === 'new0,new1,new2,new3,old0', 'all but one to be gone')
  })
  t.match(await store.quotas.leaseQuota({ ...ask, subject: 'old0' }), { granted: 4, remaining: 6 })
})

await t.test('a window that was opened by a clock that was set back since is opened anew', async (t) => {
  const { store, sql } = await createPlace(t)
  await store.quotas.leaseQuota({ ...ask, wanted: 10 })
  const moveTo = (aheadMs: number) =>
    sql`UPDATE partner_api.quota_window SET opened_at =
      floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${aheadMs}::bigint`
  await moveTo(30_000)
  const { granted, resetMs } = await store.quotas.leaseQuota(ask)
  t.same([granted, resetMs], [0, 60_000], 'never longer than a window')
  await moveTo(3_600_000)
  t.match(await store.quotas.leaseQuota(ask), { granted: 4, remaining: 6 })
})
