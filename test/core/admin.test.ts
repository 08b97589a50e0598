import { test } from 'tap'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { createKeyAdministration, type NewKey } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { AdminError, type AdminErrorCode, parseDuration } from '../../core/admin/validate.ts'
import { extractKeyId, isWellFormedKey } from '../../core/keys/format.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import { MODULES, SCOPES } from '../../core/policy/modules.ts'
import type { Store } from '../../core/ports/store.ts'
import { gather } from '../support/gather.ts'

const now = Date.UTC(2026, 0, 1)
const keyShaped = `spk_live_Zt81Zt81Zt81_${'0123456789'.repeat(4).slice(0, 38)}`

/** A store with partner `acme`, whose profiles and pricing are active, and a clock that can be moved. */
async function open(store: Store = createMemoryStore()) {
  const clock = { now }
  const partners = createPartnerAdministration(store, { actor: 'operator', clock: () => clock.now })
  const keys = createKeyAdministration(store, { actor: 'operator', clock: () => clock.now })
  await partners.create({ slug: 'acme', name: 'Acme Travel', modules: ['pricing', 'profiles'] })
  const issue = (more: Partial<NewKey> = {}) =>
    keys.issue({ partner: 'acme', name: 'Plugin', environment: 'live', ...more })
  return { store, clock, partners, keys, issue }
}

const refused = (code: AdminErrorCode, message: RegExp = /./) => ({ name: 'AdminError', code, message })

/** Whether facts stay untouched by what `act` asks for. */
async function leavesFacts(store: Store, act: () => Promise<unknown>): Promise<boolean> {
  const before = (await store.revision()).facts
  await act()
  return (await store.revision()).facts === before
}

test('a partner is created once, with its modules in order', async (t) => {
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

test('the slug of a removed partner stays taken, and the partner as it is', async (t) => {
  const { store, partners, keys } = await open()
  await store.apply([{ type: 'partner.removed', slug: 'acme' }], (await store.revision()).facts, {
    actor: 'operator',
    at: now,
  })
  await t.rejects(partners.create({ slug: 'acme', name: 'Other', modules: [] }), refused('partner_exists'))
  for (const act of [partners.suspend, partners.resume]) {
    await t.rejects(act('acme'), refused('partner_removed', /acme is removed/))
  }
  await t.rejects(partners.activate('acme', ['banner']), refused('partner_removed'))
  await t.rejects(partners.deactivate('acme', ['profiles']), refused('partner_removed'))
  await t.rejects(
    keys.issue({ partner: 'acme', name: 'Plugin', environment: 'live' }),
    refused('partner_removed'),
  )
  t.equal((await partners.show('acme')).state, 'removed')
})

test('suspension and modules come and go, and what is so already is not done again', async (t) => {
  const { store, partners } = await open()
  t.equal((await partners.suspend('acme')).state, 'suspended')
  t.ok(await leavesFacts(store, () => partners.suspend('acme')))
  t.equal((await partners.resume('acme')).state, 'active')
  t.ok(await leavesFacts(store, () => partners.resume('acme')))
  t.same((await partners.activate('acme', ['banner', 'profiles', 'banner'])).modules, [
    'profiles',
    'banner',
    'pricing',
  ])
  t.ok(await leavesFacts(store, () => partners.activate('acme', ['profiles', 'banner'])))
  t.same((await partners.deactivate('acme', ['pricing', 'widget'])).modules, ['profiles', 'banner'])
  t.ok(await leavesFacts(store, () => partners.deactivate('acme', ['pricing'])))
})

test('partners that cannot be are refused before anything is kept', async (t) => {
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

test('a key is issued with the scopes of the active modules, and only its digest is kept', async (t) => {
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

test('a key is issued as asked', async (t) => {
  const { issue } = await open(createMemoryStore({ keyPrefix: 'acme' }))
  const { key, text } = await issue({
    environment: 'test',
    scopes: ['read:plans', 'read:plans'],
    expiresAt: now + 1,
    allow: ['192.0.2.1', '2001:db8::/32'],
    limits: { key: { quota: 0, windowSeconds: 1 } },
  })
  t.match(text, /^acme_test_/)
  t.match(key, {
    environment: 'test',
    scopes: ['read:plans'],
    expiresAt: now + 1,
    allow: ['192.0.2.1', '2001:db8::/32'],
    limits: { key: { quota: 0, windowSeconds: 1 } },
  })
  t.same((await issue({ scopes: [] })).key.scopes, [])
})

test('a suspended partner may be given keys', async (t) => {
  const { partners, issue } = await open()
  await partners.suspend('acme')
  t.equal((await issue()).key.state, 'active')
})

test('keys that cannot be are refused', async (t) => {
  const { keys, issue } = await open()
  const wrong: [Partial<NewKey>, AdminErrorCode, RegExp][] = [
    [{ partner: 'nobody' }, 'partner_not_found', /"nobody"/],
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
  t.same((await keys.show(key.id)).scopes, ['read:profiles', 'read:plans'], 'all or none')
  await partners.activate('acme', ['banner'])
  t.same((await keys.grant(key.id, ['read:banner'])).scopes, ['read:profiles', 'read:banner', 'read:plans'])
  t.ok(await leavesFacts(store, () => keys.grant(key.id, ['read:banner', 'read:profiles'])))
  await partners.deactivate('acme', ['banner'])
  t.ok((await keys.show(key.id)).scopes.includes('read:banner'), 'held on, out of force')
  await t.rejects(keys.grant(key.id, ['read:banner']), refused('module_inactive'), 'even when it is held')
})

test('for every scope the command names the module that needs it', async (t) => {
  const { partners, keys } = await open()
  await partners.create({ slug: 'bare', name: 'Bare', modules: [] })
  for (const scope of SCOPES) {
    const issuing = () => keys.issue({ partner: 'bare', name: 'a', scopes: [scope], environment: 'live' })
    const message = await issuing().then(() => 'issued', (error: Error) => error.message)
    const module = /partner-api modules activate bare ([a-z]+)$/.exec(message)?.[1] ?? ''
    t.equal(MODULES[module as keyof typeof MODULES]?.scope, scope)
    await partners.activate('bare', [module])
    t.same((await issuing()).key.scopes, [scope])
  }
})

test('scopes are taken away, held or not, whatever modules are active', async (t) => {
  const { store, partners, keys, issue } = await open()
  const { key } = await issue()
  await partners.deactivate('acme', ['profiles'])
  t.same((await keys.remove(key.id, ['read:profiles', 'read:banner'])).scopes, ['read:plans'])
  t.ok(await leavesFacts(store, () => keys.remove(key.id, ['read:profiles'])))
  await t.rejects(keys.remove(key.id, ['read']), refused('unknown_scope'))
})

test('disabling is reversible, revoking is not', async (t) => {
  const { store, keys, issue } = await open()
  const { key: { id } } = await issue()
  t.ok(await leavesFacts(store, () => keys.enable(id)))
  t.equal((await keys.disable(id)).state, 'disabled')
  t.ok(await leavesFacts(store, () => keys.disable(id)))
  t.equal((await keys.enable(id)).state, 'active')
  t.equal((await keys.revoke(id)).state, 'revoked')
  t.ok(await leavesFacts(store, () => keys.revoke(id)))
  const final = refused('key_revoked', new RegExp(`${id} is revoked`))
  await t.rejects(keys.enable(id), final)
  await t.rejects(keys.disable(id), final)
  await t.rejects(keys.grant(id, ['read:profiles']), final)
  await t.rejects(keys.remove(id, ['read:profiles']), final)
})

test('an expired key can only be revoked', async (t) => {
  const { clock, keys, issue } = await open()
  const { key: { id } } = await issue({ expiresAt: now + 10 })
  clock.now += 9
  t.equal((await keys.disable(id)).state, 'disabled')
  clock.now += 1
  const final = refused('key_expired', new RegExp(`${id} has expired`))
  await t.rejects(keys.enable(id), final)
  await t.rejects(keys.disable(id), final)
  await t.rejects(keys.grant(id, ['read:profiles']), final)
  await t.rejects(keys.remove(id, ['read:profiles']), final)
  t.equal((await keys.revoke(id)).state, 'revoked')
})

test('nothing in the shape of a key is said back', async (t) => {
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

test('a decision that was overtaken is made again on the new facts', async (t) => {
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
  t.same(await store.listKeys(undefined, undefined, 1000), [key], 'issued once')

  overtaken = false
  await partners.activate('acme', ['profiles'])
  const { key: other } = await issue({ scopes: [] })
  await t.rejects(
    raced.grant(other.id, ['read:profiles']),
    refused('module_inactive', /activate acme profiles$/),
  )
})

test('a decision that is overtaken again and again is given up', async (t) => {
  const { store } = await open()
  let attempts = 0
  const hopeless = createPartnerAdministration({ ...store, apply: () => ++attempts === 0 }, {
    actor: 'operator',
  })
  await t.rejects(hopeless.suspend('acme'), refused('concurrent_change', /Nothing was changed/))
  t.equal(attempts, 8)
})

test('the state of a key: what is final counts first', (t) => {
  const at = (state: 'active' | 'disabled' | 'revoked', expiresAt?: number, retiresAt?: number) =>
    keyState({ state, expiresAt, retiresAt }, now)
  t.equal(at('active'), 'active')
  t.equal(at('active', now + 1), 'active')
  t.equal(at('active', now), 'expired')
  t.equal(at('active', undefined, now + 1), 'retiring')
  t.equal(at('active', undefined, now), 'expired')
  t.equal(at('active', 0), 'expired')
  t.equal(at('disabled'), 'disabled')
  t.equal(at('disabled', undefined, now + 1), 'disabled')
  t.equal(at('disabled', now), 'expired')
  t.equal(at('revoked', now, now), 'revoked')
  t.end()
})

test('durations', (t) => {
  const right: [string, number][] = [['0', 0], ['0s', 0], ['45s', 45_000], ['2m', 120_000], [
    '24h',
    86_400_000,
  ]]
  for (const [text, expected] of right) t.equal(parseDuration(text), expected, text)
  t.equal(parseDuration('36525d'), 36_525 * 86_400_000)
  for (
    const text of ['', '1', 'd', '-1d', '1.5h', '1w', '1 d', '1D', '36526d', '99999999999999d', '1d\n', '１d']
  ) {
    t.throws(() => parseDuration(text), refused('invalid_duration'), text)
  }
  t.end()
})

test('a key is told even when the store goes away right after it was issued', async (t) => {
  const memory = createMemoryStore()
  await createPartnerAdministration(memory, { actor: 'test' }).create({
    slug: 'acme',
    name: 'Acme',
    modules: [],
  })
  let isGone = false
  const store: Store = {
    ...memory,
    findKey(id) {
      if (isGone) throw new Error('out of reach')
      return memory.findKey(id)
    },
    async apply(...change) {
      const applied = await memory.apply(...change)
      isGone = true
      return applied
    },
  }
  const keys = createKeyAdministration(store, { actor: 'test' })
  const first = await keys.issue({ partner: 'acme', name: 'k', environment: 'live' })
  t.strictSame((await memory.findKey(first.key.id))?.key, first.key)
  isGone = false
  const second = await keys.rotate(first.key.id)
  t.strictSame((await memory.findKey(second.key.id))?.key, second.key)
})
