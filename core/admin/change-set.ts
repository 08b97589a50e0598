/** The rules of administrative changes: what each does to partners and keys, and what it adds to the audit log. */
import {
  type AuditRecord,
  claimAuditRecord,
  keyAuditRecord,
  moduleAuditRecord,
  partnerAuditRecord,
  storeAuditRecord,
} from '../audit/records.ts'
import type { Sha256 } from '../lib/digest.ts'
import { compareCodePoints } from '../lib/text.ts'
import {
  inContractOrder,
  type Key,
  type Module,
  MODULE_NAMES,
  type ModuleDefinition,
  type Partner,
  SCOPES,
} from '../model.ts'
import type { Change, Claim, DigestScheme } from '../ports/changes.ts'
import { AdminError } from './error.ts'

/** What the changes refer to, as it is before them. */
export interface StoredFacts {
  /** The partners, by slug. */
  readonly partners: ReadonlyMap<string, Partner>
  /** The keys, by id, with the unrevoked ones of a partner to be removed and the holders of a scope to be forgotten. */
  readonly keys: ReadonlyMap<string, Key>
  /** The modules that the operator has defined, by name. */
  readonly modules: ReadonlyMap<Module, ModuleDefinition>
}

/** The records that changes write, as they are to be stored, with their audit records. */
export interface AppliedChanges {
  /** The changed partners, by slug, as they are to be written. */
  readonly partners: ReadonlyMap<string, Partner>
  /** The changed keys by id. */
  readonly keys: ReadonlyMap<string, Key>
  /** The changed claims. */
  readonly claims: readonly Claim[]
  /** The digest schemes of imported keys, each once. */
  readonly schemes: readonly DigestScheme[]
  /** Modules by name as they are to be written; `undefined` for one that is to be removed. */
  readonly modules: ReadonlyMap<Module, ModuleDefinition | undefined>
  readonly auditRecords: readonly AuditRecord[]
}

/**
 * Applies changes in order, and writes nothing.
 *
 * @throws {AdminError} `refused` when a change refers to a missing partner or key, or creates an existing one: then the
 * rules were checked against other facts.
 */
export function applyChanges(
  stored: StoredFacts,
  changes: readonly Change[],
  sha256: Sha256,
): AppliedChanges {
  const changeSet = createChangeSet(stored, sha256)
  const auditRecords = changes.flatMap((change) => applyChange(changeSet, change))
  // Last, because a successor may be issued after the rotation that names it.
  for (const change of changes) {
    if (change.type === 'key.rotated') {
      requireExisting(changeSet.findKey(change.successorId), change, `key ${change.successorId}`)
    }
  }
  const schemes = changes.flatMap((change) => change.type === 'key.issued' ? change.scheme ?? [] : [])
  return {
    partners: changeSet.partners,
    keys: changeSet.keys,
    claims: changes.flatMap((change) => 'claim' in change ? change.claim : []),
    modules: changeSet.modules,
    schemes: [...new Map(schemes.map((scheme) => [scheme.id, scheme])).values()],
    auditRecords,
  }
}

/** Changes after which a partner or a key is refused, on which an operator relies as soon as they are reported. */
const endsAccess: ReadonlySet<AuditRecord['type']> = new Set<AuditRecord['type']>([
  'partner.suspended',
  'partner.removed',
  'key.disabled',
  'key.revoked',
])

/** The slugs of the partners, and the ids of the keys, whose access changes have ended. */
export function endedAccess({ auditRecords }: Pick<AppliedChanges, 'auditRecords'>) {
  const slugs: string[] = []
  const ids: string[] = []
  for (const { type, partner, keyId } of auditRecords) {
    if (!endsAccess.has(type)) continue
    if (keyId === undefined) slugs.push(partner!)
    else ids.push(keyId)
  }
  return { slugs, ids }
}

/**
 * Compares the states of partners and keys whose access was ended, read back, with what was to be written.
 *
 * @throws {AdminError} `refused` when they differ: the operator would rely on a change that the database has reverted.
 */
export function requireEndsKept(
  { partners, keys }: Pick<AppliedChanges, 'partners' | 'keys'>,
  written: Pick<StoredFacts, 'partners' | 'keys'>,
): void {
  const partner = [...written.partners.values()].find(({ slug, state }) =>
    state !== partners.get(slug)?.state
  )
  const key = [...written.keys.values()].find(({ id, state }) => state !== keys.get(id)?.state)
  const lost = partner?.slug ?? key?.id
  if (lost === undefined) return
  throw new AdminError(
    'refused',
    `Nothing was changed: the database did not keep the change of ${lost}. A trigger or rule that this ` +
      'program did not create has reverted it.',
    { purpose: 'To find it', command: 'audit verify', args: [] },
  )
}

type ChangeSet = ReturnType<typeof createChangeSet>

/** Facts as the changes so far have left them. */
function createChangeSet(stored: StoredFacts, sha256: Sha256) {
  const partners = new Map<string, Partner>()
  const keys = new Map<string, Key>()
  const modules = new Map<Module, ModuleDefinition | undefined>()
  return {
    sha256,
    partners,
    keys,
    modules,
    findModule: (name: Module) => modules.has(name) ? modules.get(name) : stored.modules.get(name),
    findPartner: (slug: string) => partners.get(slug) ?? stored.partners.get(slug),
    findKey: (id: string) => keys.get(id) ?? stored.keys.get(id),
    /** Oldest first, then by id. */
    selectKeys: (isSelected: (key: Key) => boolean) =>
      [...new Map([...stored.keys, ...keys]).values()].filter(isSelected).sort(oldestFirst),
  }
}

/** Orders keys and claims as lists show them. */
export function oldestFirst(a: Pick<Key, 'createdAt' | 'id'>, b: Pick<Key, 'createdAt' | 'id'>): number {
  return a.createdAt - b.createdAt || compareCodePoints(a.id, b.id)
}

function applyChange(changeSet: ChangeSet, change: Change): AuditRecord[] {
  if (change.type === 'partner.created') {
    const { slug, modules } = change.partner
    requireAbsent(changeSet.findPartner(slug), change, `partner ${slug}`)
    const after = { ...change.partner, modules: inContractOrder(MODULE_NAMES, modules) }
    changeSet.partners.set(after.slug, after)
    return [partnerAuditRecord(change, undefined, after)]
  }
  if (change.type === 'key.issued') {
    const { id, partner, scopes } = change.key
    requireExisting(changeSet.findPartner(partner), change, `partner ${partner}`)
    requireAbsent(changeSet.findKey(id), change, `key ${id}`)
    const after = { ...change.key, scopes: inContractOrder(SCOPES, scopes) }
    changeSet.keys.set(after.id, after)
    return [keyAuditRecord(change, undefined, after, changeSet.sha256)]
  }
  if (change.type === 'store.updated') return [storeAuditRecord(change)]
  if (change.type === 'module.defined') {
    const { module } = change
    requireAbsent(changeSet.findModule(module.name), change, `module ${module.name}`)
    changeSet.modules.set(module.name, module)
    return [moduleAuditRecord(change.type, undefined, module)]
  }
  if (change.type === 'module.forgotten') {
    const module = requireExisting(changeSet.findModule(change.name), change, `module ${change.name}`)
    changeSet.modules.set(module.name, undefined)
    const { scope } = module
    const removed = changeSet.selectKeys(({ scopes }) => scopes.includes(scope))
      .flatMap(({ id }) => applyChange(changeSet, { type: 'scope.removed', id, scope }))
    return [...removed, moduleAuditRecord(change.type, module, undefined)]
  }
  if ('claim' in change) return [claimAuditRecord(change.type, change.claim, changeSet.sha256)]
  if ('slug' in change) {
    const before = requireExisting(changeSet.findPartner(change.slug), change, `partner ${change.slug}`)
    const after = changedPartner(before, change)
    changeSet.partners.set(after.slug, after)
    const revoked = change.type === 'partner.removed' ? revokeKeys(changeSet, change.slug) : []
    return [partnerAuditRecord(change, before, after), ...revoked]
  }
  const before = requireExisting(changeSet.findKey(change.id), change, `key ${change.id}`)
  if ('ifUnused' in change && before.lastUsedAt !== undefined) {
    throw new AdminError('key_rotated', `Key ${change.id} was used, and is not replaced.`)
  }
  const after = changedKey(before, change)
  changeSet.keys.set(after.id, after)
  return [keyAuditRecord(change, before, after, changeSet.sha256)]
}

function revokeKeys(changeSet: ChangeSet, partner: string): AuditRecord[] {
  return changeSet.selectKeys((key) => key.partner === partner && key.state !== 'revoked')
    .flatMap(({ id }) => applyChange(changeSet, { type: 'key.revoked', id }))
}

function changedPartner(partner: Partner, change: Extract<Change, { slug: string }>): Partner {
  switch (change.type) {
    case 'partner.updated': {
      const { name, limits, contact, tags, externalId, note, selfService } = change
      return { ...partner, name, limits, contact, tags, externalId, note, selfService }
    }
    case 'partner.suspended':
      return { ...partner, state: 'suspended' }
    case 'partner.resumed':
      return { ...partner, state: 'active' }
    case 'partner.removed':
      return { ...partner, state: 'removed' }
    case 'module.activated':
      return { ...partner, modules: inContractOrder(MODULE_NAMES, [...partner.modules, change.module]) }
    case 'module.deactivated':
      return { ...partner, modules: partner.modules.filter((module) => module !== change.module) }
  }
}

function changedKey(key: Key, change: Extract<Change, { id: string }>): Key {
  switch (change.type) {
    case 'key.rotated': {
      const { successorId, retiresAt, ended } = change
      return { ...key, successorId, retiresAt, state: ended ? 'retired' : key.state }
    }
    case 'key.updated': {
      const { name, allow, limits, expiresAt, owner, tags } = change
      return { ...key, name, allow, limits, expiresAt, owner, tags }
    }
    case 'key.disabled':
      return { ...key, state: 'disabled' }
    case 'key.enabled':
      return { ...key, state: 'active' }
    case 'key.revoked':
      return { ...key, state: 'revoked' }
    case 'scope.granted':
      return { ...key, scopes: inContractOrder(SCOPES, [...key.scopes, change.scope]) }
    case 'scope.removed':
      return { ...key, scopes: key.scopes.filter((scope) => scope !== change.scope) }
  }
}

function requireExisting<T>(found: T | undefined, change: Change, what: string): T {
  if (found !== undefined) return found
  throw new AdminError('refused', `${change.type} cannot be applied: there is no ${what}.`)
}

function requireAbsent(found: unknown, change: Change, what: string): void {
  if (found === undefined) return
  throw new AdminError('refused', `${change.type} cannot be applied: there is a ${what} already.`)
}
