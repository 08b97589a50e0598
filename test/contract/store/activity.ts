import fc from 'fast-check'
import type { Key } from '../../../core/model.ts'
import type { Change } from '../../../core/ports/changes.ts'
import { type Activity, ACTIVITY_TYPES, type ActivityQuery } from '../../../core/ports/reports.ts'
import type { Signup } from '../../../core/ports/signups.ts'
import type { Store } from '../../../core/ports/store.ts'
import { actor, createKeys, createPartners, key, reservation, signup, T0 } from './samples.ts'
import { type Check, checkProperty } from './suites.ts'

/** A change or a signup after `T0`. */
type ActivityEvent =
  | { readonly at: number; readonly change: Change }
  | { readonly at: number; readonly signup: Signup }

/** A row without its id, which the store draws. */
type Row = Activity extends infer One ? One extends Activity ? Omit<One, 'id'> : never : never

const LATEST = T0 + 10
const MANY = 1000

const all: ActivityQuery = { types: [], after: undefined, limit: MANY }
const live = { keyId: 'acme-live', hint: key().hint, environment: 'live' } as const
const test = { keyId: 'acme-test', hint: key().hint, environment: 'test' } as const

async function applyEvents(store: Store, ...events: readonly ActivityEvent[]): Promise<void> {
  for (const event of events) {
    if ('signup' in event) await store.createSignup(event.signup, undefined)
    else await store.apply([event.change], (await store.revision()).facts, { actor, at: event.at })
  }
}

async function rowsOf(store: Store, query: Partial<ActivityQuery> = {}, now = LATEST): Promise<Row[]> {
  return (await store.listActivity('acme', { ...all, ...query }, now)).map(({ id: _, ...row }) => row as Row)
}

async function readPages(store: Store, query: ActivityQuery, now: number): Promise<Activity[]> {
  const rows: Activity[] = []
  for (let after = query.after;; after = rows.at(-1)) {
    const page = await store.listActivity('acme', { ...query, after }, now)
    if (page.length > query.limit) throw new Error(`a page of ${page.length} for a limit of ${query.limit}`)
    if (rows.length > MANY) throw new Error('paging never ends')
    rows.push(...page)
    if (page.length < query.limit) return rows
  }
}

/** A naive implementation of the report for one partner, which owns all keys. */
function expectedRows(events: readonly ActivityEvent[], keys: readonly Key[], now: number): Row[] {
  const rows = events.flatMap((event): Row[] => {
    if ('signup' in event) {
      const { signup } = event
      return signup.environment === 'test' ? [] : [{ type: 'signup.created', at: signup.createdAt, signup }]
    }
    const { at, change } = event
    if (change.type === 'module.activated' || change.type === 'module.deactivated') {
      return [{ at, type: change.type, module: change.module }]
    }
    if (!('id' in change)) return []
    const { id: keyId, hint, environment } = keys.find(({ id }) => id === change.id)!
    if (change.type === 'scope.granted' || change.type === 'scope.removed') {
      return [{ at, type: change.type, keyId, hint, environment, scope: change.scope }]
    }
    if (change.type === 'key.updated') return []
    return [{ at, type: change.type, keyId, hint, environment }]
  })
  for (const { id, hint, environment, expiresAt, retiresAt, createdAt } of keys) {
    rows.push({ at: createdAt, type: 'key.issued', keyId: id, hint, environment })
    const ends = [expiresAt, retiresAt].filter((end) => end !== undefined)
    const revoked = events.filter((event) =>
      'change' in event && event.change.type === 'key.revoked' && event.change.id === id
    )
    if (ends.length === 0 || revoked.some(({ at }) => at <= Math.min(...ends))) continue
    rows.push({ at: Math.min(...ends), type: 'key.expired', keyId: id, hint, environment })
  }
  return rows.filter(({ at }) => at <= now)
}

const ids = ['k1', 'k2', 'k3'] as const
const anyId = fc.constantFrom(...ids)
const anyChange: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ type: fc.constantFrom('key.disabled', 'key.enabled'), id: anyId }),
  fc.record({
    type: fc.constantFrom('scope.granted', 'scope.removed'),
    id: anyId,
    scope: fc.constantFrom('read:plans', 'read:banner'),
  }),
  fc.record({
    type: fc.constantFrom('module.activated', 'module.deactivated'),
    slug: fc.constant('acme'),
    module: fc.constantFrom('widget', 'banner'),
  }),
  fc.record({ type: fc.constantFrom('partner.suspended', 'partner.resumed'), slug: fc.constant('acme') }),
  // Its expiry is filled in once the keys are known.
  fc.record({
    type: fc.constant('key.updated'),
    id: anyId,
    name: fc.string(),
    allow: fc.constant([]),
    limits: fc.constant({}),
    owner: fc.constant(undefined),
    tags: fc.constant([]),
  }),
) as fc.Arbitrary<Change>

const anyInstant = fc.integer({ min: 1, max: 9 }).map((distance) => T0 + distance)
const maybe = fc.option(anyInstant, { nil: undefined })

/** A few keys and their ends, changes of all kinds, and signups, in any order and often at the same instant. */
const anyHistory = fc.record({
  ends: fc.tuple(...ids.map(() => fc.record({ expiresAt: maybe, retiresAt: maybe, revokedAt: maybe }))),
  changes: fc.array(fc.record({ at: anyInstant, change: anyChange }), { maxLength: 15 }),
  signups: fc.array(fc.record({ createdAt: anyInstant, environment: fc.constantFrom('live', 'test') }), {
    maxLength: 10,
  }),
})

/** The activity report. */
export async function activityContract(check: Check, open: () => Promise<Store>): Promise<void> {
  await check('each type of activity has a row with its members', async (t, store) => {
    await createPartners(store, 'acme')
    const sent = signup('1', { keyId: 'acme-live', createdAt: T0 + 9, message: 'all of it' })
    await applyEvents(
      store,
      { at: T0 + 1, change: { type: 'module.activated', slug: 'acme', module: 'banner' } },
      { at: T0 + 2, change: { type: 'key.issued', key: key({ id: 'acme-live', expiresAt: T0 + 20 }) } },
      { at: T0 + 3, change: { type: 'scope.granted', id: 'acme-live', scope: 'read:banner' } },
      { at: T0 + 4, change: { type: 'scope.removed', id: 'acme-live', scope: 'read:banner' } },
      { at: T0 + 5, change: { type: 'key.disabled', id: 'acme-live' } },
      { at: T0 + 6, change: { type: 'key.enabled', id: 'acme-live' } },
      {
        at: T0 + 7,
        change: { type: 'key.issued', key: key({ id: 'acme-test', environment: 'test', createdAt: T0 + 7 }) },
      },
      {
        at: T0 + 8,
        change: { type: 'key.rotated', id: 'acme-live', successorId: 'acme-test', retiresAt: T0 + 10 },
      },
      { at: T0 + 9, signup: sent },
      { at: T0 + 11, change: { type: 'key.revoked', id: 'acme-live' } },
      { at: T0 + 12, change: { type: 'module.deactivated', slug: 'acme', module: 'banner' } },
    )
    const wanted: Row[] = [
      { at: T0 + 12, type: 'module.deactivated', module: 'banner' },
      { at: T0 + 11, type: 'key.revoked', ...live },
      { at: T0 + 10, type: 'key.expired', ...live },
      { at: T0 + 9, type: 'signup.created', signup: sent },
      { at: T0 + 8, type: 'key.rotated', ...live },
      { at: T0 + 7, type: 'key.issued', ...test },
      { at: T0 + 6, type: 'key.enabled', ...live },
      { at: T0 + 5, type: 'key.disabled', ...live },
      { at: T0 + 4, type: 'scope.removed', ...live, scope: 'read:banner' },
      { at: T0 + 3, type: 'scope.granted', ...live, scope: 'read:banner' },
      { at: T0 + 2, type: 'key.issued', ...live },
      { at: T0 + 1, type: 'module.activated', module: 'banner' },
    ]
    t.strictSame(await rowsOf(store, {}, T0 + 12), wanted)
    t.strictSame(
      new Set(wanted.map(({ type }) => type)),
      new Set(ACTIVITY_TYPES),
      'the sample has every type',
    )
    for (const type of ACTIVITY_TYPES) {
      const found = await rowsOf(store, { types: [type] }, T0 + 12)
      t.strictSame(found, wanted.filter((row) => row.type === type), type)
    }
    const rows = await store.listActivity('acme', all, T0 + 12)
    t.ok(rows.every(({ id }) => /^act_[0-9A-Za-z_-]+$/.test(id)), 'ids are opaque')
    t.equal(new Set(rows.map(({ id }) => id)).size, rows.length, 'ids are unique')
    t.strictSame(await store.listActivity('acme', all, T0 + 99), rows, 'ids are stable')
    const audited = (await store.listAudit(0, MANY)).map(({ id }) => id)
    t.equal(
      rows.filter(({ id }) => audited.includes(id)).length,
      10,
      'audited rows have the ids of their audit entries',
    )
  })

  await check(
    'a partner sees its own live signups, each once, and all changes of its keys',
    async (t, store) => {
      await createKeys(store, 'acme', 'globex')
      const sent = signup('1', { keyId: 'acme-live' })
      await store.createSignup(sent, reservation())
      await store.createSignup({ ...sent, id: 'sgn_2' }, reservation())
      await store.createSignup({ ...sent, id: 'sgn_3' }, reservation({ fingerprint: 'e'.repeat(64) }))
      await applyEvents(
        store,
        { at: T0, signup: signup('t', { keyId: 'acme-test', environment: 'test' }) },
        { at: T0 + 1, change: { type: 'key.revoked', id: 'acme-test' } },
        { at: T0, signup: signup('g', { keyId: 'globex-live', partner: 'globex' }) },
        { at: T0, change: { type: 'module.activated', slug: 'globex', module: 'banner' } },
        {
          at: T0,
          change: { type: 'key.issued', key: key({ id: 'over', partner: 'globex', expiresAt: T0 }) },
        },
      )
      const rows = await rowsOf(store)
      t.strictSame(rows[0], { at: T0 + 1, type: 'key.revoked', ...test })
      t.strictSame(rows.map(({ type }) => type).sort(), [
        'key.issued',
        'key.issued',
        'key.revoked',
        'signup.created',
      ])
      t.strictSame(await rowsOf(store, { types: ['signup.created'] }), [
        { at: T0, type: 'signup.created', signup: sent },
      ])
      t.equal((await store.listActivity('globex', all, LATEST)).length, 6)
      t.strictSame(await store.listActivity('missing', all, LATEST), [])
    },
  )

  await check('removing a partner is reported as the revocation of its keys', async (t, store) => {
    await createKeys(store, 'acme')
    await applyEvents(
      store,
      { at: T0 + 1, change: { type: 'key.revoked', id: 'acme-test' } },
      { at: T0 + 2, change: { type: 'partner.removed', slug: 'acme' } },
    )
    t.strictSame((await rowsOf(store)).slice(0, 2), [
      { at: T0 + 2, type: 'key.revoked', ...live },
      { at: T0 + 1, type: 'key.revoked', ...test },
    ])
    t.equal((await rowsOf(store)).length, 4)
  })

  await check('a page after a position in the future starts at the present', async (t, store) => {
    await createKeys(store, 'acme')
    await applyEvents(store, { at: T0 + 5, change: { type: 'key.disabled', id: 'acme-live' } })
    const after = { at: T0 + 9, id: 'act_' }
    t.equal((await rowsOf(store, { after }, T0 + 4)).length, 2)
    t.equal((await rowsOf(store, { after }, T0 + 5)).length, 3)
  })

  await check('the pages together are all activity, newest first', async (t) => {
    const drawn = fc.tuple(
      anyHistory,
      fc.subarray([...ACTIVITY_TYPES]),
      fc.integer({ min: 1, max: 5 }),
      anyInstant,
    )
    await checkProperty(t, open, drawn, async (store, [{ ends, changes, signups }, types, limit, now]) => {
      await createPartners(store, 'acme')
      const keys = ids.map((id, index) => {
        const { revokedAt: _, ...instants } = ends[index]!
        return key({ id, ...instants, hint: `hint${index}`, environment: index === 2 ? 'test' : 'live' })
      })
      const events: ActivityEvent[] = [
        ...changes.map(({ at, change }) => {
          const { expiresAt } = keys.find(({ id }) => 'id' in change && id === change.id) ?? {}
          return { at, change: change.type === 'key.updated' ? { ...change, expiresAt } : change }
        }),
        ...signups.map((more, index) => ({
          at: more.createdAt,
          // Ids that sort before, between and after those of expiries.
          signup: signup('', { ...more, keyId: 'k1', id: `sgn_${'z0eM'[index % 4]}${(index * 7) % 10}` }),
        })),
        ...ids.flatMap((id, index): ActivityEvent[] => {
          const first = ends[index]!.revokedAt
          // A second revocation has no effect.
          const instants = first === undefined ? [] : [first, LATEST]
          return instants.map((at) => ({ at, change: { type: 'key.revoked', id } }))
        }),
      ]
      await applyEvents(
        store,
        ...keys.map((one): ActivityEvent => ({ at: T0, change: { type: 'key.issued', key: one } })),
        ...events,
      )
      const found = await readPages(store, { ...all, types, limit }, now)
      const expected = expectedRows(events, keys, now)
        .filter(({ type }) => types.length === 0 || types.includes(type))
      const text = (rows: readonly Row[]) =>
        rows.map((row) => JSON.stringify(Object.entries(row).sort())).sort().join('\n')
      const foundText = text(found.map(({ id: _, ...row }) => row as Row))
      if (foundText !== text(expected)) {
        throw new Error(`found\n${foundText}\nexpected\n${text(expected)}`)
      }
      for (const [index, row] of found.entries()) {
        const before = found[index - 1]
        if (before && !(before.at > row.at || (before.at === row.at && before.id < row.id))) {
          throw new Error(`${before.id} at ${before.at} precedes ${row.id} at ${row.at}`)
        }
      }
    })
  })
}
