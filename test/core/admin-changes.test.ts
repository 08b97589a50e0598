import fc from 'fast-check'
import { test } from 'tap'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { createKeyAdministration, type NewKey } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import type { AdminErrorCode } from '../../core/admin/validate.ts'
import { extractKeyId, hasValidChecksum } from '../../core/keys/format.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import { DEFAULT_LIMITS, policiesFor } from '../../core/limits/policies.ts'
import type { Limit, LimitOverrides } from '../../core/model.ts'
import { MODULE_NAMES, SCOPES } from '../../core/policy/modules.ts'
import type { Store } from '../../core/ports/store.ts'
import { gather } from '../support/gather.ts'

const now = Date.UTC(2026, 0, 1)
const hour = 3_600_000

/** A store with partner `acme`, all of whose modules are active, and a clock that can be moved. */
async function open(store: Store = createMemoryStore()) {
  const clock = { now }
  const operator = { actor: 'operator', clock: () => clock.now }
  const partners = createPartnerAdministration(store, operator)
  const keys = createKeyAdministration(store, operator)
  await partners.create({ slug: 'acme', name: 'Acme Travel', modules: MODULE_NAMES })
  const issue = (more: Partial<NewKey> = {}) =>
    keys.issue({ partner: 'acme', name: 'Plugin', environment: 'live', ...more })
  return { store, clock, partners, keys, issue }
}

const refused = (code: AdminErrorCode, message: RegExp = /./) => ({ name: 'AdminError', code, message })

/** Whether facts stay untouched by what `act` asks for, refused or not. */
async function leavesFacts(store: Store, act: () => Promise<unknown>): Promise<boolean> {
  const before = (await store.revision()).facts
  await act().catch(() => {})
  return (await store.revision()).facts === before
}

test('a rotated key has a successor that may do the same, and ends after the overlap', async (t) => {
  const { store, clock, keys, issue } = await open(createMemoryStore({ keyPrefix: 'acme' }))
  const old = await issue({
    environment: 'test',
    scopes: ['read:plans'],
    expiresAt: now + 100 * hour,
    allow: ['192.0.2.0/24'],
    limits: { key: { quota: 5, windowSeconds: 10 } },
  })
  await store.recordKeyUses(new Map([[old.key.id, now]]))
  clock.now += hour
  const next = await keys.rotate(old.key.id)
  t.match(next.text, /^acme_test_/)
  t.equal(extractKeyId(next.text, 'acme'), next.key.id)
  t.ok(hasValidChecksum(next.text))
  t.same(next.key, {
    ...old.key,
    id: next.key.id,
    digest: store.sha256(next.text),
    hint: next.text.slice(-4),
    createdAt: now + hour,
  })
  t.match(await keys.show(old.key.id), { successorId: next.key.id, retiresAt: now + 25 * hour })
  t.same((await store.listAudit(0, 10)).map(({ type }) => type), [
    'partner.created',
    'key.issued',
    'key.issued',
    'key.rotated',
  ])
  const long = { overlapMs: 200 * hour, expiresAt: now + 500 * hour }
  t.equal((await keys.rotate(next.key.id, long)).key.expiresAt, now + 500 * hour)
  t.equal((await keys.show(next.key.id)).retiresAt, now + 100 * hour, 'no overlap outlasts the expiry')
})

test('keys that are not rotated', async (t) => {
  const { store, clock, partners, keys, issue } = await open()
  const [revoked, expired, disabled, rotated, good] = await Promise.all(
    [{}, { expiresAt: now + 1 }, {}, {}, {}].map(issue),
  )
  await keys.revoke(revoked!.key.id)
  await keys.disable(disabled!.key.id)
  const successor = await keys.rotate(rotated!.key.id)
  clock.now += 1
  const wrong: [string, Parameters<typeof keys.rotate>[1], AdminErrorCode, RegExp][] = [
    [revoked!.key.id, {}, 'key_revoked', /is revoked/],
    [expired!.key.id, {}, 'key_expired', /has expired/],
    [disabled!.key.id, {}, 'key_disabled', new RegExp(`keys enable ${disabled!.key.id}`)],
    [rotated!.key.id, {}, 'key_rotated', new RegExp(`keys rotate ${successor.key.id}`)],
    ['Zt81Zt81Zt81', {}, 'key_not_found', /Zt81/],
    [good!.key.id, { overlapMs: -1 }, 'invalid_duration', /overlap/],
    [good!.key.id, { overlapMs: NaN }, 'invalid_duration', /overlap/],
    [good!.key.id, { overlapMs: 0.5 }, 'invalid_duration', /overlap/],
    [good!.key.id, { overlapMs: 36_525 * 24 * hour + 1 }, 'invalid_duration', /36525d/],
    [good!.key.id, { expiresAt: clock.now }, 'invalid_expiry', /future/],
  ]
  for (const [id, how, code, message] of wrong) {
    await t.rejects(keys.rotate(id, how), refused(code, message), code)
    t.ok(await leavesFacts(store, () => keys.rotate(id, how)), code)
  }
  await keys.rotate(successor.key.id, { overlapMs: 0 })
  await keys.rotate((await issue()).key.id, { overlapMs: 36_525 * 24 * hour })
  clock.now += 25 * hour
  await t.rejects(keys.rotate(rotated!.key.id), refused('key_expired'), 'past its overlap')
  await partners.remove('acme')
  await t.rejects(keys.rotate(good!.key.id), refused('key_revoked'), 'with its partner')
})

test('two rotations of one key at once make one successor', async (t) => {
  const { store, keys, issue } = await open()
  const { key } = await issue()
  const other = createKeyAdministration(store, { actor: 'other', clock: () => now })
  const results = await Promise.allSettled([keys.rotate(key.id), other.rotate(key.id)])
  t.same(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  t.equal((await store.listKeys(undefined, undefined, 1000)).length, 2)
})

test('limits are the same in any order', async (t) => {
  const { store, partners, keys, issue } = await open()
  const [key, verify] = [{ quota: 5, windowSeconds: 10 }, { quota: 6, windowSeconds: 10 }]
  const { key: { id } } = await issue({ limits: { key, verify } })
  await partners.update('acme', { limits: { set: { key, verify } } })
  // What is cleared and set again stands last.
  const again = { clear: ['key'], set: { key } }
  t.ok(await leavesFacts(store, () => keys.update(id, { limits: again })))
  t.ok(await leavesFacts(store, () => partners.update('acme', { limits: again })))
  t.notOk(await leavesFacts(store, () => keys.update(id, { limits: { set: { key: verify } } })))
})

test('an operator has a name that the audit log can show', (t) => {
  const store = createMemoryStore()
  const wrong = ['', ' ', 'a\nb', '\u0000', 'a'.repeat(201), '\ud800']
  for (const actor of wrong) {
    t.throws(() => createPartnerAdministration(store, { actor }), RangeError, JSON.stringify(actor))
    t.throws(() => createKeyAdministration(store, { actor }), RangeError, JSON.stringify(actor))
  }
  t.ok(createPartnerAdministration(store, { actor: '👋'.repeat(200) }))
  t.end()
})

const limit: fc.Arbitrary<Limit> = fc.record({
  quota: fc.integer({ min: 0, max: 1_000_000_000 }),
  windowSeconds: fc.integer({ min: 1, max: 86_400 }),
})
const limits = fc.record({ key: limit, signup: limit, verify: limit }, { requiredKeys: [] }) as fc.Arbitrary<
  LimitOverrides
>
const overridable = ['key', 'signup', 'verify'] as const

test('at every instant of a chain of rotations each key is what its overlap and expiry say', async (t) => {
  const step = fc.record({
    wait: fc.nat(50),
    overlapMs: fc.option(fc.nat(100), { nil: undefined }),
    expiresIn: fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
  })
  await t.resolves(fc.assert(
    fc.asyncProperty(
      fc.subarray([...SCOPES]),
      limits,
      fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
      fc.array(step, { minLength: 1, maxLength: 6 }),
      async (scopes, ownLimits, expiresIn, steps) => {
        const { store, clock, keys, issue } = await open()
        let last =
          (await issue({ scopes, limits: ownLimits, ...(expiresIn && { expiresAt: now + expiresIn }) })).key
        // When each key ends, worked out without the code under test.
        const ends = new Map([[last.id, last.expiresAt ?? Infinity]])
        for (const { wait, overlapMs, expiresIn } of steps) {
          clock.now += wait
          if (ends.get(last.id)! <= clock.now) {
            if (!await leavesFacts(store, () => keys.rotate(last.id))) return false
            break
          }
          const expiresAt = expiresIn && clock.now + expiresIn
          const { key } = await keys.rotate(last.id, { overlapMs, expiresAt })
          // Without an overlap it has ended by every clock.
          const end = overlapMs === 0 ? -Infinity : clock.now + (overlapMs ?? 24 * hour)
          ends.set(last.id, Math.min(ends.get(last.id)!, end))
          ends.set(key.id, expiresAt ?? last.expiresAt ?? Infinity)
          const same = ['partner', 'name', 'environment', 'scopes', 'allow', 'limits'] as const
          if (same.some((member) => JSON.stringify(key[member]) !== JSON.stringify(last[member]))) {
            return false
          }
          last = key
        }
        const kept = await gather(keys.list())
        return kept.length === ends.size && kept.every((key) => {
          const end = ends.get(key.id)!
          const before = key.id === last.id ? 'active' : 'retiring'
          const instants = [now, clock.now, end - 1, end, end + 1].filter(Number.isFinite)
          return instants.every((at) => keyState(key, at) === (at < end ? before : 'expired'))
        })
      },
    ),
    { numRuns: 200 },
  ))
})

test('limits of partners and keys are what was set last, and only for policies that are named', async (t) => {
  const change = fc.record({ set: limits, clear: fc.subarray([...overridable]) })
  await t.resolves(fc.assert(
    fc.asyncProperty(limits, fc.array(change, { maxLength: 6 }), async (start, changes) => {
      const { store, partners, keys, issue } = await open()
      const { key: { id } } = await issue({ limits: start })
      await partners.update('acme', { limits: { set: start } })
      const expected = new Map<string, Limit>(Object.entries(start))
      for (const { set, clear } of changes) {
        const before = new Map(expected)
        for (const policy of clear) expected.delete(policy)
        for (const [policy, limit] of Object.entries(set)) expected.set(policy, limit)
        const same = overridable.every((policy) =>
          JSON.stringify(before.get(policy)) === JSON.stringify(expected.get(policy))
        )
        if (await leavesFacts(store, () => keys.update(id, { limits: { set, clear } })) !== same) return false
        if (await leavesFacts(store, () => partners.update('acme', { limits: { set, clear } })) !== same) {
          return false
        }
      }
      const facts = (await store.findKey(id))!
      const policies = policiesFor(DEFAULT_LIMITS, facts)
      return overridable.every((policy) => {
        const { quota, windowSeconds } = expected.get(policy) ?? DEFAULT_LIMITS[policy]
        const inForce = policies[policy]
        const isRight = quota === 0
          ? inForce === undefined
          : inForce?.quota === quota && inForce.windowSeconds === windowSeconds
        return isRight && (policy in facts.key.limits) === expected.has(policy) &&
          (policy in facts.partner.limits) === expected.has(policy)
      })
    }),
    { numRuns: 200 },
  ))
})

test('limits that cannot be, of keys and partners that can no longer have any', async (t) => {
  const { store, clock, partners, keys, issue } = await open()
  const { key: { id } } = await issue({ expiresAt: now + 5 })
  const wrong = [
    { set: { key: { quota: -1, windowSeconds: 1 } } },
    { set: { verify: { quota: 1, windowSeconds: 86_401 } } },
    { clear: ['authfail'] },
    { clear: ['toString'] },
    { clear: [`spk_live_Zt81Zt81Zt81_${'0'.repeat(38)}`] },
  ]
  for (const limits of wrong) {
    await t.rejects(keys.update(id, { limits }), refused('invalid_limit'))
    await t.rejects(partners.update('acme', { limits }), refused('invalid_limit'))
    t.ok(await leavesFacts(store, () => keys.update(id, { limits })))
  }
  clock.now += 5
  await t.rejects(keys.update(id, {}), refused('key_expired'))
  await keys.revoke(id)
  await t.rejects(keys.update(id, {}), refused('key_revoked'))
})

test('a key is updated, and what is so already is not done again', async (t) => {
  const { store, clock, keys, issue } = await open()
  const { key } = await issue({ allow: ['192.0.2.1'], expiresAt: now + hour })
  t.same(await keys.update(key.id, { name: 'New', allow: ['2001:db8::/32'], expiresAt: now + 2 * hour }), {
    ...key,
    name: 'New',
    allow: ['2001:db8::/32'],
    expiresAt: now + 2 * hour,
  })
  t.match((await store.listAudit(0, 10)).at(-1), { type: 'key.updated', keyId: key.id, after: /"New"/ })
  for (const same of [{}, { name: 'New' }, { allow: ['2001:db8::/32'] }, { expiresAt: now + 2 * hour }]) {
    t.ok(await leavesFacts(store, () => keys.update(key.id, same)))
  }
  const wrong: [Parameters<typeof keys.update>[1], AdminErrorCode][] = [
    [{ name: ' ' }, 'invalid_name'],
    [{ allow: ['192.0.2.0/33'] }, 'invalid_address_range'],
    [{ expiresAt: now }, 'invalid_expiry'],
  ]
  for (const [update, code] of wrong) await t.rejects(keys.update(key.id, update), refused(code))
  t.match(await keys.update(key.id, { allow: [], expiresAt: null }), {
    name: 'New',
    allow: [],
    expiresAt: undefined,
  })
  await keys.update(key.id, { expiresAt: now + 1 })
  clock.now += 1
  await t.rejects(
    keys.update(key.id, { expiresAt: null }),
    refused('key_expired'),
    'what has expired stays so',
  )
})

test('a partner is renamed, and what is so already is not done again', async (t) => {
  const { store, partners } = await open()
  t.equal((await partners.update('acme', { name: 'Acme' })).name, 'Acme')
  t.same((await partners.update('acme', {})).limits, {})
  t.ok(await leavesFacts(store, () => partners.update('acme', { name: 'Acme' })))
  await t.rejects(partners.update('acme', { name: ' ' }), refused('invalid_name'))
  await t.rejects(partners.update('nobody', { name: 'a' }), refused('partner_not_found'))
})

test('removing a partner ends its keys, and only its own', async (t) => {
  const { store, partners, keys, issue } = await open()
  await partners.create({ slug: 'other', name: 'Other', modules: [] })
  const [one, two] = [await issue(), await issue()]
  const stranger = await issue({ partner: 'other' })
  await keys.revoke(two.key.id)
  t.equal((await partners.remove('acme')).state, 'removed')
  t.same((await gather(keys.list('acme'))).map(({ state }) => state), ['revoked', 'revoked'])
  t.equal((await keys.show(stranger.key.id)).state, 'active')
  t.ok(await leavesFacts(store, () => partners.remove('acme')))
  await t.rejects(partners.suspend('acme'), refused('partner_removed'))
  await t.rejects(partners.update('acme', { name: 'a' }), refused('partner_removed'))
  await t.rejects(issue(), refused('partner_removed'))
  await t.rejects(partners.create({ slug: 'acme', name: 'a', modules: [] }), refused('partner_exists'))
  await t.rejects(partners.remove('nobody'), refused('partner_not_found'))
  t.equal((await partners.show('acme')).name, 'Acme Travel', 'its records stay')
  t.equal((await keys.show(one.key.id)).name, 'Plugin')
})
