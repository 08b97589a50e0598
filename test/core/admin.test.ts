import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { test } from 'tap'
import type { NewKey } from '../../core/admin/key-plans.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { AdminError, type AdminErrorCode } from '../../core/admin/error.ts'
import { extractKeyId, isWellFormedKey } from '../../core/keys/format.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import type { Remedy } from '../../core/lib/remedy.ts'
import { parseDuration } from '../../core/lib/time.ts'
import { type Limit, type LimitOverrides, NO_PARTNER_DETAILS } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const now = Date.UTC(2026, 0, 1)
const hour = 3_600_000
const lastExpiry = Date.UTC(10_000, 0) - 1
const keyShaped = `spk_live_Zt81Zt81Zt81_${'0123456789'.repeat(4).slice(0, 38)}`

/** A store that fails on NUL, as some do. */
async function openStrictStore(): Promise<Store> {
  const store = await openMemoryStore()
  const refuseNul = (text: string) => {
    if (text.includes('\0')) throw new Error('NUL')
    return text
  }
  return {
    ...store,
    findPartner: (slug) => store.findPartner(refuseNul(slug)),
    findKey: (id) => store.findKey(refuseNul(id)),
  }
}

/** A store with partner `acme`, whose profiles and pricing are active, and a clock that can be moved. */
async function open(given?: Store) {
  const store = given ?? await openStrictStore()
  const clock = { now }
  const operator = { actor: 'operator', clock: () => clock.now }
  const partners = createPartnerAdministration(store, operator)
  const keys = createKeyAdministration(store, operator)
  await partners.create({ slug: 'acme', name: 'Acme Travel', modules: ['pricing', 'profiles'] })
  const issue = (more: Partial<NewKey> = {}) =>
    keys.issue({ partner: 'acme', name: 'Plugin', environment: 'live', ...more })
  return { store, clock, partners, keys, issue }
}

const refused = (code: AdminErrorCode, message: RegExp | Pick<Remedy, 'command' | 'args'> = /./) => ({
  name: 'AdminError',
  code,
  ...(message instanceof RegExp ? { message } : { remedy: message }),
})

/** Members of a partner, key or update that are refused. */
type Wrong = readonly [change: object, code: AdminErrorCode, message?: RegExp]

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
    ...NO_PARTNER_DETAILS,
  })
  await t.rejects(partners.create({ slug: 'acme', name: 'Other', modules: [] }), refused('partner_exists'))
  t.same(await Array.fromAsync(partners.list()), [acme])
})

/** Limits of which one is invalid, with a part of the message. */
const wrongLimits: readonly (readonly [limits: object, message: RegExp])[] = [
  [{ key: { quota: -1, windowSeconds: 60 } }, /not -1 in 60 for "key"/],
  [{ key: { quota: 1_000_000_001, windowSeconds: 60 } }, /1000000001/],
  [{ key: { quota: NaN, windowSeconds: 60 } }, /NaN/],
  [{ key: { quota: 1, windowSeconds: 60 }, signup: { quota: 0.5, windowSeconds: 60 } }, /0\.5/],
  [{ verify: { quota: 1, windowSeconds: 0 } }, /in 0/],
  [{ verify: { quota: 1, windowSeconds: 86_401 } }, /in 86401/],
  [{ authfail: { quota: 1, windowSeconds: 60 } }, /authfail/],
]

/** Details that are refused. */
const wrongDetails: readonly (readonly [details: object, message: RegExp])[] = [
  [{ contact: 'acme' }, /The contact "acme" must be an e-mail address/],
  [{ contact: `a@${'b'.repeat(60)}.${`${'c'.repeat(60)}.`.repeat(4)}de` }, /254/],
  [{ contact: `${keyShaped}@acme.example` }, /must not contain a key/],
  [{ contact: '' }, /e-mail/],
  [{ tags: Array.from({ length: 21 }, (_, index) => `t${index}`) }, /at most 20/],
  ...['', 'A', '-a', '_a', 'é', 'a b', 'a'.repeat(41)].map((tag) =>
    [{ tags: ['ok', tag] }, /each 1–40/] as const
  ),
  [{ externalId: ' ' }, /The external id " " must not be empty/],
  [{ externalId: 'x'.repeat(201) }, /200/],
  [{ note: 'x'.repeat(1_001) }, /1000/],
  [{ note: 'a\nb' }, /line breaks/],
  [{ selfService: ['rotate', 'issue'] }, /The self service "rotate issue" must be rotate or revoke, or both/],
]

test('details of partners and keys have bounds, and are removed with null', async (t) => {
  const { partners, keys, issue } = await open()
  const tags = Array.from({ length: 20 }, (_, index) => `${'t'.repeat(38)}${10 + index}`)
  const most = {
    contact: `a@${`${'b'.repeat(60)}.`.repeat(4)}example`,
    tags,
    externalId: '🤖'.repeat(200),
    note: '🤖'.repeat(1_000),
    selfService: ['revoke', 'rotate'] as const,
  }
  const repeated = {
    ...most,
    tags: [...tags, ...tags].reverse(),
    selfService: ['rotate', 'revoke', 'rotate'] as const,
  }
  t.match(await partners.update('acme', repeated), most)
  t.match(await partners.update('acme', { name: 'Other' }), most)
  const { key } = await issue({ owner: '🤖'.repeat(200), tags: ['b', 'a', 'b'] })
  t.match(key, { owner: '🤖'.repeat(200), tags: ['a', 'b'] })
  t.match((await keys.rotate(key.id)).key, { owner: key.owner, tags: key.tags })
  await t.rejects(issue({ owner: 'x'.repeat(201) }), refused('invalid_details', /The owner/))
  await t.rejects(keys.update(key.id, { tags: ['A'] }), refused('invalid_details', /The tags/))
  const none = { contact: null, tags: null, externalId: null, note: null, selfService: null }
  t.match(await partners.update('acme', none), NO_PARTNER_DETAILS)
})

test('of a removed partner, only the contact and the note can be removed', async (t) => {
  const { partners } = await open()
  await partners.update('acme', { contact: 'ada@acme.example', note: 'Ask Ada', tags: ['eu'] })
  await partners.remove('acme')
  for (
    const update of [
      { name: 'Other', contact: null },
      { contact: 'eve@acme.example' },
      { note: 'Other', contact: null },
      { contact: null, tags: null },
      { contact: null, limits: { set: {}, clear: ['key'] as const } },
    ]
  ) await t.rejects(partners.update('acme', update), refused('partner_removed'))
  await partners.update('acme', { contact: null })
  const removed = await partners.update('acme', { note: null })
  t.match(removed, { state: 'removed', contact: undefined, note: undefined, tags: ['eu'] })
})

test('invalid partners are refused, and nothing is stored', async (t) => {
  const { partners } = await open()
  const good = { slug: 'beta', name: 'Beta', modules: ['widget'] }
  const wrong: Wrong[] = [
    [{ slug: 'Beta' }, 'invalid_slug', /"Beta"/],
    [{ slug: `b${'a'.repeat(80)}` }, 'invalid_slug', /1–80/],
    [{ slug: '' }, 'invalid_slug', /""/],
    [{ slug: 'a\n' }, 'invalid_slug', /"a\\n"/],
    ...['', ' \t '].map((name) => [{ name }, 'invalid_name', /must not be empty/] satisfies Wrong),
    ...['x'.repeat(201), '🤖'.repeat(201), 'x'.repeat(401)].map((name) =>
      [{ name }, 'invalid_name', /at most 200/] satisfies Wrong
    ),
    ...['a\nb', 'a\u0000', 'a\u0085', '\u2028x', 'a\u001b[2J'].map((name) =>
      [{ name }, 'invalid_name', /control characters or line breaks/] satisfies Wrong
    ),
    [{ name: 'a\ud800' }, 'invalid_name', /Unicode/],
    [{ name: `for ${keyShaped}` }, 'invalid_name', /contain a key/],
    [{ modules: ['widget', 'bannner'] }, 'unknown_module', /"bannner".*profiles, banner/],
    [{ modules: ['constructor'] }, 'unknown_module', /constructor/],
    ...wrongLimits.map(([limits, message]) => [{ limits }, 'invalid_limit', message] satisfies Wrong),
    ...wrongDetails.map(([details, message]) => [details, 'invalid_details', message] satisfies Wrong),
  ]
  for (const [change, code, message] of wrong) {
    await t.rejects(partners.create({ ...good, ...change }), refused(code, message), `${code} ${message}`)
  }
  await t.rejects(partners.show('beta'), refused('partner_not_found', /"beta"/))
  for (const name of ['🤖'.repeat(200), 'a']) {
    t.equal((await partners.create({ ...good, slug: `b${name.length}`, name })).name, name)
  }
  const store = await openMemoryStore()
  for (const create of [createPartnerAdministration, createKeyAdministration]) {
    t.throws(() => create(store, { actor: 'a\nb' }), { name: 'RangeError', message: /control/ })
  }
})

test('a change to the state that a partner or key is already in changes nothing', async (t) => {
  const { store, partners, keys, issue } = await open()
  const { key } = await issue({ allow: ['192.0.2.1'], expiresAt: now + hour })
  const { id } = key
  const few = { quota: 1, windowSeconds: 60 }
  const updated = { name: 'New', allow: ['2001:db8::/32'], expiresAt: now + 2 * hour }
  const steps: (readonly [act: () => Promise<object>, expected: object])[] = [
    [() => partners.resume('acme'), { state: 'active' }],
    [() => partners.suspend('acme'), { state: 'suspended' }],
    [() => partners.resume('acme'), { state: 'active' }],
    [() => partners.activate('acme', ['banner', 'profiles', 'banner']), {
      modules: ['profiles', 'banner', 'pricing'],
    }],
    [() => partners.deactivate('acme', ['pricing', 'widget']), { modules: ['profiles', 'banner'] }],
    [() => partners.update('acme', { name: 'Acme' }), { name: 'Acme', limits: {} }],
    [() => partners.update('acme', {}), { name: 'Acme' }],
    [() => partners.update('acme', { limits: { set: { key: few, signup: few } } }), {
      limits: { key: few, signup: few },
    }],
    [() => partners.update('acme', { limits: { clear: ['key'], set: { key: few } } }), {
      limits: { key: few, signup: few },
    }],
    [() => keys.enable(id), { state: 'active' }],
    [() => keys.disable(id), { state: 'disabled' }],
    [() => keys.enable(id), { state: 'active' }],
    [() => keys.update(id, { name: 'New' }), { ...key, name: 'New' }],
    [() => keys.update(id, { allow: updated.allow }), { name: 'New', allow: updated.allow }],
    [() => keys.update(id, { expiresAt: updated.expiresAt }), { ...key, ...updated }],
    [() => keys.update(id, {}), updated],
    [() => keys.update(id, { allow: [], expiresAt: null }), { name: 'New', allow: [], expiresAt: undefined }],
    // Of these scopes, `read:plans` is held though its module is inactive.
    [() => keys.grant(id, ['read:banner', 'read:profiles']), {
      scopes: ['read:profiles', 'read:banner', 'read:plans'],
    }],
    [() => keys.remove(id, ['read:plans', 'read:industries']), { scopes: ['read:profiles', 'read:banner'] }],
    [() => keys.revoke(id), { state: 'revoked' }],
    [() => partners.remove('acme'), { state: 'removed' }],
  ]
  for (const [index, [act, expected]] of steps.entries()) {
    const found = await act()
    t.strictSame({ ...found, ...expected }, found, `${index}: ${act}`)
    t.ok(await keepsFacts(store, act), `${index} again`)
  }
  const audit = await store.listAudit(0, 100)
  t.match(audit.find(({ type }) => type === 'key.updated'), {
    actor: 'operator',
    at: now,
    keyId: id,
    after: /"New"/,
  })
})

test('removing a partner revokes its keys only', async (t) => {
  const { partners, keys, issue } = await open()
  await partners.create({ slug: 'other', name: 'Other', modules: [] })
  const one = await issue()
  const two = await issue()
  const stranger = await issue({ partner: 'other' })
  await keys.revoke(two.key.id)
  t.equal((await partners.remove('acme')).state, 'removed')
  t.same((await Array.fromAsync(keys.list({ partner: 'acme' }))).map(({ state }) => state), [
    'revoked',
    'revoked',
  ])
  t.equal((await keys.show(stranger.key.id)).state, 'active')
  const refusals: [() => Promise<unknown>, AdminErrorCode][] = [
    [() => partners.suspend('acme'), 'partner_removed'],
    [() => partners.resume('acme'), 'partner_removed'],
    [() => partners.activate('acme', ['profiles']), 'partner_removed'],
    [() => partners.deactivate('acme', ['profiles']), 'partner_removed'],
    [() => partners.update('acme', { name: 'a' }), 'partner_removed'],
    [() => issue(), 'partner_removed'],
    [() => partners.create({ slug: 'acme', name: 'a', modules: [] }), 'partner_exists'],
    [() => partners.remove('missing'), 'partner_not_found'],
    [() => partners.update('missing', { name: 'a' }), 'partner_not_found'],
    [() => keys.rotate(one.key.id), 'key_revoked'],
  ]
  for (const [act, code] of refusals) {
    await t.rejects(act, refused(code, /acme|missing|Issue a new one/), `${act}`)
  }
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
    predecessorId: undefined,
    successorId: undefined,
    lastUsedAt: undefined,
    owner: undefined,
    tags: [],
  })
  t.same(await Array.fromAsync(keys.list({ partner: 'acme' })), [key])
  t.same(await Array.fromAsync(keys.list()), [key])
  t.notMatch(JSON.stringify(await Array.fromAsync(keys.list())), new RegExp(text.slice(22)))
})

test('a key is issued with the requested options, even to a suspended partner', async (t) => {
  const { partners, issue } = await open(await openMemoryStore({ keyPrefix: 'acme' }))
  await partners.suspend('acme')
  const wanted = {
    environment: 'test' as const,
    scopes: ['read:plans'],
    expiresAt: lastExpiry,
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
    [{ expiresAt: NaN }, 'invalid_expiry', /integer/],
    [{ expiresAt: new Date(now + 1000) as never }, 'invalid_expiry', /integer/],
    [{ expiresAt: String(now + 1000) as never }, 'invalid_expiry', /integer/],
    [{ expiresAt: lastExpiry + 1 }, 'invalid_expiry', /10000/],
    [{ allow: ['10.0.0.0/8', '10.1.2.3/8'] }, 'invalid_address_range', /"10\.1\.2\.3\/8".*10\.0\.0\.0\/8/],
    [{ allow: ['localhost'] }, 'invalid_address_range', /"localhost"/],
    [{ limits: { key: { quota: NaN, windowSeconds: 60 } } }, 'invalid_limit', /not NaN/],
  ]
  for (const [more, code, message] of wrong) {
    await t.rejects(issue(more), refused(code, message), `${code} ${message}`)
  }
  t.same(await Array.fromAsync(keys.list()), [])
})

test('a scope whose module is inactive is refused with the command that activates it', async (t) => {
  const { partners, keys, issue } = await open()
  const { key: { id } } = await issue()
  const both = ['create:partner-signups', 'read:banner', 'read:profiles']
  const refusals: [() => Promise<unknown>, string[]][] = [
    [() => issue({ scopes: ['read:profiles', 'read:banner'] }), ['banner']],
    [() => keys.grant(id, ['read:banner']), ['banner']],
    [() => keys.grant(id, both), ['banner', 'signup']],
  ]
  for (const [act, modules] of refusals) {
    const remedy = { command: 'modules activate', args: ['acme', ...modules] }
    await t.rejects(act, refused('module_inactive', remedy))
  }
  t.same((await keys.show(id)).scopes, ['read:profiles', 'read:plans'], 'no scope is granted')
  await partners.deactivate('acme', ['profiles'])
  t.ok((await keys.show(id)).scopes.includes('read:profiles'), 'a key keeps the scope of an inactive module')
  await t.rejects(
    keys.grant(id, ['read:profiles']),
    refused('module_inactive'),
    'a held scope is refused too',
  )
  t.same((await keys.remove(id, ['read:profiles', 'read:banner'])).scopes, ['read:plans'])
})

test('a disabled key can be enabled, and a revoked or expired key can only be revoked', async (t) => {
  const { clock, keys, issue } = await open()
  const { key: { id } } = await issue()
  const { key: { id: expiring } } = await issue({ expiresAt: now + 10 })
  clock.now += 9
  t.equal((await keys.disable(expiring)).state, 'disabled')
  clock.now += 1
  t.equal((await keys.revoke(id)).state, 'revoked')
  const ended = [
    [id, refused('key_revoked', new RegExp(`${id} is revoked. Issue`))],
    [expiring, refused('key_expired', new RegExp(`${expiring} has expired. Issue`))],
  ] as const
  for (const [id, final] of ended) {
    for (const act of [keys.enable, keys.disable]) await t.rejects(act(id), final)
    for (const act of [keys.grant, keys.remove]) await t.rejects(act(id, ['read:profiles']), final)
    for (const update of [{}, { expiresAt: null }]) await t.rejects(keys.update(id, update), final)
  }
  t.equal((await keys.revoke(expiring)).state, 'revoked')
})

test('invalid updates of keys and partners are refused', async (t) => {
  const { store, partners, keys, issue } = await open()
  const { key: { id } } = await issue()
  const wrong: Wrong[] = [
    [{ name: ' ' }, 'invalid_name'],
    ...wrongLimits.map(([set]) => [{ limits: { set } }, 'invalid_limit'] satisfies Wrong),
    ...['authfail', 'toString', keyShaped].map((policy) =>
      [
        { limits: { clear: ['key', policy] } },
        'invalid_limit',
        /limits for key, .*signup, verify.* only/,
      ] satisfies Wrong
    ),
    [{ allow: ['192.0.2.0/33'] }, 'invalid_address_range'],
    [{ expiresAt: now }, 'invalid_expiry'],
  ]
  for (const [update, code, message] of wrong) {
    await t.rejects(keys.update(id, update), refused(code, message))
    if (code === 'invalid_name' || code === 'invalid_limit') {
      await t.rejects(partners.update('acme', update), refused(code, message))
    }
    t.ok(await keepsFacts(store, () => keys.update(id, update)))
  }
  await t.rejects(keys.remove(id, ['read']), refused('unknown_scope'))
})

test('only partners have quotas that keys share, of up to 31 days', async (t) => {
  const { partners, keys, issue } = await open()
  const limits = { partner: { quota: 5, windowSeconds: 2_678_400 }, month: { quota: 9 } }
  t.strictSame((await partners.update('acme', { limits: { set: limits } })).limits, limits)
  await t.rejects(
    partners.update('acme', { limits: { set: { month: { quota: -1 } } } }),
    refused('invalid_limit'),
  )
  const inWindow = { month: { quota: 1, windowSeconds: 60 as never } }
  await t.rejects(partners.update('acme', { limits: { set: inWindow } }), /limits.month: there is no option/)
  for (const [policy, longest] of [['partner', 2_678_400], ['key', 86_400]] as const) {
    const set = { [policy]: { quota: 1, windowSeconds: longest + 1 } }
    await t.rejects(partners.update('acme', { limits: { set } }), refused('invalid_limit', /2678400|86400/))
  }
  const { key: { id } } = await issue()
  for (const [policy, form] of [['partner', 'partner=QUOTA/SECONDS'], ['month', 'month=QUOTA']] as const) {
    const remedy = { command: 'partners update', args: ['SLUG', '--limit', form] }
    const set = { [policy]: limits[policy] }
    for (
      const attempt of [
        keys.update(id, { limits: { set } }),
        keys.update(id, { limits: { clear: [policy] } }),
        issue({ limits: set }),
      ]
    ) {
      t.match(await attempt.catch((error: unknown) => error), { code: 'invalid_limit', remedy })
    }
  }
  t.strictSame((await partners.update('acme', { limits: { clear: ['partner', 'month'] } })).limits, {})
})

test('rotation issues a successor with the same rights and ends the key after the overlap', async (t) => {
  const { store, clock, keys, issue } = await open(await openMemoryStore({ keyPrefix: 'acme' }))
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
  t.same(next.key, {
    ...old.key,
    id: next.key.id,
    digest: store.sha256(next.text),
    hint: next.text.slice(-4),
    predecessorId: old.key.id,
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
  const wrong: [string, Parameters<typeof keys.rotate>[1], AdminErrorCode, Parameters<typeof refused>[1]][] =
    [
      [revoked!.key.id, {}, 'key_revoked', /is revoked/],
      [expired!.key.id, {}, 'key_expired', /has expired/],
      [disabled!.key.id, {}, 'key_disabled', { command: 'keys enable', args: [disabled!.key.id] }],
      [rotated!.key.id, {}, 'key_rotated', { command: 'keys rotate', args: [successor.key.id] }],
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
  t.equal(
    (await keys.show(successor.key.id)).state,
    'retired',
    'without an overlap, it has ended by every clock',
  )
  await keys.rotate((await issue()).key.id, { overlapMs: 36_525 * 24 * hour })
  clock.now += 25 * hour
  await t.rejects(keys.rotate(rotated!.key.id), refused('key_expired'), 'after its overlap')
})

const limit: fc.Arbitrary<Limit> = fc.record({
  quota: fc.integer({ min: 0, max: 1_000_000_000 }),
  windowSeconds: fc.integer({ min: 1, max: 86_400 }),
}, { noNullPrototype: true })
const limits = fc.record({ key: limit, signup: limit, verify: limit }, {
  requiredKeys: [],
  noNullPrototype: true,
}) as fc.Arbitrary<LimitOverrides>

test('in a chain of rotations each key ends at its overlap or expiry', async (t) => {
  const step = fc.record({
    wait: fc.nat(50),
    overlapMs: fc.option(fc.nat(100), { nil: undefined }),
    expiresIn: fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
  })
  await t.resolves(fc.assert(
    fc.asyncProperty(
      fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
      fc.array(step, { minLength: 1, maxLength: 6 }),
      async (expiresIn, steps) => {
        const { store, clock, keys, issue } = await open()
        let last = (await issue(expiresIn ? { expiresAt: now + expiresIn } : {})).key
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
          last = key
        }
        const kept = await Array.fromAsync(keys.list())
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
  const change = fc.record({ set: limits, clear: fc.subarray(['key', 'signup', 'verify']) })
  await t.resolves(fc.assert(
    fc.asyncProperty(limits, fc.array(change, { maxLength: 6 }), async (start, changes) => {
      const { store, partners, keys, issue } = await open()
      const { key: { id } } = await issue({ limits: start })
      await partners.update('acme', { limits: { set: start } })
      let expected = start
      for (const { set, clear } of changes) {
        const before = expected
        const kept = Object.entries(before).filter(([policy]) => !clear.includes(policy))
        expected = { ...Object.fromEntries(kept), ...set }
        const isSame = isDeepStrictEqual(before, expected)
        const updates = [
          () => keys.update(id, { limits: { set, clear } }),
          () => partners.update('acme', { limits: { set, clear } }),
        ]
        for (const update of updates) if (await keepsFacts(store, update) !== isSame) return false
      }
      const { key, partner } = (await store.findKey(id))!
      return isDeepStrictEqual([key.limits, partner.limits], [expected, expected])
    }),
    { numRuns: 50 },
  ))
})

test('no message contains a key', async (t) => {
  const { partners, keys, issue } = await open()
  const { key: { id } } = await issue()
  const good = { slug: 'a', name: 'a', modules: [] }
  const limits = { [keyShaped]: { quota: 1, windowSeconds: 1 } }
  const acts: (() => Promise<unknown>)[] = [
    ...[{ slug: keyShaped }, { name: keyShaped }, { modules: [keyShaped] }, { limits }].map((change) => () =>
      partners.create({ ...good, ...change })
    ),
    () => partners.show(keyShaped),
    () => Array.fromAsync(keys.list({ partner: keyShaped })),
    () => keys.show(keyShaped),
    () => keys.revoke(keyShaped),
    () => keys.grant(id, [keyShaped]),
    () => issue({ partner: keyShaped }),
    () => issue({ allow: [keyShaped] }),
  ]
  for (const act of acts) {
    const outcome = await act().then(() => 'done', (error) => error)
    t.ok(outcome instanceof AdminError && !outcome.message.includes('0123456789'), `${act}: ${outcome}`)
  }
  await t.rejects(keys.show(keyShaped), refused('key_not_found', /whole key.*Treat that key as exposed/))
  for (const [id, shown] of [['Zt81Zt81Zt81', '"Zt81Zt81Zt81"'], ['\0', 'u0000']] as const) {
    await t.rejects(keys.show(id), refused('key_not_found', new RegExp(shown)))
  }
})

test('a change is rebuilt when the facts have changed after they were read', async (t) => {
  const { store, partners } = await open()
  let isOvertaken = false
  const raced = createKeyAdministration({
    ...store,
    async findPartner(slug) {
      const found = await store.findPartner(slug)
      if (!isOvertaken) await partners.deactivate('acme', ['profiles'])
      isOvertaken = true
      return found
    },
  }, { actor: 'operator', clock: () => now })
  const { key } = await raced.issue({ partner: 'acme', name: 'Plugin', environment: 'live' })
  t.same(key.scopes, ['read:plans'])
  t.same(await store.listKeys({}, undefined, 1000), [key], 'the key is issued once')

  isOvertaken = false
  await partners.activate('acme', ['profiles'])
  const late = raced.issue({
    partner: 'acme',
    name: 'Plugin',
    environment: 'live',
    scopes: ['read:profiles'],
  })
  await t.rejects(
    late,
    refused('module_inactive', { command: 'modules activate', args: ['acme', 'profiles'] }),
  )
})

test('by default, changes are dated by the clock of the store', async (t) => {
  const { store } = await open()
  const clock = () => ({ at: now, askedAt: performance.now(), answeredAt: performance.now() })
  const partners = createPartnerAdministration({ ...store, clock }, { actor: 'operator' })
  const { createdAt } = await partners.create({ slug: 'beta', name: 'Beta', modules: [] })
  t.ok(Math.abs(createdAt - now) < hour)
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
  t.equal((await store.listKeys({}, undefined, 1000)).length, 2)
})

test('the text of a key is returned even if the store fails right after the key was issued', async (t) => {
  const memory = await openMemoryStore()
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
  for (const text of wrong) {
    t.equal(parseDuration(text), undefined, text)
  }
  t.end()
})
