import fc from 'fast-check'
import type { Key } from '../../../core/model.ts'
import type { Change } from '../../../core/ports/changes.ts'
import { type Activity, ACTIVITY_TYPES, type ActivityQuery } from '../../../core/ports/reports.ts'
import type { Signup } from '../../../core/ports/signups.ts'
import type { Store } from '../../../core/ports/store.ts'
import { actor, claim, createKeys, createPartners, key, signup, T0 } from './samples.ts'
import type { Check } from './suites.ts'

/** Something that is done to a store at an instant after `T0`. */
type Deed =
  | { readonly at: number; readonly change: Change }
  | { readonly at: number; readonly signup: Signup }

/** A row but for its id, which is the store's to give. */
type Row = Activity extends infer One ? One extends Activity ? Omit<One, 'id'> : never : never

const LATEST = T0 + 10
const MANY = 1000

const all: ActivityQuery = { types: [], after: undefined, limit: MANY }
const live = { keyId: 'acme-live', hint: key().hint, environment: 'live' } as const
const test = { keyId: 'acme-test', hint: key().hint, environment: 'test' } as const

async function perform(store: Store, ...deeds: readonly Deed[]): Promise<void> {
  for (const deed of deeds) {
    if ('signup' in deed) await store.createSignup(deed.signup, undefined)
    else await store.apply([deed.change], (await store.revision()).facts, { actor, at: deed.at })
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

/** What deeds are to be seen of, said in the plainest way. Of one partner, whose keys are all there are. */
function expectedRows(deeds: readonly Deed[], keys: readonly Key[], now: number): Row[] {
  const rows = deeds.flatMap((deed): Row[] => {
    if ('signup' in deed) {
      const { signup } = deed
      return signup.environment === 'test' ? [] : [{ type: 'signup.created', at: signup.createdAt, signup }]
    }
    const { at, change } = deed
    if (change.type === 'module.activated' || change.type === 'module.deactivated') {
      return [{ at, type: change.type, module: change.module }]
    }
    if (!('id' in change)) return []
    const { id: keyId, hint, environment } = keys.find(({ id }) => id === change.id)!
    if (change.type === 'scope.granted' || change.type === 'scope.removed') {
      return [{ at, type: change.type, keyId, hint, environment, scope: change.scope }]
    }
    return change.type === 'key.updated' ? [] : [{ at, type: change.type, keyId, hint, environment }]
  })
  for (const { id, hint, environment, expiresAt, retiresAt, createdAt } of keys) {
    rows.push({ at: createdAt, type: 'key.issued', keyId: id, hint, environment })
    const ends = [expiresAt, retiresAt].filter((end) => end !== undefined)
    const revoked = deeds.filter((deed) =>
      'change' in deed && deed.change.type === 'key.revoked' && deed.change.id === id
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
  // Its expiry is filled in where the keys are known.
  fc.record({
    type: fc.constant('key.updated'),
    id: anyId,
    name: fc.string(),
    allow: fc.constant([]),
    limits: fc.constant({}),
  }),
) as fc.Arbitrary<Change>

const anyInstant = fc.integer({ min: 1, max: 9 }).map((distance) => T0 + distance)
const maybe = fc.option(anyInstant, { nil: undefined })

/** A few keys and what became of them, changes of all kinds, and signups, in any order and often at the same instant. */
const anyStory = fc.record({
  ends: fc.tuple(...ids.map(() => fc.record({ expiresAt: maybe, retiresAt: maybe, revokedAt: maybe }))),
  changes: fc.array(fc.record({ at: anyInstant, change: anyChange }), { maxLength: 15 }),
  signups: fc.array(fc.record({ createdAt: anyInstant, environment: fc.constantFrom('live', 'test') }), {
    maxLength: 10,
  }),
})

/** What the activity report is made of. */
export async function activityContract(check: Check, open: () => Promise<Store>): Promise<void> {
  await check('each type of activity has its row, with what a report shows of it', async (t, store) => {
    await createPartners(store, 'acme')
    const sent = signup('1', { keyId: 'acme-live', createdAt: T0 + 9, message: 'all of it' })
    await perform(
      store,
      { at: T0 + 1, change: { type: 'module.activated', slug: 'acme', module: 'banner' } },
      { at: T0 + 2, change: { type: 'key.issued', key: key({ id: 'acme-live', expiresAt: T0 + 10 }) } },
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
    t.strictSame(new Set(wanted.map(({ type }) => type)), new Set(ACTIVITY_TYPES), 'that is all types')
    for (const type of ACTIVITY_TYPES) {
      const found = await rowsOf(store, { types: [type] }, T0 + 12)
      t.strictSame(found, wanted.filter((row) => row.type === type), type)
    }
    const rows = await store.listActivity('acme', all, T0 + 12)
    t.ok(rows.every(({ id }) => /^act_[0-9A-Za-z_-]+$/.test(id)), 'ids are opaque texts')
    t.equal(new Set(rows.map(({ id }) => id)).size, rows.length, 'no two are the same')
    t.strictSame(await store.listActivity('acme', all, T0 + 99), rows, 'and they stay')
    const audited = (await store.listAudit(0, MANY)).map(({ id }) => id)
    t.equal(
      rows.filter(({ id }) => audited.includes(id)).length,
      10,
      'the trail knows its rows by the same ids',
    )
  })

  await check('what test keys did does not show, what was decided about them does', async (t, store) => {
    await createKeys(store, 'acme')
    const sent = signup('t', { keyId: 'acme-test', environment: 'test' })
    await perform(store, { at: T0, signup: sent })
    await perform(store, { at: T0 + 1, change: { type: 'key.revoked', id: 'acme-test' } })
    const rows = await rowsOf(store)
    t.strictSame(rows[0], { at: T0 + 1, type: 'key.revoked', ...test })
    t.strictSame(rows.filter(({ type }) => type === 'signup.created'), [])
    t.equal(rows.length, 3)
  })

  await check('replayed and mismatched signups do not show', async (t, store) => {
    await createKeys(store, 'acme')
    const sent = signup('1', { keyId: 'acme-live' })
    await store.createSignup(sent, claim())
    await store.createSignup({ ...sent, id: 'sgn_2' }, claim())
    await store.createSignup({ ...sent, id: 'sgn_3' }, claim({ fingerprint: 'e'.repeat(64) }))
    t.strictSame(await rowsOf(store, { types: ['signup.created'] }), [
      { at: T0, type: 'signup.created', signup: sent },
    ])
  })

  await check('a partner sees its own activity only', async (t, store) => {
    await createKeys(store, 'acme', 'globex')
    const sent = signup('1', { keyId: 'globex-live', partner: 'globex' })
    await perform(
      store,
      { at: T0, signup: sent },
      { at: T0, change: { type: 'module.activated', slug: 'globex', module: 'banner' } },
      { at: T0, change: { type: 'key.issued', key: key({ id: 'over', partner: 'globex', expiresAt: T0 }) } },
    )
    t.equal((await store.listActivity('globex', all, LATEST)).length, 6)
    t.strictSame((await rowsOf(store)).map(({ type }) => type), ['key.issued', 'key.issued'])
    t.strictSame(await store.listActivity('nobody', all, LATEST), [])
  })

  await check('the removal of a partner shows as what it did to its keys', async (t, store) => {
    await createKeys(store, 'acme')
    await perform(
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

  for (
    const [says, ends, revokedAt, expired] of [
      ['has no end', {}, undefined, undefined],
      ['expires', { expiresAt: T0 + 5 }, undefined, T0 + 5],
      ['retires', { retiresAt: T0 + 5 }, undefined, T0 + 5],
      ['retires before it expires', { expiresAt: T0 + 6, retiresAt: T0 + 5 }, undefined, T0 + 5],
      ['expires before it retires', { expiresAt: T0 + 5, retiresAt: T0 + 6 }, undefined, T0 + 5],
      ['was revoked before its end', { expiresAt: T0 + 5 }, T0 + 4, undefined],
      ['was revoked at its end', { expiresAt: T0 + 5 }, T0 + 5, undefined],
      ['was revoked after its end', { expiresAt: T0 + 5 }, T0 + 6, T0 + 5],
      ['was revoked between two ends', { expiresAt: T0 + 7, retiresAt: T0 + 5 }, T0 + 6, T0 + 5],
    ] as const
  ) {
    await check(`the expiry of a key that ${says}`, async (t, store) => {
      await createPartners(store, 'acme')
      await perform(store, { at: T0, change: { type: 'key.issued', key: key({ id: 'acme-live', ...ends }) } })
      if (revokedAt !== undefined) {
        const change: Change = { type: 'key.revoked', id: 'acme-live' }
        // Once more is no other revocation.
        await perform(store, { at: revokedAt, change }, { at: T0 + 9, change })
      }
      const expiries = (now: number) => rowsOf(store, { types: ['key.expired'] }, now)
      t.strictSame(await expiries(T0 + 4), [], 'not before its time')
      const wanted: Row[] = expired === undefined ? [] : [{ at: expired, type: 'key.expired', ...live }]
      t.strictSame(await expiries(T0 + 5), wanted, 'at its time')
      t.strictSame(await expiries(LATEST), wanted, 'and from then on')
    })
  }

  await check('a page after a place later than now starts now', async (t, store) => {
    await createKeys(store, 'acme')
    await perform(store, { at: T0 + 5, change: { type: 'key.disabled', id: 'acme-live' } })
    const after = { at: T0 + 9, id: 'act_' }
    t.equal((await rowsOf(store, { after }, T0 + 4)).length, 2)
    t.equal((await rowsOf(store, { after }, T0 + 5)).length, 3)
  })

  await check('rows of one instant follow each other by id, whatever they are rows of', async (t, store) => {
    await createPartners(store, 'acme')
    const issued = ['k1', 'k2'].map((id) => key({ id, createdAt: T0 + 5, expiresAt: T0 + 5 }))
    // Ids on either side of those of expiries, and among them.
    const sent = ['0', 'M', 'e', 'expired_k1x', 'z'].map((id) =>
      signup('', { id: `sgn_${id}`, keyId: 'k1', createdAt: T0 + 5 })
    )
    await perform(
      store,
      ...issued.map((one): Deed => ({ at: T0 + 5, change: { type: 'key.issued', key: one } })),
      ...sent.map((signup): Deed => ({ at: T0 + 5, signup })),
    )
    const rows = await store.listActivity('acme', all, T0 + 5)
    t.strictSame(rows.map(({ id }) => id), rows.map(({ id }) => id).toSorted())
    t.equal(rows.length, 9)
    for (const limit of [1, 2, 4]) {
      t.strictSame(await readPages(store, { ...all, limit }, T0 + 5), rows, `${limit} a page`)
    }
  })

  await check('pages put together are everything that happened, in order', async (t) => {
    const property = fc.asyncProperty(
      anyStory,
      fc.subarray([...ACTIVITY_TYPES]),
      fc.integer({ min: 1, max: 5 }),
      anyInstant,
      async ({ ends, changes, signups }, types, limit, now) => {
        const store = await open()
        try {
          await createPartners(store, 'acme')
          const keys = ids.map((id, index) => {
            const { revokedAt: _, ...instants } = ends[index]!
            return key({ id, ...instants, hint: `hint${index}`, environment: index === 2 ? 'test' : 'live' })
          })
          const deeds: Deed[] = [
            ...changes.map(({ at, change }) => {
              const { expiresAt } = keys.find(({ id }) => 'id' in change && id === change.id) ?? {}
              return { at, change: change.type === 'key.updated' ? { ...change, expiresAt } : change }
            }),
            ...signups.map((more, index) => ({
              at: more.createdAt,
              // Ids on either side of those of expiries, and among them.
              signup: signup('', { ...more, keyId: 'k1', id: `sgn_${'z0eM'[index % 4]}${(index * 7) % 10}` }),
            })),
            ...ids.flatMap((id, index): Deed[] => {
              const at = ends[index]!.revokedAt
              return at === undefined ? [] : [{ at, change: { type: 'key.revoked', id } }]
            }),
          ]
          await perform(
            store,
            ...keys.map((one): Deed => ({ at: T0, change: { type: 'key.issued', key: one } })),
          )
          await perform(store, ...deeds)
          const found = await readPages(store, { ...all, types, limit }, now)
          const wanted = expectedRows(deeds, keys, now)
            .filter(({ type }) => types.length === 0 || types.includes(type))
          const texts = (rows: readonly Row[]) =>
            rows.map((row) => JSON.stringify(Object.entries(row).sort()))
          const bare = found.map(({ id: _, ...row }) => row as Row)
          if (texts(bare).sort().join('\n') !== texts(wanted).sort().join('\n')) {
            throw new Error(`found\n${texts(bare).join('\n')}\nwanted\n${texts(wanted).join('\n')}`)
          }
          for (const [index, row] of found.entries()) {
            const before = found[index - 1]
            if (before && !(before.at > row.at || (before.at === row.at && before.id < row.id))) {
              throw new Error(`${before.id} at ${before.at} stands before ${row.id} at ${row.at}`)
            }
          }
        } finally {
          await store.close()
        }
      },
    )
    await fc.assert(property)
    t.ok(true, 'in every story')
  })
}
