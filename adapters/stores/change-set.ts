/** How administrative changes are applied, one after the other: the part that all stores share. */
import { compareCodePoints } from '../../core/lib/text.ts'
import type { Key, Partner } from '../../core/model.ts'
import { type Module, MODULE_NAMES, type Scope, SCOPES } from '../../core/policy/modules.ts'
import type { Change } from '../../core/ports/changes.ts'
import { type AuditRecord, keyAuditRecord, partnerAuditRecord, revocationAuditRecord } from './audit-log.ts'
import { StoreError } from './store-error.ts'

/** Partners and keys as the changes so far have made them. Nothing of it is there for others yet. */
export interface ChangeSet {
  findPartner(slug: string): Partner | undefined
  findKey(id: string): Key | undefined
  /** The keys of a partner that are not revoked, oldest first, then by id. */
  listUnrevokedKeys(partner: string): readonly Key[]
  putPartner(partner: Partner): void
  putKey(key: Key): void
}

/**
 * Applies changes in order to a draft, which is of no use any more when one of them throws.
 *
 * @returns What the audit trail is to say of them.
 * @throws {StoreError} `refused` when a change needs what is not there, or makes what is there.
 */
export function applyChanges(changeSet: ChangeSet, changes: readonly Change[]): AuditRecord[] {
  const auditRecords = changes.flatMap((change) => applyChange(changeSet, change))
  // Last, because the successor may be issued after the rotation that names it.
  for (const change of changes) {
    if (change.type !== 'key.rotated') continue
    requireExisting(changeSet.findKey(change.successorId), change, 'key', change.successorId)
  }
  return auditRecords
}

/** The order in which keys are listed. */
export function oldestFirst(a: Pick<Key, 'createdAt' | 'id'>, b: Pick<Key, 'createdAt' | 'id'>): number {
  return a.createdAt - b.createdAt || compareCodePoints(a.id, b.id)
}

function applyChange(changeSet: ChangeSet, change: Change): AuditRecord[] {
  if (change.type === 'partner.created') {
    requireAbsent(changeSet.findPartner(change.partner.slug), change, 'partner', change.partner.slug)
    const after = normalizePartner(change.partner)
    changeSet.putPartner(after)
    return [partnerAuditRecord(change, undefined, after)]
  }
  if (change.type === 'key.issued') {
    requireExisting(changeSet.findPartner(change.key.partner), change, 'partner', change.key.partner)
    requireAbsent(changeSet.findKey(change.key.id), change, 'key', change.key.id)
    const after = normalizeKey(change.key)
    changeSet.putKey(after)
    return [keyAuditRecord(change, undefined, after)]
  }
  if ('slug' in change) {
    const before = requireExisting(changeSet.findPartner(change.slug), change, 'partner', change.slug)
    const after = changedPartner(before, change)
    changeSet.putPartner(after)
    const revoked = change.type === 'partner.removed' ? revokeKeys(changeSet, change.slug) : []
    return [partnerAuditRecord(change, before, after), ...revoked]
  }
  const before = requireExisting(changeSet.findKey(change.id), change, 'key', change.id)
  const after = changedKey(before, change)
  changeSet.putKey(after)
  return [keyAuditRecord(change, before, after)]
}

function revokeKeys(changeSet: ChangeSet, partner: string): AuditRecord[] {
  return changeSet.listUnrevokedKeys(partner).map((before) => {
    const after: Key = { ...before, state: 'revoked' }
    changeSet.putKey(after)
    return revocationAuditRecord(before, after)
  })
}

/** A draft over facts that are at hand, which it leaves as they are. */
export interface BufferedChangeSet extends ChangeSet {
  /** Those that were put, as they were put last. */
  changedPartners(): Iterable<Partner>
  /** See `changedPartners`. */
  changedKeys(): Iterable<Key>
}

/** @param keys All keys of the partners that the changes remove are among them, but for revoked ones. */
export function createBufferedChangeSet(
  partners: ReadonlyMap<string, Partner>,
  keys: ReadonlyMap<string, Key>,
): BufferedChangeSet {
  const changedPartners = new Map<string, Partner>()
  const changedKeys = new Map<string, Key>()

  function* allKeys(): Iterable<Key> {
    for (const [id, key] of keys) if (!changedKeys.has(id)) yield key
    yield* changedKeys.values()
  }

  return {
    findPartner: (slug) => changedPartners.get(slug) ?? partners.get(slug),
    findKey: (id) => changedKeys.get(id) ?? keys.get(id),
    listUnrevokedKeys: (partner) =>
      [...allKeys()].filter((key) => key.partner === partner && key.state !== 'revoked').sort(oldestFirst),
    putPartner: (partner) => void changedPartners.set(partner.slug, partner),
    putKey: (key) => void changedKeys.set(key.id, key),
    changedPartners: () => changedPartners.values(),
    changedKeys: () => changedKeys.values(),
  }
}

/** What each administrative change makes of the facts: the part of applying it that all stores share. */

/** A change of a partner that exists. */
export type PartnerChange = Extract<Change, { slug: string }>

/** A change of a key that exists. */
export type KeyChange = Extract<Change, { id: string }>

/** The partner after a change of it. That its removal revokes its keys is the store's to do. */
export function changedPartner(partner: Partner, change: PartnerChange): Partner {
  switch (change.type) {
    case 'partner.updated':
      return { ...partner, name: change.name, limits: change.limits }
    case 'partner.suspended':
      return { ...partner, state: 'suspended' }
    case 'partner.resumed':
      return { ...partner, state: 'active' }
    case 'partner.removed':
      return { ...partner, state: 'removed' }
    case 'module.activated':
      return { ...partner, modules: modulesInOrder([...partner.modules, change.module]) }
    case 'module.deactivated':
      return { ...partner, modules: partner.modules.filter((module) => module !== change.module) }
  }
}

/** The key after a change of it. */
export function changedKey(key: Key, change: KeyChange): Key {
  switch (change.type) {
    case 'key.rotated':
      return {
        ...key,
        successorId: change.successorId,
        retiresAt: change.retiresAt,
        state: change.ended ? 'retired' : key.state,
      }
    case 'key.updated': {
      const { name, allow, limits, expiresAt } = change
      return { ...key, name, allow, limits, expiresAt }
    }
    case 'key.disabled':
      return { ...key, state: 'disabled' }
    case 'key.enabled':
      return { ...key, state: 'active' }
    case 'key.revoked':
      return { ...key, state: 'revoked' }
    case 'scope.granted':
      return { ...key, scopes: scopesInOrder([...key.scopes, change.scope]) }
    case 'scope.removed':
      return { ...key, scopes: key.scopes.filter((scope) => scope !== change.scope) }
  }
}

/** A new partner as it is kept: modules once each, in the contract's order. */
export function normalizePartner(partner: Partner): Partner {
  return { ...partner, modules: modulesInOrder(partner.modules) }
}

/** A new key as it is kept: scopes once each, in the specification's order. */
export function normalizeKey(key: Key): Key {
  return { ...key, scopes: scopesInOrder(key.scopes) }
}

/**
 * The partner or key that a change needs.
 *
 * @throws {StoreError} `refused` when there is none: the rules that let the change pass were applied to other facts.
 */
export function requireExisting<T>(
  found: T | undefined,
  change: Change,
  what: 'partner' | 'key',
  name: string,
): T {
  if (found !== undefined) return found
  throw new StoreError('refused', `${change.type} cannot be applied: there is no ${what} ${name}.`)
}

/** @throws {StoreError} `refused` when what a change would make is there already. */
export function requireAbsent(found: unknown, change: Change, what: 'partner' | 'key', name: string): void {
  if (found === undefined) return
  throw new StoreError('refused', `${change.type} cannot be applied: there is a ${what} ${name} already.`)
}

function modulesInOrder(modules: readonly Module[]): Module[] {
  return MODULE_NAMES.filter((module) => modules.includes(module))
}

function scopesInOrder(scopes: readonly Scope[]): Scope[] {
  return SCOPES.filter((scope) => scopes.includes(scope))
}
