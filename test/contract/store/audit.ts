import { sha256 } from '../../../adapters/digest.ts'
import { verifyChain } from '../../../core/audit/verify.ts'
import { verifyAuditLog } from '../../../core/audit/verify.ts'
import type { Key, Partner } from '../../../core/model.ts'
import type { AuditEntry } from '../../../core/ports/audit.ts'
import type { Change } from '../../../core/ports/changes.ts'
import { readRows, type Store } from '../../../core/ports/store.ts'
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

/** An operator and time other than those of `stamp`. */
export const operator = { actor: 'Ädä “the operator” \u{1f600}', at: T0 + 77 }

const list = async (store: Store): Promise<readonly AuditEntry[]> => await store.listAudit(0, 1000)

/** Applies changes on behalf of `operator`. */
export async function applyBy(store: Store, ...changes: Change[]): Promise<boolean> {
  return await store.apply(changes, (await store.revision()).facts, operator)
}

/** The recorded state of a partner or key, parsed. */
export function snapshotOf(of: Partner | Key): unknown {
  const { digest, lastUsedAt: _, contact: _c, note: _n, ...shown } = of as Partial<Key & Partner>
  const digestHash = digest === undefined ? {} : { digestHash: sha256(digest) }
  const { tags, selfService } = shown
  const noted = {
    tags: tags?.length ? tags : undefined,
    selfService: selfService?.length ? selfService : undefined,
  }
  return JSON.parse(JSON.stringify({ ...shown, ...digestHash, ...noted }))
}

/** An entry with its states parsed, without id and hash, which the store generates. */
function readEntry({ id: _id, hash: _hash, before, after, ...entry }: AuditEntry) {
  return {
    ...entry,
    before: before === undefined ? undefined : JSON.parse(before),
    after: after === undefined ? undefined : JSON.parse(after),
  }
}

export async function lastEntry(store: Store): Promise<ReturnType<typeof readEntry>> {
  const { sequence } = await store.auditHead()
  return readEntry((await store.listAudit(sequence - 1, 10)).at(-1)!)
}

/** The audit log. */
export async function auditContract(checkStore: Check): Promise<void> {
  /** Also replays the log after each check, and compares the result with the stored facts. */
  const check: Check = (name, body) =>
    checkStore(name, async (t, store) => {
      await body(t, store)
      t.strictSame(
        (await verifyAuditLog(store)).differences,
        [],
        'a replay of the log yields the stored facts',
      )
    })

  await check('an empty audit log is intact', async (t, store) => {
    t.strictSame(await list(store), [])
    t.strictSame(await store.auditHead(), { sequence: 0, hash: '' })
    t.equal(await verifyChain(store, store.sha256), undefined)
  })

  await check('creations are recorded with the state created', async (t, store) => {
    const made = partner({ modules: ['banner'] })
    const issued = key({ scopes: ['read:banner'], lastUsedAt: T0 })
    await applyBy(store, { type: 'partner.created', partner: made }, { type: 'key.issued', key: issued })
    const absent = { subject: undefined, before: undefined, partner: 'acme', ...operator }
    t.strictSame((await list(store)).map(readEntry), [
      { sequence: 1, type: 'partner.created', keyId: undefined, after: snapshotOf(made), ...absent },
      { sequence: 2, type: 'key.issued', keyId: issued.id, after: snapshotOf(issued), ...absent },
    ])
  })

  await check(
    'the removal of a partner is followed by the revocations of its keys, oldest first',
    async (t, store) => {
      await createKeys(store, 'acme', 'globex')
      await apply(store, { type: 'key.issued', key: key({ id: 'gone', state: 'revoked' }) })
      await apply(store, { type: 'key.issued', key: key({ id: 'oldest', createdAt: T0 - 1 }) })
      const { sequence } = await store.auditHead()
      const newest = key({ id: 'newest', createdAt: T0 + 1 })
      await applyBy(store, { type: 'key.issued', key: newest }, { type: 'partner.removed', slug: 'acme' })
      const entries = await store.listAudit(sequence + 1, 100)
      t.strictSame(entries.map(({ type, keyId, partner }) => [type, keyId, partner]), [
        ['partner.removed', undefined, 'acme'],
        ['key.revoked', 'oldest', 'acme'],
        ['key.revoked', 'acme-live', 'acme'],
        ['key.revoked', 'acme-test', 'acme'],
        ['key.revoked', 'newest', 'acme'],
      ])
      for (const { keyId, before, after } of entries.slice(1)) {
        const { key: kept } = (await store.findKey(keyId!))!
        t.equal(kept.state, 'revoked')
        t.strictSame(JSON.parse(after!), snapshotOf(kept))
        t.strictSame(JSON.parse(before!), snapshotOf({ ...kept, state: 'active' }))
      }
      t.equal((await store.findKey('globex-live'))?.key.state, 'active')
      t.equal((await store.listPartners(undefined, 1000)).length, 2)
      t.ok(await fails(() => createPartners(store, 'acme')), 'the slug stays taken')
    },
  )

  await check('each change of a call records the state after the previous one', async (t, store) => {
    await createKeys(store, 'acme')
    const id = 'acme-live'
    await applyBy(
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

  await check('changes that fail or change nothing are not recorded', async (t, store) => {
    await createKeys(store, 'acme')
    await store.importContent('plans', [plan], { ...operator, now: T0 })
    const before = await list(store)
    const { facts } = await store.revision()
    const suspended: Change = { type: 'partner.suspended', slug: 'acme' }
    t.equal(await store.apply([suspended], `${facts}0`, operator), false)
    t.ok(await fails(() => applyBy(store, suspended, { type: 'key.revoked', id: 'nothing' })), 'it fails')
    t.ok(
      await fails(() =>
        applyBy(store, suspended, {
          type: 'key.rotated',
          id: 'acme-live',
          successorId: 'none',
          retiresAt: T0,
        })
      ),
      'the last change fails',
    )
    await store.importContent('plans', [{ ...plan, name: 'New' }], { ...operator, now: T0, dryRun: true })
    await store.importContent('plans', [plan], { ...operator, now: T0 })
    await store.importContent('plans', [], { ...operator, now: T0 })
    await store.removeContent('plans', ['nothing', plan.slug], operator)
    await store.removeContent('plans', [], operator)
    await store.recordKeyUses(new Map([['acme-live', T0 + 5]]))
    t.strictSame(await list(store), before)
    t.equal(await verifyChain(store, store.sha256), undefined)
  })

  await check('imports and removals of content are recorded by kind', async (t, store) => {
    const first = [industry('a'), industry('b'), industry('b', { name: 'Twice' })]
    await store.importContent('industries', first, { ...operator, now: operator.at })
    const absent = { partner: undefined, keyId: undefined, subject: 'industries' }
    const imported = { ...absent, ...operator, type: 'content.imported', before: undefined }
    t.strictSame(await lastEntry(store), {
      ...imported,
      sequence: 1,
      after: { kind: 'industries', created: 2, replaced: 1, slugs: ['a', 'b'] },
    })
    const more = [industry('a'), industry('b'), industry('c')]
    await store.importContent('industries', more, { ...operator, now: operator.at })
    t.strictSame(await lastEntry(store), {
      ...imported,
      sequence: 2,
      after: { kind: 'industries', created: 1, replaced: 1, slugs: ['b', 'c'] },
    }, 'unchanged records are not listed')
    await store.removeContent('industries', ['c', 'a', 'c'], operator)
    t.strictSame(await lastEntry(store), {
      ...absent,
      ...operator,
      type: 'content.removed',
      sequence: 3,
      before: { kind: 'industries', slugs: ['c', 'a'] },
      after: undefined,
    })
    const many = Array.from({ length: 150 }, (_, index) => industry(`i${index}`))
    await store.importContent('industries', many, { ...operator, now: operator.at })
    t.strictSame((await lastEntry(store)).after, {
      kind: 'industries',
      created: 150,
      replaced: 0,
      slugs: many.slice(0, 100).map(({ slug }) => slug),
    })
    await createPartners(store, 'acme')
    await store.importContent('banners', [banner], { ...operator, now: operator.at })
    t.strictSame((await lastEntry(store)).after, {
      kind: 'banners',
      created: 1,
      replaced: 0,
      slugs: ['acme'],
    })
    t.equal(await verifyChain(store, store.sha256), undefined)
  })

  await check(
    'the audit log has no gaps, a hash for each entry, and pages of any size',
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
      t.equal(new Set(entries.map(({ id }) => id)).size, 26, 'ids are unique')
      t.equal(new Set(entries.map(({ hash }) => hash)).size, 26)
      t.ok(entries.every(({ hash }) => /^[0-9a-f]{64}$/.test(hash)), 'hashes are SHA-256')
      t.strictSame(await store.auditHead(), { sequence: 26, hash: entries[25]!.hash })
      t.equal(await verifyChain(store, store.sha256), undefined)
      const lastEntries = async (count: number, partner?: string) =>
        await store.listAudit(await store.auditTail(count, partner), count, partner)
      for (const partner of ['acme', 'globex', 'missing', undefined]) {
        const wanted = entries.filter((entry) => partner === undefined || entry.partner === partner)
        for (const limit of [1, 3, 23, 26, 27]) {
          const pages = readRows<AuditEntry>(
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
        t.strictSame(
          rest,
          wanted.filter(({ sequence }) => sequence > 5),
          `${partner}, after the entry of another partner`,
        )
        t.equal(await store.auditTail(wanted.length, partner), -Infinity, 'there are no earlier entries')
      }
      t.equal(JSON.stringify(entries).includes(key().digest), false, 'the log contains no digest')
      t.strictSame(entries[0]!.actor, stamp.actor)
    },
  )
}
