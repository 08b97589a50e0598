/** Signups, counts, quotas and durability in a shared database, with crashes and locked rows. */
import type { Sql } from 'postgres'
import t, { type Test } from 'tap'
import type { SignupOutcome } from '../../core/ports/signups.ts'
import { StoreError } from '../../core/ports/store-error.ts'
import type { Store } from '../../core/ports/store.ts'
import {
  actor,
  apply,
  createPartners,
  DAY,
  key,
  plan,
  reservation,
  signup,
  T0,
  usageCount,
} from '../contract/store/samples.ts'
import {
  createPlace as createEmptyPlace,
  scansBy,
  serverFor,
  type StorePlace,
  waitsForLock,
} from '../postgres/fixtures.ts'
import { startGate } from '../postgres/network.ts'
import { hasPooler, startPooler } from '../postgres/pooler.ts'
import { until, within } from '../postgres/until.ts'

// An asynchronous commit is lost if the server is killed within ten seconds.
const server = await serverFor(t, { settings: { synchronous_commit: 'off', wal_writer_delay: '10s' } })
const pooler = hasPooler() === undefined ? await startPooler(server) : undefined
t.teardown(() => pooler?.close())
const pooled = (url: string) => pooler === undefined ? url : `${pooler.url(url)}?pooler=transaction`

/** A store with a partner and a key. */
async function createPlace(t: Test): Promise<StorePlace> {
  const place = await createEmptyPlace(t, server)
  await createPartners(place.store, 'acme')
  await apply(place.store, { type: 'key.issued', key: key() })
  return place
}

async function count(sql: Sql, table: string): Promise<number> {
  const [row] = await sql.unsafe(`SELECT count(*)::integer AS rows FROM partner_api.${table}`)
  return row!.rows
}

/** The sum of the signup counts by plan or country. */
async function counted(sql: Sql, dimension: 'plan' | 'country'): Promise<number> {
  const [row] = await sql`
    SELECT coalesce(sum(signups), 0)::integer AS signups FROM partner_api.signup_tally WHERE dimension = ${dimension}`
  return row!.signups
}

await t.test('of concurrent attempts of four stores with one key, one creates a signup', async (t) => {
  const { store, open, sql } = await createPlace(t)
  const stores = [store, await open(), await open(), await open()]
  // The second time, the reservation has expired.
  for (const [round, createdAt] of [T0, reservation().expiresAt].entries()) {
    const attempt = async (index: number): Promise<SignupOutcome> => {
      const sent = signup(`${round}-${index}`, { createdAt })
      const found = await stores[index % 4]!.createSignup(sent, reservation({ expiresAt: createdAt + DAY }))
      // On a busy machine, another attempt may hold the reservation for longer than this one waits.
      return found.outcome === 'conflict' ? await attempt(index) : found
    }
    const outcomes = await Promise.all(Array.from({ length: 100 }, (_, index) => attempt(index)))
    const [kept, ...earlier] = await store.listSignups(undefined, undefined, 10)
    t.equal(earlier.length, round)
    const replays = outcomes.filter(({ outcome }) => outcome !== 'created')
    t.strictSame(replays, Array(99).fill({ outcome: 'replayed', id: kept?.id, createdAt }))
    t.same([await counted(sql, 'plan'), await counted(sql, 'country')], [round + 1, round + 1])
  }
})

await t.test('a signup without an instant is rejected, and does not hold up later ones', async (t) => {
  const { store } = await createPlace(t)
  await t.rejects(async () => await store.createSignup({ ...signup('1'), createdAt: NaN }, undefined))
  t.match(await store.createSignup(signup('2'), undefined), { outcome: 'created' })
})

await t.test('an attempt that waits too long for another is a conflict', async (t) => {
  const { url, store: direct, sql, open } = await createPlace(t)
  const store = await open(pooled(url))
  const ended = Promise.withResolvers<void>()
  const holding = Promise.withResolvers<void>()
  const holder = sql.begin(async (held) => {
    await held`
      INSERT INTO partner_api.idempotency VALUES
        ('acme', 'live', ${reservation().key}, ${'f'.repeat(64)}, 'sgn_x', ${T0}, ${T0 + DAY})`
    holding.resolve()
    await ended.promise
    throw new Error('aborted')
  }).catch(() => undefined)
  await holding.promise

  const since = performance.now()
  let isWaiting = true
  const waiting = Promise.all(
    Array.from({ length: 4 }, async (_, index) => {
      const outcome = await (index % 2 ? store : direct).createSignup(signup(`${index}`), reservation())
      isWaiting = false
      return outcome
    }),
  )
  t.strictSame(await store.createSignup(signup('a'), reservation({ key: 'another' })), { outcome: 'created' })
  t.strictSame(await store.createSignup(signup('b'), undefined), { outcome: 'created' })
  t.ok(isWaiting, 'other signups do not wait')
  t.strictSame(await waiting, Array(4).fill({ outcome: 'conflict' }))
  const waited = performance.now() - since
  t.ok(waited > 1_900 && waited < 30_000, `after ${waited} ms`)
  ended.resolve()
  await holder
  t.strictSame(
    await store.createSignup(signup('0'), reservation()),
    { outcome: 'created' },
    'the conflict stored nothing',
  )
})

await t.test('a signup that waits for an attempt that fails is stored', async (t) => {
  const { store, sql } = await createPlace(t)
  let kept: Promise<SignupOutcome> | undefined
  await sql.begin(async (held) => {
    await held`
      INSERT INTO partner_api.idempotency VALUES
        ('acme', 'live', ${reservation().key}, ${'f'.repeat(64)}, 'sgn_x', ${T0}, ${T0 + DAY})`
    kept = Promise.resolve(store.createSignup(signup('1'), reservation()))
    await until(() => waitsForLock(sql), 'the signup to wait')
    throw new Error('aborted')
  }).catch(() => undefined)
  t.strictSame(await kept, { outcome: 'created' })
})

await t.test('replicas that add to the same counts do not deadlock', async (t) => {
  const { store, open } = await createPlace(t)
  const stores = [store, await open(), await open(), await open()]
  const rows = Array.from(
    { length: 60 },
    (_, index) => usageCount({ day: '2026-01-01', endpoint: `e${index}` }),
  )
  await Promise.all(stores.map(async (one, index) => {
    for (let round = 0; round < 15; round++) {
      const counts = (index + round) % 2 ? rows : rows.toReversed()
      const batch = `b${index}-${round}`
      await Promise.all([one.recordUsage(counts, batch), stores[(index + 1) % 4]!.recordUsage(counts, batch)])
    }
  }))
  const { requestsByEndpoint } = await store.summarise('acme', '2026-01-01', '2026-01-01')
  const ofKeys = await store.keyUsage([rows[0]!.keyId!], '2026-01-01', '2026-01-01')
  for (const found of [requestsByEndpoint, ofKeys]) {
    t.equal(found.length, 60)
    t.same(new Set(found.map(({ requests }) => requests)), new Set([60]))
  }
})

await t.test('a signup whose response was lost is stored once, and acknowledged', async (t) => {
  const { url, sql, open } = await createPlace(t)
  const gate = await startGate(server.port)
  t.teardown(() => gate.close())
  const store = await open(gate.url(url))
  for (const reserved of [reservation(), undefined]) {
    const before = await count(sql, 'signup')
    const sent = signup(reserved === undefined ? 'unreserved' : 'reserved')
    let outcome: Promise<SignupOutcome> | undefined
    await sql.begin(async (held) => {
      // Every row that may count the signup.
      await held`
        INSERT INTO partner_api.signup_tally
        SELECT 'acme', 'country', '2026-01-01', '', slot, 0 FROM generate_series(0, 63) AS slots (slot)
        ON CONFLICT (partner, dimension, day, value, slot) DO UPDATE SET signups = signup_tally.signups`
      outcome = Promise.resolve(store.createSignup(sent, reserved))
      await until(() => waitsForLock(sql), 'the signup to wait')
      await gate.reset()
    })
    await until(
      async () => await count(sql, 'signup') === before + 1,
      'the signup to be committed without a response',
    )
    await gate.restore()
    t.strictSame(await within(outcome!, 'the signup to be acknowledged'), { outcome: 'created' })
    t.equal(await count(sql, 'signup'), before + 1)
    t.equal(await counted(sql, 'country'), before + 1)
  }
  t.strictSame(
    await store.createSignup(signup('again'), reservation()),
    { outcome: 'replayed', id: signup('reserved').id, createdAt: T0 },
  )
  await t.rejects(Promise.resolve(store.createSignup(signup('unreserved'), undefined)), { code: 'refused' })
})

await t.test('acknowledged signups survive kills of the server and are stored once', async (t) => {
  const { url, store, open, sql } = await createPlace(t)
  const stores = [store, await open(pooled(url))]
  const kept: { id: string; name: string; isReserved: boolean }[] = []
  let attempts = 0
  let failures = 0
  let isOver = false

  async function work(one: Store, worker: number): Promise<void> {
    while (!isOver) {
      const attempt = attempts++
      const name = `k${worker}-${attempt}`
      const sent = signup(`${attempt}`, { plan: 'pro' })
      const isReserved = attempt % 2 === 0
      try {
        const { outcome } = await one.createSignup(sent, isReserved ? reservation({ key: name }) : undefined)
        if (outcome !== 'created') throw new Error(`${sent.id} was ${outcome}`)
        kept.push({ id: sent.id, name, isReserved })
      } catch (error) {
        const code = error instanceof StoreError ? error.code : undefined
        if (code !== 'unreachable' && code !== 'delayed') throw error
        failures++
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
  }

  await server.admin`CHECKPOINT`
  const workers = Array.from({ length: 12 }, (_, index) => work(stores[index % 2]!, index))
  const working = Promise.all(workers)
  for (let round = 0; round < 2; round++) {
    const before = kept.length
    await until(() => kept.length > before + 10 + 50 * round, 'some signups to be acknowledged')
    await server.kill()
    await server.restart()
  }
  const before = kept.length
  await until(() => kept.length > before + 20, 'signups to be acknowledged again')
  isOver = true
  await within(working, 'the last signups')

  const rows = await sql`SELECT id FROM partner_api.signup`
  const there = new Set(rows.map(({ id }) => id))
  t.equal(there.size, rows.length)
  t.same(kept.filter(({ id }) => !there.has(id)), [], `${kept.length} acknowledged signups are there`)
  t.ok(
    rows.length <= attempts && rows.length - kept.length <= failures,
    'other stored signups are at most the failed attempts',
  )
  t.equal(await counted(sql, 'plan'), rows.length, 'each was counted once')
  const reserved = await count(sql, 'idempotency')
  t.ok(reserved >= kept.filter(({ isReserved }) => isReserved).length)
  for (const { id, name } of kept.filter(({ isReserved }) => isReserved)) {
    const again = await store.createSignup(signup(`again-${name}`), reservation({ key: name }))
    if (again.outcome !== 'replayed' || again.id !== id) {
      t.fail(`${id} was acknowledged, and now is ${again.outcome}`)
    }
  }
  t.equal(await count(sql, 'signup'), rows.length)
})

await t.test('what was leased of a month or an hour of a partner survives a kill of the server', async (t) => {
  const { store } = await createPlace(t)
  const request = (wanted: number) =>
    ({ policy: 'partner', subject: 'acme', quota: 10, windowSeconds: 3_600, wanted }) as const
  await server.admin`CHECKPOINT`
  t.match(await store.quotas.leaseQuota(request(4)), { granted: 4, remaining: 6 })
  await server.kill()
  await server.restart()
  await until(() => Promise.resolve(store.revision()).then(() => true, () => false), 'the store to be back')
  t.match(await store.quotas.leaseQuota(request(0)), { granted: 0, remaining: 6 })
})

await t.test('a signup does not read the others', async (t) => {
  const place = await createPlace(t)
  await place.sql`VACUUM ANALYZE partner_api.signup`
  const scans = await scansBy(place, 'signup', async (store) => {
    for (let index = 0; index < 10; index++) await store.createSignup(signup(`a${index}`), undefined)
  })
  t.equal(scans, 0)
})

await t.test('signups delete expired reservations, except for locked ones', async (t) => {
  const { store, sql } = await createPlace(t)
  for (let index = 0; index < 10; index++) {
    await store.createSignup(signup(`a${index}`), reservation({ key: `a${index}`, expiresAt: T0 + 10 }))
  }
  await store.createSignup(signup('early', { createdAt: T0 + 9 }), undefined)
  const left = async () =>
    (await sql`SELECT key FROM partner_api.idempotency ORDER BY key`).map(({ key }) => key)
  // So many as have them deleted at least once.
  const createMany = (name: string) =>
    Promise.all(Array.from(
      { length: 100 },
      (_, index) => store.createSignup(signup(`${name}${index}`, { createdAt: T0 + 10 }), undefined),
    ))
  await sql.begin(async (held) => {
    await held`SELECT 1 FROM partner_api.idempotency WHERE key IN ('a0', 'a7') FOR UPDATE`
    await createMany('b')
    await until(
      async () => (await left()).join() === 'a0,a7',
      'all but the locked reservations to be deleted',
    )
  })
  await store.createSignup(signup('late', { createdAt: T0 + 10 }), reservation({ key: 'new' }))
  await createMany('c')
  await until(async () => (await left()).join() === 'new', 'the last reservations to be deleted')
})

await t.test('writes are committed synchronously despite another default', async (t) => {
  const { url, sql, open } = await createPlace(t)
  await sql.unsafe(`
    CREATE TABLE seen (setting TEXT);
    CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN INSERT INTO seen VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END';
    CREATE TRIGGER see AFTER INSERT ON partner_api.signup FOR EACH ROW EXECUTE FUNCTION see();
    CREATE TRIGGER see AFTER INSERT ON partner_api.audit FOR EACH ROW EXECUTE FUNCTION see();`)
  for (const [byDefault, expected] of [['off', 'on'], ['remote_apply', 'remote_apply']] as const) {
    await server.admin.unsafe(
      `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET synchronous_commit = ${byDefault}`,
    )
    for (const parameters of ['', '?pooler=transaction']) {
      const store = await open(`${url}${parameters}`)
      const id = `${byDefault}${parameters}`
      await store.createSignup(signup(id), undefined)
      await store.createSignup(signup(`${id} reserved`), reservation({ key: id }))
      await apply(store, { type: parameters === '' ? 'key.disabled' : 'key.enabled', id: key().id })
      await store.importContent('plans', [{ ...plan, name: id }], { now: T0, actor })
      const settings = await sql`DELETE FROM seen RETURNING setting`
      t.same(settings.map(({ setting }) => setting), Array(4).fill(expected), id)
    }
  }
})
