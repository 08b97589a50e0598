/** A restored partner or key may do what both stores allow: no more, and no less. */
import fc from 'fast-check'
import { test } from 'tap'
import { applyChanges } from '../../core/admin/change-set.ts'
import { narrowKey, narrowPartner } from '../../core/admin/narrow.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import { intersectRanges, parseCidr, parseIpAddress, rangeContains } from '../../core/lib/ip-address.ts'
import { type Key, modulesWith, type Partner, SELF_SERVICE } from '../../core/model.ts'
import type { Change } from '../../core/ports/changes.ts'
import { key, partner } from '../contract/store/samples.ts'

const ranges = ['10.0.0.0/8', '10.1.0.0/16', '10.1.2.3', '10.1.2.3/32', '192.0.2.0/24', '0.0.0.0/0', '::/0']
const addresses = ['10.0.0.1', '10.1.0.1', '10.1.2.3', '192.0.2.1', '203.0.113.1', '2001:db8::1']
const instants = [1, 2, 3, 4]
const scopes = ['read:profiles', 'read:plans', 'read:own']
const end = fc.option(fc.constantFrom(...instants), { nil: undefined })

const someKey: fc.Arbitrary<Key> = fc.record({
  state: fc.constantFrom<Key['state']>('active', 'active', 'disabled', 'retired', 'revoked'),
  scopes: fc.subarray(scopes),
  allow: fc.subarray(ranges),
  expiresAt: end,
  retiresAt: end,
}).map((more) => key(more))

function isAllowed(allow: readonly string[], address: string): boolean {
  const parsed = parseIpAddress(address)!
  return allow.length === 0 || allow.some((range) => rangeContains(parseCidr(range), parsed))
}

/** The requests that a key may make, as text. */
function accepted(given: Key): string[] {
  return instants.flatMap((now) =>
    ['active', 'retiring'].includes(keyState(given, now - 0.5))
      ? addresses.filter((address) => isAllowed(given.allow, address))
        .flatMap((address) => ['verify', ...given.scopes].map((scope) => `${now} ${address} ${scope}`))
      : []
  )
}

function apply(changes: readonly Change[], owner: Partner, given = key()) {
  const stored = {
    partners: new Map([[owner.slug, owner]]),
    keys: new Map([[given.id, given]]),
    modules: new Map(),
  }
  const { partners, keys } = applyChanges(stored, changes, (text) => text)
  return { partner: partners.get(owner.slug) ?? owner, key: keys.get(given.id) ?? given }
}

test('two lists of ranges have the addresses in common that both allow', (t) => {
  fc.assert(fc.property(fc.subarray(ranges), fc.subarray(ranges), (left, right) => {
    const shared = intersectRanges(left, right)
    return addresses.every((address) =>
      (shared !== undefined && isAllowed(shared, address)) ===
        (isAllowed(left, address) && isAllowed(right, address))
    )
  }))
  t.same(intersectRanges(['10.1.0.0/16'], ['192.0.2.0/24', '::/0']), undefined)
  t.end()
})

test('a narrowed key is accepted where both keys are, and narrowing it again changes nothing', (t) => {
  fc.assert(fc.property(someKey, someKey, (before, replaced) => {
    const { key: narrowed } = apply(narrowKey(before, replaced), partner(), before)
    const both = accepted(replaced)
    t.strictSame(accepted(narrowed), accepted(before).filter((request) => both.includes(request)))
    t.strictSame(narrowKey(narrowed, replaced), [])
    t.strictSame(narrowKey(before, before), [])
  }))
  t.end()
})

test('what is no access of a key is as in the backup', (t) => {
  const before = key({ name: 'A', limits: { key: { quota: 9, windowSeconds: 60 } }, tags: ['a'] })
  t.strictSame(narrowKey(before, { ...before, name: 'B', limits: {}, tags: [] }), [])
  t.end()
})

test('a key that the replaced store does not have is disabled, one that has ended there is revoked', (t) => {
  const active = key()
  const id = key().id
  const disabled = [{ type: 'key.disabled', id }]
  t.strictSame(narrowKey(active, undefined), disabled)
  t.strictSame(narrowKey(active, key({ digest: 'f'.repeat(64) })), disabled, 'another digest')
  t.strictSame(narrowKey(key({ state: 'disabled' }), undefined), [])
  t.strictSame(narrowKey(key({ state: 'disabled' }), key({ state: 'retired' })), [{
    type: 'key.revoked',
    id,
  }])
  t.end()
})

test('a key without an address in common is disabled, and then has those of the replaced store', (t) => {
  const before = key({ allow: ['10.0.0.0/8'] })
  const { key: narrowed } = apply(narrowKey(before, key({ allow: ['192.0.2.1'] })), partner(), before)
  t.match(narrowed, { state: 'disabled', allow: ['192.0.2.1'] })
  t.end()
})

const own = { name: 'own', scope: 'read:own', feature: 'Own' }
const modules = modulesWith([own])

const somePartner: fc.Arbitrary<Partner> = fc.record({
  state: fc.constantFrom<Partner['state']>('active', 'active', 'suspended', 'removed'),
  modules: fc.subarray(['profiles', 'pricing', 'own']),
  selfService: fc.subarray([...SELF_SERVICE]),
}).map((more) => partner(more))

test('a narrowed partner may do what both partners may', (t) => {
  fc.assert(fc.property(somePartner, somePartner, (before, replaced) => {
    const { partner: narrowed } = apply(narrowPartner(before, replaced, modules, modules), before)
    const states = [before.state, replaced.state]
    const state = (['removed', 'suspended'] as const).find((each) => states.includes(each)) ?? 'active'
    t.equal(narrowed.state, state)
    if (state === 'removed') return
    t.strictSame(narrowed.modules, before.modules.filter((module) => replaced.modules.includes(module)))
    t.strictSame(
      narrowed.selfService,
      before.selfService.filter((each) => replaced.selfService.includes(each)),
    )
    t.strictSame(narrowPartner(narrowed, replaced, modules, modules), [])
  }))
  t.end()
})

test('a module that has another scope in the replaced store is deactivated', (t) => {
  const before = partner({ modules: ['own'] })
  const { slug } = before
  const deactivated = [{ type: 'module.deactivated', slug, module: 'own' }]
  t.strictSame(
    narrowPartner(before, before, modules, modulesWith([{ ...own, scope: 'read:other' }])),
    deactivated,
  )
  t.strictSame(narrowPartner(before, undefined, modules, modules), [{ type: 'partner.suspended', slug }])
  t.end()
})
