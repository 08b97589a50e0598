/** What an administrative change leaves in the audit log. */
import type { Sha256 } from '../lib/digest.ts'
import { drawId } from '../lib/ids.ts'
import type { Key, ModuleDefinition, Partner } from '../model.ts'
import type { AuditEntry, AuditHead } from '../ports/audit.ts'
import type { AuditContext, Change, Claim } from '../ports/changes.ts'
import type { ContentKind, ImportReport } from '../ports/content.ts'
import type { Webhook } from '../ports/webhooks.ts'

/** An audit entry before it is chained. */
export type AuditRecord = Pick<AuditEntry, 'type' | 'partner' | 'keyId' | 'subject' | 'before' | 'after'>

/** Details of a partner whose values no entry has: one that changed is named as the subject. */
const privateDetails = ['contact', 'note'] as const

export function partnerAuditRecord(
  change: Exclude<Change, { type: 'module.defined' | 'store.updated' }>,
  before: Partner | undefined,
  after: Partner,
): AuditRecord {
  return {
    type: change.type,
    partner: after.slug,
    keyId: undefined,
    subject: 'module' in change
      ? change.module
      : privateDetails.filter((name) => before?.[name] !== after[name]).join(' ') || undefined,
    before: before && partnerSnapshot(before),
    after: partnerSnapshot(after),
  }
}

export function keyAuditRecord(
  change: Change,
  before: Key | undefined,
  after: Key,
  sha256: Sha256,
): AuditRecord {
  return {
    type: change.type,
    partner: after.partner,
    keyId: after.id,
    subject: 'scope' in change ? change.scope : undefined,
    before: before && keySnapshot(before, sha256),
    after: keySnapshot(after, sha256),
  }
}

export function moduleAuditRecord(
  type: 'module.defined' | 'module.forgotten',
  before: ModuleDefinition | undefined,
  after: ModuleDefinition | undefined,
): AuditRecord {
  const [old, current] = [before, after].map((module) => module && moduleSnapshot(module))
  return auditRecord(type, (after ?? before)!.name, old, current)
}

/** The setting is kept in its entries alone, which `audit verify` checks. */
export function storeAuditRecord(change: Extract<Change, { type: 'store.updated' }>): AuditRecord {
  const [before, after] = [change.before, change.after].map((ms) => JSON.stringify({ maxKeyLifetimeMs: ms }))
  return auditRecord(change.type, undefined, before, after)
}

/**
 * How a restore treated what the replaced store refuses: it refuses it, too; it accepts it, because the operator
 * has chosen that; or it could not know it.
 */
export type RestoreMode = 'narrowed' | 'as_backed_up' | 'unknown'

/** @param replaced The end of the log of the replaced store; `undefined` without one that can be read. */
export function restoreAuditRecord(
  replaced: AuditHead | undefined,
  backup: AuditHead,
  mode: RestoreMode,
): AuditRecord {
  const before = replaced && JSON.stringify(replaced)
  return auditRecord('store.restored', undefined, before, JSON.stringify({ ...backup, mode }))
}

export function claimAuditRecord(type: AuditRecord['type'], after: Claim, sha256: Sha256): AuditRecord {
  const open = claimSnapshot({ ...after, state: 'open', keyId: undefined }, sha256)
  const before = type === 'claim.created' ? undefined : open
  return { ...auditRecord(type, after.id, before, claimSnapshot(after, sha256)), partner: after.partner }
}

/** @param slugs Of created or replaced records: not all of a large import. */
export function importAuditRecord(
  kind: ContentKind,
  { created, replaced }: ImportReport,
  slugs: Iterable<string>,
): AuditRecord {
  const after = JSON.stringify({ kind, created, replaced, slugs: [...slugs] })
  return auditRecord('content.imported', kind, undefined, after)
}

export function removalAuditRecord(kind: ContentKind, slugs: Iterable<string>): AuditRecord {
  return auditRecord('content.removed', kind, JSON.stringify({ kind, slugs: [...slugs] }), undefined)
}

/** @param partners Of each signup. There is no personal data. */
export function signupsAuditRecord(
  partners: readonly string[],
  deliveries: number,
  claims: number,
): AuditRecord {
  const [partner, ...others] = new Set(partners)
  const before = JSON.stringify({ signups: partners.length, deliveries, claims })
  const record = auditRecord('signups.deleted', undefined, before, undefined)
  return { ...record, partner: others.length === 0 ? partner : undefined }
}

/** A record that is about no partner or key. */
function auditRecord(
  type: AuditRecord['type'],
  subject: string | undefined,
  before: string | undefined,
  after: string | undefined,
): AuditRecord {
  return { type, partner: undefined, keyId: undefined, subject, before, after }
}

/** The entries of records, each with a hash over its predecessor. */
export function chainRecords(
  head: AuditHead,
  auditRecords: readonly AuditRecord[],
  { actor, at }: AuditContext,
  sha256: Sha256,
): AuditEntry[] {
  let previous = head
  return auditRecords.map((record) => {
    const unhashed = { ...record, sequence: previous.sequence + 1, id: drawId('act_'), actor, at }
    const entry: AuditEntry = { ...unhashed, hash: hashEntry(previous.hash, unhashed, sha256) }
    previous = entry
    return entry
  })
}

/** SHA-256 over the hash of the entry before, which is empty for the first entry, and every field of this one. */
export function hashEntry(
  previousHash: string,
  entry: Omit<AuditEntry, 'hash'>,
  sha256: Sha256,
): string {
  const { sequence, id, at, actor, type, partner, keyId, subject, before, after } = entry
  // A JSON array of numbers, strings and nulls is unambiguous. `undefined` becomes null, which is not ''.
  const optional = [partner, keyId, subject, before, after].map((value) => value ?? null)
  return sha256(JSON.stringify([previousHash, sequence, id, at, actor, type, ...optional]))
}

/**
 * The state of a partner in audit entries. Lists its members, and has later ones only where they are set, so that a new
 * member does not change old hashes.
 */
export function partnerSnapshot(partner: Partner): string {
  const { slug, name, state, modules, limits, createdAt, externalId } = partner
  const lists = { tags: unlessEmpty(partner.tags), selfService: unlessEmpty(partner.selfService) }
  return JSON.stringify({ slug, name, state, modules, limits, createdAt, externalId, ...lists })
}

function unlessEmpty<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list
}

/** The state of a module in audit entries. */
export function moduleSnapshot({ name, scope, feature }: ModuleDefinition): string {
  return JSON.stringify({ name, scope, feature })
}

/** The state of a webhook in audit entries, without its secrets and whether it fails. */
export function webhookSnapshot({ id, url, events, partner, state, createdAt }: Webhook): string {
  return JSON.stringify({ id, url, events, partner, state, createdAt })
}

/** The state of a claim in audit entries, with a hash of the digest like that of a key. */
export function claimSnapshot({ digest, ...claim }: Claim, sha256: Sha256): string {
  return JSON.stringify({ ...claim, draft: JSON.parse(claim.draft), digestHash: sha256(digest) })
}

/** The state of a key in audit entries. Has a hash of the digest, because entries are shown to operators. */
export function keySnapshot(key: Key, sha256: Sha256): string {
  return JSON.stringify({
    id: key.id,
    partner: key.partner,
    name: key.name,
    environment: key.environment,
    hint: key.hint,
    state: key.state,
    scopes: key.scopes,
    allow: key.allow,
    limits: key.limits,
    createdAt: key.createdAt,
    expiresAt: key.expiresAt,
    retiresAt: key.retiresAt,
    predecessorId: key.predecessorId,
    successorId: key.successorId,
    digestHash: sha256(key.digest),
    owner: key.owner,
    tags: unlessEmpty(key.tags),
  })
}
