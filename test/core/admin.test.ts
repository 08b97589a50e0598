import fc from 'fast-check'
import { test } from 'tap'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { createKeyAdministration, type NewKey } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { AdminError, type AdminErrorCode, parseDuration, validateName } from '../../core/admin/validate.ts'
import { extractKeyId, hasValidChecksum, isWellFormedKey } from '../../core/keys/format.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import { DEFAULT_LIMITS, policiesFor } from '../../core/limits/policies.ts'
import type { Limit, LimitOverrides } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import { gather } from '../support/gather.ts'

const now = Date.UTC(2026, 0, 1)
const hour = 3_600_000
const keyShaped = `spk_live_Zt81Zt81Zt81_${'0123456789'.repeat(4).slice(0, 38)}`

/** A store with partner `acme`, whose profiles and pricing are active, and a clock that can be moved. */
async function open(store: Store = createMemoryStore()) {
  const clock = { now }
  const operator = { actor: 'operator', clock: () => clock.now }
  const partners = createPartnerAdministration(store, operator)
  const keys = createKeyAdministration(store, operator)
  await partners.create({ slug: 'acme', name: 'Acme Travel', modules: ['pricing', 'profiles'] })
  const issue = (more: Partial<NewKey> = {}) =>
    keys.issue({ partner: 'acme', name: 'Plugin', environment: 'live', ...more })
  return { store, clock, partners, keys, issue }
}

const refused = (code: AdminErrorCode, message: RegExp = /./) => ({ name: 'AdminError', code, message })

/** Whether `act` leaves the facts unchanged, even if it is refused. */
async function keepsFacts(store: Store, act: () => Promise<unknown>): Promise<boolean> {
  const before = (await store.revision()).facts
  await act().catch(() => {})
  return (await store.revision()).facts === before
}

test('a partner is created once, with its modules in the order of the contract', async (t) => {
  const { partners } = await open()
  const acme = await partners.show('acme')
  t.same(acme, {
    slug: 'acme',
    name: 'Acme Travel',
    state: 'active',
    modules: ['profiles', 'pricing'],
    limits: {},
    createdAt: now,
  })
  await t.rejects(partners.create({ slug: 'acme', name: 'Other', modules: [] }), refused('partner_exists'))
  t.same(await gather(partners.list()), [acme])
})

test('invalid partners are refused, and nothing is stored', async (t) => {
  const { partners } = await open()
  const good = { slug: 'beta', name: 'Beta', modules: ['widget'] }
  const wrong: [Parameters<typeof partners.create>[0], AdminErrorCode, RegExp][] = [
    [{ ...good, slug: 'Beta' }, 'invalid_slug', /"Beta"/],
    [{ ...good, slug: `b${'a'.repeat(80)}` }, 'invalid_slug', /1–80/],
    [{ ...good, slug: '' }, 'invalid_slug', /""/],
    [{ ...good, slug: 'a\n' }, 'invalid_slug', /"a\\n"/],
    [{ ...good, name: '' }, 'invalid_name', /empty/],
    [{ ...good, name: ' \t ' }, 'invalid_name', /empty/],
    [{ ...good, name: '\u{1F9F6}'.repeat(201) }, 'invalid_name', /at most 200/],
    [{ ...good, name: 'a\u001b[2J' }, 'invalid_name', /control/],
    [{ ...good, name: 'a\ud800' }, 'invalid_name', /Unicode/],
    [{ ...good, name: `for ${keyShaped}` }, 'invalid_name', /a key/],
    [{ ...good, modules: ['widget', 'bannner'] }, 'unknown_module', /"bannner".*profiles, banner/],
    [{ ...good, modules: ['constructor'] }, 'unknown_module', /constructor/],
    [{ ...good, limits: { key: { quota: -1, windowSeconds: 60 } } }, 'invalid_limit', /-1/],
    [{ ...good, limits: { key: { quota: 1, windowSeconds: 0 } } }, 'invalid_limit', /in 0/],
    [{ ...good, limits: { signup: { quota: 0.5, windowSeconds: 60 } } }, 'invalid_limit', /0\.5/],
    [
      { ...good, limits: { authfail: { quota: 1, windowSeconds: 60 } } as object },
      'invalid_limit',
      /authfail/,
    ],
  ]
  for (const [partner, code, message] of wrong) {
    await t.rejects(partners.create(partner), refused(code, message), `${code} ${message}`)
  }
  await t.rejects(partners.show('beta'), refused('partner_not_found', /"beta"/))
  t.equal((await partners.create({ ...good, name: '\u{1F9F6}'.repeat(200) })).name.length, 400)
})

test('names have 1 to 200 printable characters and contain no key', (t) => {
  const right = ['a', 'Grace Hopper', 'Ada 🤖', 'x'.repeat(200), '🤖'.repeat(200)]
  const wrong = [
    '',
    ' ',
    'a\nb',
    'a\u0000',
    'a\u0085',
    '\u2028x',
    'x'.repeat(201),
    '🤖'.repeat(201),
    '\ud800',
    keyShaped,
  ]
  t.same(right.filter((name) => validateName(name) !== undefined), [])
  t.same(wrong.filter((name) => validateName(name) === undefined), [])
  const store = createMemoryStore()
  for (const create of [createPartnerAdministration, createKeyAdministration]) {
    t.throws(() => create(store, { actor: 'a\nb' }), RangeError)
  }
  t.end()
})

test('suspending, resuming, activating and deactivating are idempotent', async (t) => {
  const { store, partners } = await open()
  t.equal((await partners.suspend('acme')).state, 'suspended')
  t.ok(await keepsFacts(store, () => partners.suspend('acme')))
  t.equal((await partners.resume('acme')).state, 'active')
  t.ok(await keepsFacts(store, () => partners.resume('acme')))
  t.same((await partners.activate('acme', ['banner', 'profiles', 'banner'])).modules, [
    'profiles',
    'banner',
    'pricing',
  ])
  t.ok(await keepsFacts(store, () => partners.activate('acme', ['profiles', 'banner'])))
  t.same((await partners.deactivate('acme', ['pricing', 'widget'])).modules, ['profiles', 'banner'])
  t.ok(await keepsFacts(store, () => partners.deactivate('acme', ['pricing'])))
})

test('renaming a partner is idempotent', async (t) => {
  const { store, partners } = await open()
  t.equal((await partners.update('acme', { name: 'Acme' })).name, 'Acme')
  t.same((await partners.update('acme', {})).limits, {})
  t.ok(await keepsFacts(store, () => partners.update('acme', { name: 'Acme' })))
  await t.rejects(partners.update('acme', { name: ' ' }), refused('invalid_name'))
  await t.rejects(partners.update('missing', { name: 'a' }), refused('partner_not_found'))
})

test('removing a partner revokes its keys only', async (t) => {
  const { store, partners, keys, issue } = await open()
  await partners.create({ slug: 'other', name: 'Other', modules: [] })
  const [one, two] = [await issue(), await issue()]
  const stranger = await issue({ partner: 'other' })
  await keys.revoke(two.key.id)
  t.equal((await partners.remove('acme')).state, 'removed')
  t.same((await gather(keys.list('acme'))).map(({ state }) => state), ['revoked', 'revoked'])
  t.equal((await keys.show(stranger.key.id)).state, 'active')
  t.ok(await keepsFacts(store, () => partners.remove('acme')))
  const final = refused('partner_removed', /acme is removed/)
  for (const act of [partners.suspend, partners.resume]) await t.rejects(act('acme'), final)
  for (const act of [partners.activate, partners.deactivate]) {
    await t.rejects(act('acme', ['profiles']), final)
  }
  await t.rejects(partners.update('acme', { name: 'a' }), final)
  await t.rejects(issue(), final)
  await t.rejects(partners.create({ slug: 'acme', name: 'a', modules: [] }), refused('partner_exists'))
  await t.rejects(partners.remove('missing'), refused('partner_not_found'))
  await t.rejects(keys.rotate(one.key.id), refused('key_revoked'))
  t.equal((await partners.show('acme')).name, 'Acme Travel', 'its records are kept')
  t.equal((await keys.show(one.key.id)).name, 'Plugin')
})

test('a key has the scopes of the active modules by default, and only its digest is stored', async (t) => {
  const { store, keys, issue } = await open()
  const { key, text } = await issue()
  t.equal(extractKeyId(text, 'spk'), key.id)
  t.ok(isWellFormedKey(text, 'spk'))
  t.same(key, {
    id: key.id,
    partner: 'acme',
    name: 'Plugin',
    environment: 'live',
    digest: store.sha256(text),
    hint: text.slice(-4),
    state: 'active',
    scopes: ['read:profiles', 'read:plans'],
    allow: [],
    limits: {},
    createdAt: now,
    expiresAt: undefined,
    retiresAt: undefined,
    successorId: undefined,
    lastUsedAt: undefined,
  })
  t.same(await gather(keys.list('acme')), [key])
  t.same(await gather(keys.list()), [key])
  t.notMatch(JSON.stringify(await gather(keys.list())), new RegExp(text.slice(22)))
})

test('a key is issued with the requested options, even to a suspended partner', async (t) => {
  const { partners, issue } = await open(createMemoryStore({ keyPrefix: 'acme' }))
  await partners.suspend('acme')
  const wanted = {
    environment: 'test' as const,
    scopes: ['read:plans'],
    expiresAt: now + 1,
    allow: ['192.0.2.1', '2001:db8::/32'],
    limits: { key: { quota: 0, windowSeconds: 1 } },
  }
  const { key, text } = await issue({ ...wanted, scopes: ['read:plans', 'read:plans'] })
  t.match(text, /^acme_test_/)
  t.match(key, { ...wanted, state: 'active' })
  t.same((await issue({ scopes: [] })).key.scopes, [])
})

test('invalid keys are refused', async (t) => {
  const { keys, issue } = await open()
  const wrong: [Partial<NewKey>, AdminErrorCode, RegExp][] = [
    [{ partner: 'missing' }, 'partner_not_found', /"missing"/],
    [{ partner: '\0' }, 'partner_not_found', /u0000/],
    [{ name: '' }, 'invalid_name', /empty/],
    [{ scopes: ['read:everything'] }, 'unknown_scope', /"read:everything".*read:profiles/],
    [{ expiresAt: now }, 'invalid_expiry', /future/],
    [{ expiresAt: NaN }, 'invalid_expiry', /future/],
    [{ expiresAt: Infinity }, 'invalid_expiry', /10000/],
    [{ allow: ['10.0.0.0/8', '10.1.2.3/8'] }, 'invalid_address_range', /"10\.1\.2\.3\/8".*10\.0\.0\.0\/8/],
    [{ allow: ['localhost'] }, 'invalid_address_range', /"localhost"/],
    [{ limits: { key: { quota: NaN, windowSeconds: 60 } } }, 'invalid_limit', /NaN/],
  ]
  for (const [more, code, message] of wrong) {
    await t.rejects(issue(more), refused(code, message), `${code} ${message}`)
  }
  t.same(await gather(keys.list()), [])
})

test('a scope whose module is inactive is refused with the command that activates it', async (t) => {
  const { store, partners, keys, issue } = await open()
  const command = /: partner-api modules activate acme banner$/
  await t.rejects(issue({ scopes: ['read:profiles', 'read:banner'] }), refused('module_inactive', command))
  const { key } = await issue()
  await t.rejects(keys.grant(key.id, ['read:banner']), refused('module_inactive', command))
  await t.rejects(
    keys.grant(key.id, ['create:partner-signups', 'read:banner', 'read:profiles']),
    refused('module_inactive', /: partner-api modules activate acme banner signup$/),
  )
  t.same((await keys.show(key.id)).scopes, ['read:profiles', 'read:plans'], 'no scope is granted')
  await partners.activate('acme', ['banner'])
  t.same((await keys.grant(key.id, ['read:banner'])).scopes, ['read:profiles', 'read:banner', 'read:plans'])
  t.ok(await keepsFacts(store, () => keys.grant(key.id, ['read:banner', 'read:profiles'])))
  await partners.deactivate('acme', ['banner'])
  t.ok(
    (await keys.show(key.id)).scopes.includes('read:banner'),
    'the key keeps the scope of an inactive module',
  )
  await t.rejects(
    keys.grant(key.id, ['read:banner']),
    refused('module_inactive'),
    'a held scope is refused too',
  )
})

test('removing scopes is idempotent and needs no active module', async (t) => {
  const { store, partners, keys, issue } = await open()
  const { key } = await issue()
  await partners.deactivate('acme', ['profiles'])
  t.same((await keys.remove(key.id, ['read:profiles', 'read:banner'])).scopes, ['read:plans'])
  t.ok(await keepsFacts(store, () => keys.remove(key.id, ['read:profiles'])))
  await t.rejects(keys.remove(key.id, ['read']), refused('unknown_scope'))
})

test('a disabled key can be enabled, and a revoked or expired key can only be revoked', async (t) => {
  const { store, clock, keys, issue } = await open()
  const { key: { id } } = await issue()
  const { key: { id: expiring } } = await issue({ expiresAt: now + 10 })
  t.ok(await keepsFacts(store, () => keys.enable(id)))
  t.equal((await keys.disable(id)).state, 'disabled')
  t.ok(await keepsFacts(store, () => keys.disable(id)))
  t.equal((await keys.enable(id)).state, 'active')
  clock.now += 9
  t.equal((await keys.disable(expiring)).state, 'disabled')
  clock.now += 1
  t.equal((await keys.revoke(id)).state, 'revoked')
  const ended = [
    [id, refused('key_revoked', new RegExp(`${id} is revoked`))],
    [expiring, refused('key_expired', new RegExp(`${expiring} has expired`))],
  ] as const
  for (const [id, final] of ended) {
    for (const act of [keys.enable, keys.disable]) await t.rejects(act(id), final)
    for (const act of [keys.grant, keys.remove]) await t.rejects(act(id, ['read:profiles']), final)
    await t.rejects(keys.update(id, {}), final)
  }
  t.equal((await keys.revoke(expiring)).state, 'revoked')
  t.ok(await keepsFacts(store, () => keys.revoke(expiring)))
})

test('updating a key is idempotent', async (t) => {
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
    t.ok(await keepsFacts(store, () => keys.update(key.id, same)))
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
    'an expired key stays expired',
  )
})

test('rotation issues a successor with the same rights and ends the key after the overlap', async (t) => {
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
  t.equal(
    (await keys.show(next.key.id)).retiresAt,
    now + 100 * hour,
    'the overlap ends at the expiry at the latest',
  )
})

test('disabled, ended and rotated keys are not rotated', async (t) => {
  const { store, clock, keys, issue } = await open()
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
    t.ok(await keepsFacts(store, () => keys.rotate(id, how)), code)
  }
  await keys.rotate(successor.key.id, { overlapMs: 0 })
  await keys.rotate((await issue()).key.id, { overlapMs: 36_525 * 24 * hour })
  clock.now += 25 * hour
  await t.rejects(keys.rotate(rotated!.key.id), refused('key_expired'), 'after its overlap')
})

const limit: fc.Arbitrary<Limit> = fc.record({
  quota: fc.integer({ min: 0, max: 1_000_000_000 }),
  windowSeconds: fc.integer({ min: 1, max: 86_400 }),
})
const limits = fc.record({ key: limit, signup: limit, verify: limit }, { requiredKeys: [] }) as fc.Arbitrary<
  LimitOverrides
>
const overridable = ['key', 'signup', 'verify'] as const

test('in a chain of rotations each key ends at its overlap or expiry', async (t) => {
  const step = fc.record({
    wait: fc.nat(50),
    overlapMs: fc.option(fc.nat(100), { nil: undefined }),
    expiresIn: fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
  })
  await t.resolves(fc.assert(
    fc.asyncProperty(
      fc.subarray(['read:profiles', 'read:plans']),
      limits,
      fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
      fc.array(step, { minLength: 1, maxLength: 6 }),
      async (scopes, ownLimits, expiresIn, steps) => {
        const { store, clock, keys, issue } = await open()
        let last =
          (await issue({ scopes, limits: ownLimits, ...(expiresIn && { expiresAt: now + expiresIn }) })).key
        // When each key ends, computed without the code under test.
        const ends = new Map([[last.id, last.expiresAt ?? Infinity]])
        for (const { wait, overlapMs, expiresIn } of steps) {
          clock.now += wait
          if (ends.get(last.id)! <= clock.now) {
            if (!await keepsFacts(store, () => keys.rotate(last.id))) return false
            break
          }
          const expiresAt = expiresIn && clock.now + expiresIn
          const { key } = await keys.rotate(last.id, { overlapMs, expiresAt })
          // Without an overlap, the key has ended by every clock.
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
    { numRuns: 50 },
  ))
})

test('an update replaces the limits of the named policies only', async (t) => {
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
        if (await keepsFacts(store, () => keys.update(id, { limits: { set, clear } })) !== same) return false
        if (await keepsFacts(store, () => partners.update('acme', { limits: { set, clear } })) !== same) {
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
    { numRuns: 50 },
  ))
})

test('invalid limits are refused', async (t) => {
  const { store, partners, keys, issue } = await open()
  const { key: { id } } = await issue()
  const wrong = [
    { set: { key: { quota: -1, windowSeconds: 1 } } },
    { set: { verify: { quota: 1, windowSeconds: 86_401 } } },
    { clear: ['authfail'] },
    { clear: ['toString'] },
    { clear: [keyShaped] },
  ]
  for (const limits of wrong) {
    await t.rejects(keys.update(id, { limits }), refused('invalid_limit'))
    await t.rejects(partners.update('acme', { limits }), refused('invalid_limit'))
    t.ok(await keepsFacts(store, () => keys.update(id, { limits })))
  }
})

test('no message contains a key', async (t) => {
  const { partners, keys, issue } = await open()
  const { key: { id } } = await issue()
  const acts: (() => Promise<unknown>)[] = [
    () => partners.create({ slug: keyShaped, name: 'a', modules: [] }),
    () => partners.create({ slug: 'a', name: keyShaped, modules: [] }),
    () => partners.create({ slug: 'a', name: 'a', modules: [keyShaped] }),
    () =>
      partners.create({
        slug: 'a',
        name: 'a',
        modules: [],
        limits: { [keyShaped]: { quota: 1, windowSeconds: 1 } },
      }),
    () => partners.show(keyShaped),
    () => gather(keys.list(keyShaped)),
    () => keys.show(keyShaped),
    () => keys.revoke(keyShaped),
    () => keys.grant(id, [keyShaped]),
    () => issue({ partner: keyShaped }),
    () => issue({ allow: [keyShaped] }),
    () => Promise.resolve(keyShaped).then(parseDuration),
  ]
  for (const act of acts) {
    const message = await act().then(
      () => 'done',
      (error) => error instanceof AdminError ? error.message : 'failed',
    )
    t.notMatch(message, /0123456789|^done$|^failed$/, message)
  }
  await t.rejects(keys.show(keyShaped), refused('key_not_found', /whole key/))
  await t.rejects(keys.show('Zt81Zt81Zt81'), refused('key_not_found', /"Zt81Zt81Zt81"/))
})

test('a change is rebuilt when the facts have changed', async (t) => {
  const store = createMemoryStore()
  const { partners, issue } = await open(store)
  let overtaken = false
  const raced = createKeyAdministration({
    ...store,
    async apply(changes, ifFacts, stamp) {
      if (!overtaken) {
        overtaken = true
        await partners.deactivate('acme', ['profiles'])
      }
      return await store.apply(changes, ifFacts, stamp)
    },
  }, { actor: 'operator', clock: () => now })
  const { key } = await raced.issue({ partner: 'acme', name: 'Plugin', environment: 'live' })
  t.same(key.scopes, ['read:plans'])
  t.same(await store.listKeys(undefined, undefined, 1000), [key], 'the key is issued once')

  overtaken = false
  await partners.activate('acme', ['profiles'])
  const { key: other } = await issue({ scopes: [] })
  await t.rejects(
    raced.grant(other.id, ['read:profiles']),
    refused('module_inactive', /activate acme profiles$/),
  )

  overtaken = false
  await partners.activate('acme', ['profiles'])
  const late = createKeyAdministration({
    ...store,
    async findPartner(slug) {
      const found = await store.findPartner(slug)
      if (!overtaken) await partners.deactivate('acme', ['profiles'])
      overtaken = true
      return found
    },
  }, { actor: 'operator', clock: () => now })
  const { key: last } = await late.issue({ partner: 'acme', name: 'Plugin', environment: 'live' })
  t.same(last.scopes, ['read:plans'], 'also when they change right after they were read')
})

test('a change is abandoned after eight attempts', async (t) => {
  const { store } = await open()
  let attempts = 0
  const hopeless = createPartnerAdministration({ ...store, apply: () => ++attempts === 0 }, {
    actor: 'operator',
  })
  await t.rejects(hopeless.suspend('acme'), refused('concurrent_change', /Nothing was changed/))
  t.equal(attempts, 8)
})

test('two concurrent rotations of a key issue one successor', async (t) => {
  const { store, keys, issue } = await open()
  const { key } = await issue()
  const other = createKeyAdministration(store, { actor: 'other', clock: () => now })
  const results = await Promise.allSettled([keys.rotate(key.id), other.rotate(key.id)])
  t.same(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  t.equal((await store.listKeys(undefined, undefined, 1000)).length, 2)
})

test('the text of a key is returned even if the store fails right after the key was issued', async (t) => {
  const memory = createMemoryStore()
  await open(memory)
  let isGone = false
  const keys = createKeyAdministration({
    ...memory,
    findKey(id) {
      if (isGone) throw new Error('unreachable')
      return memory.findKey(id)
    },
    async apply(...change) {
      const applied = await memory.apply(...change)
      isGone = true
      return applied
    },
  }, { actor: 'test' })
  const first = await keys.issue({ partner: 'acme', name: 'k', environment: 'live' })
  isGone = false
  const second = await keys.rotate(first.key.id)
  for (const { key, text } of [first, second]) {
    t.equal((await memory.findKey(key.id))?.key.digest, memory.sha256(text))
  }
})

test('durations are a number and a unit up to weeks', (t) => {
  const right = {
    '0': 0,
    '0s': 0,
    '45s': 45_000,
    '2m': 120_000,
    '24h': 24 * hour,
    '36525d': 36_525 * 24 * hour,
  }
  for (const [text, expected] of Object.entries(right)) t.equal(parseDuration(text), expected, text)
  const wrong = ['', '1', 'd', '-1d', '1.5h', '1w', '1 d', '1D', '36526d', '99999999999999d', '1d\n', '１d']
  for (const text of wrong) t.throws(() => parseDuration(text), refused('invalid_duration'), text)
  t.end()
})
