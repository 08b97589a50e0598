import { verifyAuditLog } from '../../../core/audit/verify.ts'
import { readRows } from '../../../core/ports/store.ts'
import { type Key, KEY_STATES, MODULE_NAMES, type Partner, SCOPES } from '../../../core/model.ts'
import type { Change, KeyFilter } from '../../../core/ports/changes.ts'
import { applyBy, lastEntry, operator, snapshotOf } from './audit.ts'
import {
  apply,
  createPartners,
  DAY,
  fails,
  gatherFew,
  key,
  partner,
  profile,
  publish,
  stamp,
  T0,
} from './samples.ts'
import type { Check } from './suites.ts'

const fullPartner = partner({
  name: 'Ácmé \u{1f600}',
  modules: MODULE_NAMES,
  limits: { key: { quota: 0, windowSeconds: 1 }, signup: { quota: 5, windowSeconds: 60 } },
})

const fullKey = key({
  environment: 'test',
  scopes: SCOPES,
  allow: ['192.0.2.0/24', '2001:db8::/32'],
  limits: { verify: { quota: 1, windowSeconds: 2 } },
  expiresAt: T0 + 1,
  retiresAt: T0 + 2,
  predecessorId: 'Zt80Zt80Zt80',
  successorId: 'Zt82Zt82Zt82',
  lastUsedAt: T0 + 3,
})

const successor: Key = key({ id: 'Zt82Zt82Zt82', createdAt: T0 + 1 })

/** The subject of the audit entry of a change of a partner. */
function subjectOf(change: Change): string | undefined {
  if ('module' in change) return String(change.module)
  return 'note' in change ? 'contact note' : undefined
}

/** Each change of a partner, and the members before and after it. */
const partnerChanges: readonly [Change, before: Partial<Partner>, after: Partial<Partner>][] = [
  [
    {
      type: 'partner.updated',
      slug: 'acme',
      name: 'New',
      limits: { key: { quota: 1, windowSeconds: 2 } },
      contact: undefined,
      tags: [],
      externalId: 'crm',
      note: 'New',
      selfService: ['revoke', 'rotate'],
    },
    { contact: 'dev@acme.example', tags: ['eu'], note: 'Old' },
    {
      name: 'New',
      limits: { key: { quota: 1, windowSeconds: 2 } },
      contact: undefined,
      tags: [],
      externalId: 'crm',
      note: 'New',
      selfService: ['revoke', 'rotate'],
    },
  ],
  [{ type: 'partner.suspended', slug: 'acme' }, {}, { state: 'suspended' }],
  [{ type: 'partner.resumed', slug: 'acme' }, { state: 'suspended' }, { state: 'active' }],
  [{ type: 'partner.removed', slug: 'acme' }, {}, { state: 'removed' }],
  [
    { type: 'module.activated', slug: 'acme', module: 'banner' },
    { modules: ['widget', 'reporting'] },
    { modules: ['widget', 'banner', 'reporting'] },
  ],
  [{ type: 'module.activated', slug: 'acme', module: 'banner' }, { modules: ['banner'] }, {
    modules: ['banner'],
  }],
  [{ type: 'module.deactivated', slug: 'acme', module: 'banner' }, { modules: ['widget', 'banner'] }, {
    modules: ['widget'],
  }],
]

/** Each change of a key, and the members before and after it. */
const keyChanges: readonly [Change, before: Partial<Key>, after: Partial<Key>][] = [
  [
    { type: 'key.rotated', id: 'Zt81Zt81Zt81', successorId: successor.id, retiresAt: T0 + 9 },
    {},
    { successorId: successor.id, retiresAt: T0 + 9 },
  ],
  [
    { type: 'key.rotated', id: 'Zt81Zt81Zt81', successorId: successor.id, retiresAt: T0 + 8, ended: true },
    {},
    { successorId: successor.id, retiresAt: T0 + 8, state: 'retired' },
  ],
  [
    {
      type: 'key.updated',
      id: 'Zt81Zt81Zt81',
      name: 'Renamed',
      allow: ['192.0.2.1'],
      limits: { key: { quota: 7, windowSeconds: 8 } },
      expiresAt: T0 + 9,
      owner: 'Ñ',
      tags: ['a_b', 'c.d'],
    },
    { limits: { verify: { quota: 1, windowSeconds: 1 } }, expiresAt: T0 + 8 },
    {
      name: 'Renamed',
      allow: ['192.0.2.1'],
      limits: { key: { quota: 7, windowSeconds: 8 } },
      expiresAt: T0 + 9,
      owner: 'Ñ',
      tags: ['a_b', 'c.d'],
    },
  ],
  [{ type: 'key.disabled', id: 'Zt81Zt81Zt81' }, {}, { state: 'disabled' }],
  [{ type: 'key.enabled', id: 'Zt81Zt81Zt81' }, { state: 'disabled' }, { state: 'active' }],
  [{ type: 'key.revoked', id: 'Zt81Zt81Zt81' }, {}, { state: 'revoked' }],
  [
    { type: 'scope.granted', id: 'Zt81Zt81Zt81', scope: 'read:banner' },
    { scopes: ['read:partner-widget', 'read:partner-reports'] },
    { scopes: ['read:partner-widget', 'read:banner', 'read:partner-reports'] },
  ],
  [
    { type: 'scope.removed', id: 'Zt81Zt81Zt81', scope: 'read:banner' },
    { scopes: ['read:banner', 'read:plans'] },
    { scopes: ['read:plans'] },
  ],
]

/** Settings, partners, keys and their changes. */
export async function factsContract(check: Check): Promise<void> {
  await check('a new store has the default key prefix and a random secret', async (t, store) => {
    t.equal(store.settings.keyPrefix, 'spk')
    t.ok(/^[0-9a-f]{64}$/.test(store.settings.cursorSecret), 'the secret is 64 hexadecimal digits')
    t.equal(await store.findKey(store.settings.keyPrefix), undefined)
    t.equal(store.sha256('é'), '4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c')
  })

  await check('partners and keys are read as they were written', async (t, store) => {
    await apply(store, { type: 'partner.created', partner: fullPartner }, {
      type: 'key.issued',
      key: fullKey,
    })
    t.strictSame(await store.findKey(fullKey.id), { key: fullKey, partner: fullPartner })
    t.strictSame(await store.findPartner('acme'), fullPartner)
    t.strictSame(await store.listPartners(undefined, 1000), [fullPartner])
    t.strictSame(await store.listKeys({}, undefined, 1000), [fullKey])
    await apply(store, { type: 'partner.created', partner: partner({ slug: 'plain' }) })
    await apply(store, { type: 'key.issued', key: key({ id: 'plain', partner: 'plain' }) })
    t.strictSame(await store.findKey('plain'), {
      key: key({ id: 'plain', partner: 'plain' }),
      partner: partner({ slug: 'plain' }),
    })
  })

  await check('lists of partners and keys have pages of any size', async (t, store) => {
    const slugs = ['acme', 'acme-b', 'acmea', 'globex', 'idle']
    await createPartners(store, ...slugs.toReversed())
    // Many with equal instants, issued neither in the order of their ids nor of their instants.
    const issued = Array.from({ length: 24 }, (_, index) =>
      key({
        id: `${index % 2 ? 'key' : 'KEY'}-${(index * 7) % 24}`,
        partner: index % 3 === 0 ? 'globex' : 'acme',
        createdAt: T0 + [0, 2, 1, 2, -1][index % 5]!,
        state: index % 4 === 0 ? 'revoked' : 'active',
      }))
    const changes: Change[] = issued.map((key) => ({ type: 'key.issued', key }))
    await apply(store, ...changes, { type: 'key.revoked', id: 'key-9' })
    const sorted = issued
      .map((key): Key => key.id === 'key-9' ? { ...key, state: 'revoked' } : key)
      .toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
    for (const limit of [2, 4, 7, 24, 25]) {
      const partners = readRows<Partner>((after, size) => store.listPartners(after?.slug, size), limit)
      t.strictSame((await gatherFew(partners)).map(({ slug }) => slug), slugs, `partners, ${limit} a page`)
      for (const slug of [undefined, ...slugs, 'missing']) {
        const keys = readRows<Key>((after, size) => store.listKeys({ partner: slug }, after, size), limit)
        const wanted = sorted.filter(({ partner }) => slug === undefined || partner === slug)
        t.strictSame(await gatherFew(keys), wanted, `keys of ${slug}, ${limit} a page`)
      }
    }
    t.strictSame(await store.listPartners('acme-1', 2), [
      partner({ slug: 'acme-b' }),
      partner({ slug: 'acmea' }),
    ])
    t.strictSame(await store.listPartners('idle', 9), [], 'after the last one')
    t.strictSame(await store.listKeys({ partner: 'acme' }, { createdAt: T0, id: 'key-zz' }, 1), [
      sorted.find(({ partner, createdAt }) => partner === 'acme' && createdAt > T0)!,
    ], 'a position between keys')
    t.strictSame(await store.listKeys({}, { createdAt: T0 + 2, id: 'key-zz' }, 9), [])
  })

  await check('keys are selected by every combination of filters, in pages of any size', async (t, store) => {
    await createPartners(store, 'acme', 'globex')
    const now = T0 + 10 * DAY
    const ends = [undefined, now - 1, now, now + 1, now + DAY]
    // Coprime steps: every two members meet in every combination.
    const issued = Array.from({ length: 330 }, (_, index) =>
      key({
        id: `key-${(index * 7) % 330}`,
        partner: index % 3 === 0 ? 'globex' : 'acme',
        environment: index % 2 === 0 ? 'live' : 'test',
        state:
          (['active', 'active', 'active', 'disabled', 'revoked', 'retired', 'active'] as const)[index % 7]!,
        scopes: SCOPES.filter((_, scope) => (index >> scope) % 2 === 1),
        createdAt: T0 + (index % 11) * DAY,
        expiresAt: ends[index % 5],
        retiresAt: ends[Math.floor(index / 5) % 5],
        lastUsedAt: index % 4 === 0 ? undefined : T0 + (index % 13) * DAY,
      }))
    await apply(store, ...issued.map((key): Change => ({ type: 'key.issued', key })))
    const sorted = issued.toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))

    const endOf = ({ expiresAt, retiresAt }: Key) => Math.min(expiresAt ?? Infinity, retiresAt ?? Infinity)
    function stateOf(key: Key): string {
      if (key.state === 'revoked') return 'revoked'
      if (key.state === 'retired' || endOf(key) <= now) return 'expired'
      if (key.state === 'disabled') return 'disabled'
      return key.retiresAt === undefined ? 'active' : 'retiring'
    }
    const inForce = (key: Key) => ['active', 'retiring'].includes(stateOf(key))
    const choices: readonly (readonly [filter: KeyFilter, isSelected: (key: Key) => boolean])[][] = [
      [[{ partner: 'acme' }, ({ partner }) => partner === 'acme']],
      [[{ environment: 'test' }, ({ environment }) => environment === 'test']],
      [[{ scope: 'read:banner' }, ({ scopes }) => scopes.includes('read:banner')]],
      [
        ...KEY_STATES.map((state) => [{ states: [state] }, (key: Key) => stateOf(key) === state] as const),
        [{ states: ['expired', 'active'] }, (key) => ['expired', 'active'].includes(stateOf(key))],
        [{ states: [] }, () => false],
      ],
      [[{ endsBefore: now + DAY }, (key) => inForce(key) && endOf(key) < now + DAY]],
      [[
        { unusedSince: T0 + 5 * DAY },
        (key) => inForce(key) && key.createdAt < T0 + 5 * DAY && (key.lastUsedAt ?? 0) < T0 + 5 * DAY,
      ]],
    ]
    const combinations = choices.reduce<(typeof choices)[number][]>(
      (all, next) => all.flatMap((one) => [one, ...next.map((choice) => [...one, choice])]),
      [[]],
    )
    const wrong: KeyFilter[] = []
    let found = 0
    for (const [index, combination] of combinations.entries()) {
      const filter = Object.assign({ now }, ...combination.map(([part]) => part))
      const wanted = sorted.filter((key) => combination.every(([, isSelected]) => isSelected(key)))
        .map(({ id }) => id)
      const limit = [1000, 3, 7, 40][index % 4]!
      const keys = await gatherFew(
        readRows<Key>((after, size) => store.listKeys(filter, after, size), limit),
        issued.length + 1,
      )
      if (keys.map(({ id }) => id).join() !== wanted.join()) wrong.push({ ...filter })
      if (wanted.length > 0) found++
    }
    t.strictSame(wrong, [])
    t.ok(found > combinations.length / 3, `${found} of ${combinations.length} combinations select keys`)
    const lasting = key({ id: 'lasting', expiresAt: Date.now() + DAY })
    await apply(store, { type: 'key.issued', key: lasting })
    t.strictSame(
      await store.listKeys({ endsBefore: Date.now() + 2 * DAY }, undefined, 9),
      [lasting],
      'now by default',
    )
  })

  await check('each change of a partner is applied to it only, and recorded', async (t, store) => {
    await createPartners(store, 'other')
    for (const [index, [change, before, after]] of partnerChanges.entries()) {
      const slug = `p${index}`
      const original = { ...fullPartner, ...before, slug }
      const changed = { ...original, ...after }
      const message = `${change.type} from ${JSON.stringify(before)}`
      await apply(store, { type: 'partner.created', partner: original })
      t.equal(await applyBy(store, { ...change, slug } as Change), true, message)
      t.strictSame(await store.findPartner(slug), changed, message)
      t.strictSame(await lastEntry(store), {
        sequence: 3 + 2 * index,
        type: change.type,
        partner: slug,
        keyId: undefined,
        subject: subjectOf(change),
        before: snapshotOf(original),
        after: snapshotOf(changed),
        ...operator,
      }, `${message} is recorded`)
    }
    t.strictSame(await store.findPartner('other'), partner({ slug: 'other' }))
    t.strictSame((await verifyAuditLog(store)).differences, [])
  })

  await check('each change of a key is applied to it only, and recorded', async (t, store) => {
    await createPartners(store, 'acme')
    await apply(store, { type: 'key.issued', key: successor })
    for (const [index, [change, before, after]] of keyChanges.entries()) {
      const id = `k${index}`
      const original = key({ ...before, id })
      const changed = { ...original, ...after }
      const message = `${change.type} from ${JSON.stringify(before)}`
      await apply(store, { type: 'key.issued', key: original })
      t.equal(await applyBy(store, { ...change, id } as Change), true, message)
      t.strictSame((await store.findKey(id))?.key, changed, message)
      t.strictSame(await lastEntry(store), {
        sequence: 4 + 2 * index,
        type: change.type,
        partner: 'acme',
        keyId: id,
        subject: 'scope' in change ? change.scope : undefined,
        before: snapshotOf(original),
        after: snapshotOf(changed),
        ...operator,
      }, `${message} is recorded`)
    }
    t.strictSame((await store.findKey(successor.id))?.key, successor)
    t.strictSame((await verifyAuditLog(store)).differences, [])
  })

  const impossible: Change[] = [
    ...partnerChanges.map(([change]) => ({ ...change, slug: 'missing' }) as Change),
    ...keyChanges.map(([change]) => ({ ...change, id: 'nothing' }) as Change),
    { type: 'key.rotated', id: key().id, successorId: 'nothing', retiresAt: T0 },
    { type: 'key.issued', key: key({ id: 'other', partner: 'missing' }) },
    { type: 'key.issued', key: key() },
    { type: 'partner.created', partner: partner() },
  ]
  await check(
    'changing a missing record or creating an existing one fails, and no change of the call is applied',
    async (t, store) => {
      await createPartners(store, 'acme')
      await apply(store, { type: 'key.issued', key: key() })
      const before = await store.revision()
      for (const change of impossible) {
        const suspended: Change = { type: 'partner.suspended', slug: 'acme' }
        t.ok(await fails(() => apply(store, suspended, change)), `${JSON.stringify(change)} fails`)
      }
      t.strictSame(await store.findPartner('acme'), partner())
      t.strictSame(await store.listKeys({}, undefined, 1000), [key()])
      t.strictSame(await store.revision(), before)
    },
  )

  await check('changes based on an earlier revision are not applied', async (t, store) => {
    const { facts } = await store.revision()
    await createPartners(store, 'acme')
    t.equal(await store.apply([{ type: 'partner.suspended', slug: 'acme' }], facts, stamp), false)
    t.equal((await store.findPartner('acme'))?.state, 'active')
    t.equal(await apply(store, { type: 'partner.suspended', slug: 'acme' }), true)
    t.equal((await store.findPartner('acme'))?.state, 'suspended')
  })

  await check(
    'every administrative change gives the facts a new revision, and none to content',
    async (t, store) => {
      const { content } = await store.revision()
      const seen = new Set([(await store.revision()).facts])
      await createPartners(store, 'acme')
      for (let times = 0; times < 10; times++) {
        seen.add((await store.revision()).facts)
        await apply(store, { type: 'partner.suspended', slug: 'acme' })
      }
      seen.add((await store.revision()).facts)
      t.equal(seen.size, 12)
      t.equal((await store.revision()).content, content)
      t.strictSame(await store.revision(), await store.revision(), 'reading does not change it')
    },
  )

  await check('a change calls the listeners of the store before it returns', async (t, store) => {
    const calls: string[] = []
    const stop = store.onChange(() => calls.push('first'))
    const stopOther = store.onChange(() => calls.push('other'))
    await createPartners(store, 'acme')
    t.strictSame(calls.splice(0), ['first', 'other'])
    stopOther()
    await publish(store, [profile('a')])
    t.ok(calls.length >= 1 && calls.every((name) => name === 'first'), 'an import')
    calls.length = 0
    await store.removeContent('profiles', ['a'], stamp)
    t.strictSame(calls.splice(0), ['first'], 'a removal')
    await store.recordKeyUses(new Map([[key().id, T0]]))
    t.strictSame(calls, [], 'what moves no revision')
    stop()
    await apply(store, { type: 'partner.suspended', slug: 'acme' })
    t.strictSame(calls, [])
  })

  await check('the last use of a key only moves forward, and changes no revision', async (t, store) => {
    await createPartners(store, 'acme')
    await apply(store, { type: 'key.issued', key: key() }, { type: 'key.issued', key: successor })
    const before = await store.revision()
    const used = async () => (await store.listKeys({}, undefined, 1000)).map(({ lastUsedAt }) => lastUsedAt)
    await store.recordKeyUses(new Map([['nothing', T0], [key().id, T0 + 5]]))
    t.strictSame(await used(), [T0 + 5, undefined])
    await store.recordKeyUses(new Map([[key().id, T0 + 4], [successor.id, T0 + 1]]))
    t.strictSame(await used(), [T0 + 5, T0 + 1])
    await store.recordKeyUses(new Map([[key().id, T0 + 6]]))
    t.strictSame(await used(), [T0 + 6, T0 + 1])
    t.equal((await store.findKey(key().id))?.key.lastUsedAt, T0 + 6)
    t.strictSame(await store.revision(), before)
  })
}
