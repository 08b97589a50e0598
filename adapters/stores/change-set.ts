/** Applies administrative changes to partners and keys. All stores share these rules. */
import { compareCodePoints } from '../../core/lib/text.ts'
import type { Key, Partner } from '../../core/model.ts'
import { MODULE_NAMES, SCOPES } from '../../core/policy/modules.ts'
import type { Change } from '../../core/ports/changes.ts'
import { type AuditRecord, keyAuditRecord, partnerAuditRecord } from './audit-log.ts'
import { StoreError } from './store-error.ts'

/** Partners and keys as the changes so far have left them, not visible to others yet. */
export interface ChangeSet {
  findPartner(slug: string): Partner | undefined
  findKey(id: string): Key | undefined
  /** The unrevoked keys of a partner, oldest first, then by id. */
  listUnrevokedKeys(partner: string): readonly Key[]
  putPartner(partner: Partner): void
  putKey(key: Key): void
}

/**
 * Applies changes in order. When one throws, the change set is to be discarded.
 *
 * @returns The audit records of the changes.
 * @throws {StoreError} `refused` when a change refers to a missing partner or key, or creates an existing one: then the
 * rules were checked against other facts.
 */
export function applyChanges(changeSet: ChangeSet, changes: readonly Change[]): AuditRecord[] {
  const auditRecords = changes.flatMap((change) => applyChange(changeSet, change))
  // Last, because a successor may be issued after the rotation that names it.
  for (const change of changes) {
    if (change.type === 'key.rotated') {
      requireExisting(changeSet.findKey(change.successorId), change, `key ${change.successorId}`)
    }
  }
  return auditRecords
}

/** Orders keys as lists show them. */
export function oldestFirst(a: Pick<Key, 'createdAt' | 'id'>, b: Pick<Key, 'createdAt' | 'id'>): number {
  return a.createdAt - b.createdAt || compareCodePoints(a.id, b.id)
}

function applyChange(changeSet: ChangeSet, change: Change): AuditRecord[] {
  if (change.type === 'partner.created') {
    const { slug, modules } = change.partner
    requireAbsent(changeSet.findPartner(slug), change, `partner ${slug}`)
    const after = { ...change.partner, modules: inOrder(MODULE_NAMES, modules) }
    changeSet.putPartner(after)
    return [partnerAuditRecord(change, undefined, after)]
  }
  if (change.type === 'key.issued') {
    const { id, partner, scopes } = change.key
    requireExisting(changeSet.findPartner(partner), change, `partner ${partner}`)
    requireAbsent(changeSet.findKey(id), change, `key ${id}`)
    const after = { ...change.key, scopes: inOrder(SCOPES, scopes) }
    changeSet.putKey(after)
    return [keyAuditRecord(change, undefined, after)]
  }
  if ('slug' in change) {
    const before = requireExisting(changeSet.findPartner(change.slug), change, `partner ${change.slug}`)
    const after = changedPartner(before, change)
    changeSet.putPartner(after)
    const revoked = change.type === 'partner.removed' ? revokeKeys(changeSet, change.slug) : []
    return [partnerAuditRecord(change, before, after), ...revoked]
  }
  const before = requireExisting(changeSet.findKey(change.id), change, `key ${change.id}`)
  const after = changedKey(before, change)
  changeSet.putKey(after)
  return [keyAuditRecord(change, before, after)]
}

function revokeKeys(changeSet: ChangeSet, partner: string): AuditRecord[] {
  return changeSet.listUnrevokedKeys(partner)
    .flatMap(({ id }) => applyChange(changeSet, { type: 'key.revoked', id }))
}

function changedPartner(partner: Partner, change: Extract<Change, { slug: string }>): Partner {
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
      return { ...partner, modules: inOrder(MODULE_NAMES, [...partner.modules, change.module]) }
    case 'module.deactivated':
      return { ...partner, modules: partner.modules.filter((module) => module !== change.module) }
  }
}

function changedKey(key: Key, change: Extract<Change, { id: string }>): Key {
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
      return { ...key, scopes: inOrder(SCOPES, [...key.scopes, change.scope]) }
    case 'scope.removed':
      return { ...key, scopes: key.scopes.filter((scope) => scope !== change.scope) }
  }
}

function inOrder<Name>(all: readonly Name[], held: readonly Name[]): Name[] {
  return all.filter((name) => held.includes(name))
}

function requireExisting<T>(found: T | undefined, change: Change, what: string): T {
  if (found !== undefined) return found
  throw new StoreError('refused', `${change.type} cannot be applied: there is no ${what}.`)
}

function requireAbsent(found: unknown, change: Change, what: string): void {
  if (found === undefined) return
  throw new StoreError('refused', `${change.type} cannot be applied: there is a ${what} already.`)
}

export type BufferedChangeSet = ReturnType<typeof createBufferedChangeSet>

/**
 * A change set over partners and keys that are in memory already. It leaves both maps unchanged.
 *
 * @param keys Includes all unrevoked keys of the partners that the changes remove.
 */
export function createBufferedChangeSet(
  partners: ReadonlyMap<string, Partner>,
  keys: ReadonlyMap<string, Key>,
) {
  const changedPartners = new Map<string, Partner>()
  const changedKeys = new Map<string, Key>()

  const changeSet: ChangeSet = {
    findPartner: (slug) => changedPartners.get(slug) ?? partners.get(slug),
    findKey: (id) => changedKeys.get(id) ?? keys.get(id),
    listUnrevokedKeys: (partner) =>
      [...new Map([...keys, ...changedKeys]).values()]
        .filter((key) => key.partner === partner && key.state !== 'revoked')
        .sort(oldestFirst),
    putPartner: (partner) => void changedPartners.set(partner.slug, partner),
    putKey: (key) => void changedKeys.set(key.id, key),
  }
  return {
    ...changeSet,
    changedPartners: () => changedPartners.values(),
    changedKeys: () => changedKeys.values(),
  }
}
