import { sha256 } from '../../../adapters/digest.ts'
import { verifyChain } from '../../../core/audit/chain.ts'
import { verifyAuditLog } from '../../../core/audit/verify.ts'
import { readPages } from '../../../core/lib/read-pages.ts'
import type { Key, Partner } from '../../../core/model.ts'
import type { AuditEntry } from '../../../core/ports/audit.ts'
import type { Change } from '../../../core/ports/changes.ts'
import type { Store } from '../../../core/ports/store.ts'
import { keyChanges, partnerChanges, successor } from './facts.ts'
import {
  apply,
  banner,
  createKeys,
  createPartners,
  fails,
  gatherFew,
  industry,
  key,
  partner,
  plan,
  stamp,
  T0,
} from './samples.ts'
import type { Check } from './suites.ts'

const by = { actor: 'Ädä “the operator” \u{1f600}', at: T0 + 77 }

const list = async (store: Store): Promise<readonly AuditEntry[]> => await store.listAudit(0, 1000)

const last = async (store: Store): Promise<AuditEntry> => (await list(store)).at(-1)!

async function decide(store: Store, ...changes: Change[]): Promise<boolean> {
  return await store.apply(changes, (await store.revision()).facts, by)
}

/** A partner or key as it is once it has been JSON, and what the trail may have of it. */
function state(of: Partner | Key): unknown {
  const { digest, lastUsedAt: _, ...shown } = of as Partial<Key>
  const digestHash = digest === undefined ? {} : { digestHash: sha256(digest) }
  return JSON.parse(JSON.stringify({ ...shown, ...digestHash }))
}

/** An entry with its states read, without what only the store can know. */
function said({ id: _id, hash: _seal, before, after, ...entry }: AuditEntry) {
  return {
    ...entry,
    before: before === undefined ? undefined : JSON.parse(before),
    after: after === undefined ? undefined : JSON.parse(after),
  }
}

/** What operators did, in the order in which they did it. */
export async function auditContract(checkStore: Check): Promise<void> {
  /** Whatever was done through the store, a replay of its entries comes to what is stored. */
  const check: Check = (name, body) =>
    checkStore(name, async (t, store) => {
      await body(t, store)
      t.strictSame((await verifyAuditLog(store)).differences, [], 'the entries say what is stored')
    })

  await check('an empty trail is whole', async (t, store) => {
    t.strictSame(await list(store), [])
    t.strictSame(await store.auditHead(), { sequence: 0, hash: '' })
    t.equal(await verifyChain(store, store.sha256), undefined)
  })

  await check('what is made is noted with what it is', async (t, store) => {
    const [made, issued] = [
      partner({ modules: ['banner'] }),
      key({ scopes: ['read:banner'], lastUsedAt: T0 }),
    ]
    await decide(store, { type: 'partner.created', partner: made }, { type: 'key.issued', key: issued })
    const absent = { subject: undefined, before: undefined, partner: 'acme', ...by }
    t.strictSame((await list(store)).map(said), [
      { sequence: 1, type: 'partner.created', keyId: undefined, after: state(made), ...absent },
      { sequence: 2, type: 'key.issued', keyId: issued.id, after: state(issued), ...absent },
    ])
  })

  for (const [change, before] of partnerChanges) {
    await check(`${change.type} is noted, from ${JSON.stringify(before)}`, async (t, store) => {
      await apply(store, { type: 'partner.created', partner: partner(before) })
      await decide(store, change)
      t.strictSame(said(await last(store)), {
        sequence: 2,
        type: change.type,
        partner: 'acme',
        keyId: undefined,
        subject: 'module' in change ? change.module : undefined,
        before: state(partner(before)),
        after: state((await store.findPartner('acme'))!),
        ...by,
      })
      t.equal((await list(store)).length, 2)
    })
  }

  for (const [change, before] of keyChanges) {
    await check(`${change.type} is noted, from ${JSON.stringify(before)}`, async (t, store) => {
      await createPartners(store, 'acme')
      await apply(store, { type: 'key.issued', key: key(before) }, { type: 'key.issued', key: successor })
      await decide(store, change)
      t.strictSame(said(await last(store)), {
        sequence: 4,
        type: change.type,
        partner: 'acme',
        keyId: key().id,
        subject: 'scope' in change ? change.scope : undefined,
        before: state(key(before)),
        after: state((await store.findKey(key().id))!.key),
        ...by,
      })
      t.equal((await list(store)).length, 4)
    })
  }

  await check('the removal of a partner is followed by the revocations that it means', async (t, store) => {
    await createKeys(store, 'acme', 'globex')
    await apply(store, { type: 'key.issued', key: key({ id: 'gone', state: 'revoked' }) })
    await apply(store, { type: 'key.issued', key: key({ id: 'oldest', createdAt: T0 - 1 }) })
    const { sequence } = await store.auditHead()
    await decide(store, { type: 'partner.removed', slug: 'acme' })
    const entries = await store.listAudit(sequence, 100)
    t.strictSame(entries.map(({ type, keyId, partner }) => [type, keyId, partner]), [
      ['partner.removed', undefined, 'acme'],
      ['key.revoked', 'oldest', 'acme'],
      ['key.revoked', 'acme-live', 'acme'],
      ['key.revoked', 'acme-test', 'acme'],
    ])
    for (const { keyId, before, after } of entries.slice(1)) {
      const { key: kept } = (await store.findKey(keyId!))!
      t.strictSame(JSON.parse(after!), state(kept))
      t.strictSame(JSON.parse(before!), state({ ...kept, state: 'active' }))
    }
  })

  await check('each of several changes sees what the one before it made', async (t, store) => {
    await createKeys(store, 'acme')
    const id = 'acme-live'
    await decide(
      store,
      { type: 'key.disabled', id },
      { type: 'key.enabled', id },
      { type: 'scope.granted', id, scope: 'read:plans' },
      { type: 'scope.granted', id, scope: 'read:banner' },
    )
    const entries = await store.listAudit(3, 100)
    t.equal(entries.length, 4)
    for (const [index, { before }] of entries.entries()) {
      if (index > 0) t.equal(before, entries[index - 1]!.after)
    }
    t.strictSame(JSON.parse(entries[3]!.after!).scopes, ['read:banner', 'read:plans'])
  })

  await check('what is not done is not noted, and what is not decided neither', async (t, store) => {
    await createKeys(store, 'acme')
    await store.importContent('plans', [plan], { ...by, now: T0 })
    const before = await list(store)
    const { facts } = await store.revision()
    const suspended: Change = { type: 'partner.suspended', slug: 'acme' }
    t.equal(await store.apply([suspended], `${facts}0`, by), false)
    t.ok(await fails(() => decide(store, suspended, { type: 'key.revoked', id: 'nothing' })), 'it fails')
    t.ok(
      await fails(() =>
        decide(store, suspended, { type: 'key.rotated', id: 'acme-live', successorId: 'none', retiresAt: T0 })
      ),
      'it fails at the end',
    )
    await store.importContent('plans', [{ ...plan, name: 'New' }], { ...by, now: T0, dryRun: true })
    await store.importContent('plans', [plan], { ...by, now: T0 })
    await store.importContent('plans', [], { ...by, now: T0 })
    await store.removeContent('plans', ['nothing', plan.slug], by)
    await store.removeContent('plans', [], by)
    await store.recordKeyUses(new Map([['acme-live', T0 + 5]]))
    t.strictSame(await list(store), before)
    t.equal(await verifyChain(store, store.sha256), undefined)
  })

  await check('imports and removals of content are noted by kind', async (t, store) => {
    const first = [industry('a'), industry('b'), industry('b', { name: 'Twice' })]
    await store.importContent('industries', first, { ...by, now: by.at })
    const absent = { partner: undefined, keyId: undefined, subject: 'industries' }
    const imported = { ...absent, ...by, type: 'content.imported', before: undefined }
    t.strictSame(said(await last(store)), {
      ...imported,
      sequence: 1,
      after: { kind: 'industries', created: 2, replaced: 1, slugs: ['a', 'b'] },
    })
    const more = [industry('a'), industry('b'), industry('c')]
    await store.importContent('industries', more, { ...by, now: by.at })
    t.strictSame(said(await last(store)), {
      ...imported,
      sequence: 2,
      after: { kind: 'industries', created: 1, replaced: 1, slugs: ['b', 'c'] },
    }, 'what was as it is now is not named')
    await store.removeContent('industries', ['c', 'a', 'c'], by)
    t.strictSame(said(await last(store)), {
      ...absent,
      ...by,
      type: 'content.removed',
      sequence: 3,
      before: { kind: 'industries', slugs: ['c', 'a'] },
      after: undefined,
    })
    const many = Array.from({ length: 150 }, (_, index) => industry(`i${index}`))
    await store.importContent('industries', many, { ...by, now: by.at })
    t.strictSame(said(await last(store)).after, {
      kind: 'industries',
      created: 150,
      replaced: 0,
      slugs: many.slice(0, 100).map(({ slug }) => slug),
    })
    await createPartners(store, 'acme')
    await store.importContent('banners', [banner], { ...by, now: by.at })
    t.strictSame(said(await last(store)).after, { kind: 'banners', created: 1, replaced: 0, slugs: ['acme'] })
    t.equal(await verifyChain(store, store.sha256), undefined)
  })

  await check(
    'the trail is numbered without a gap, sealed, and read in pages of any size',
    async (t, store) => {
      await createKeys(store, 'acme', 'globex')
      for (let times = 0; times < 10; times++) {
        await apply(store, { type: 'key.disabled', id: 'acme-live' }, {
          type: 'key.enabled',
          id: 'acme-live',
        })
      }
      const entries = await list(store)
      t.strictSame(
        entries.map(({ sequence }) => sequence),
        Array.from({ length: 26 }, (_, index) => index + 1),
      )
      t.ok(entries.every(({ id }) => /^act_[0-9A-Z]{20}$/.test(id)), 'ids are act_ and 20 characters')
      t.equal(new Set(entries.map(({ id }) => id)).size, 26, 'and all different')
      t.equal(new Set(entries.map(({ hash: seal }) => seal)).size, 26)
      t.ok(entries.every(({ hash: seal }) => /^[0-9a-f]{64}$/.test(seal)), 'seals are digests')
      t.strictSame(await store.auditHead(), { sequence: 26, hash: entries[25]!.hash })
      t.equal(await verifyChain(store, store.sha256), undefined)
      const lastEntries = async (count: number, partner?: string) =>
        await store.listAudit(await store.auditTail(count, partner), count, partner)
      for (const partner of ['acme', 'globex', 'nobody', undefined]) {
        const wanted = entries.filter((entry) => partner === undefined || entry.partner === partner)
        for (const limit of [1, 3, 23, 26, 27]) {
          const pages = readPages<AuditEntry>(
            (after, size) => store.listAudit(after?.sequence ?? 0, size, partner),
            limit,
          )
          t.strictSame(await gatherFew(pages), wanted, `${partner}, ${limit} at a time`)
          t.strictSame(
            await lastEntries(limit, partner),
            wanted.slice(-limit),
            `${partner}, the last ${limit}`,
          )
        }
        const rest = await store.listAudit(5, 100, partner)
        t.strictSame(rest, wanted.filter(({ sequence }) => sequence > 5), `${partner}, after another's entry`)
        t.equal(await store.auditTail(wanted.length, partner), -Infinity, 'there are no others')
      }
      t.equal(JSON.stringify(entries).includes(key().digest), false, 'no digest stands in it')
      t.strictSame(entries[0]!.actor, stamp.actor)
    },
  )
}
