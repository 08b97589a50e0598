import type { Key, Partner } from '../model.ts'
import { type AuditEntry, type AuditHead, type AuditLog, EMPTY_AUDIT_HEAD } from '../ports/audit.ts'

/** Entries that are read at a time. */
const pageSize = 500

/**
 * The seal of an entry: SHA-256 over the seal of the entry before and every field of this one.
 *
 * @param previousHash Empty for the first entry.
 * @param sha256 SHA-256 of the UTF-8 bytes of a text, 64 lower-case hexadecimal digits.
 */
export function hashEntry(
  previousHash: string,
  entry: Omit<AuditEntry, 'hash'>,
  sha256: (text: string) => string,
): string {
  const { sequence, id, at, actor, type, partner, keyId, subject, before, after } = entry
  // A JSON array of numbers, strings and nulls: two lists that differ have texts that differ. Absent is not empty.
  const optional = [partner, keyId, subject, before, after].map((value) => value ?? null)
  return sha256(JSON.stringify([previousHash, sequence, id, at, actor, type, ...optional]))
}

/**
 * Looks for the first entry that is not as it was written: changed, missing, moved, repeated, added behind the store's
 * back, or cut off at the end. Whoever can write the whole store can also write the whole trail anew: against that
 * helps only a copy of a seal kept elsewhere.
 *
 * @param verified Called with each entry that is as it was written, in order.
 * @returns The sequence at which the trail is broken, `undefined` when it is whole.
 */
export async function verifyChain(
  log: Pick<AuditLog, 'auditHead' | 'listAudit'>,
  sha256: (text: string) => string,
  verified: (entry: AuditEntry) => void = () => undefined,
): Promise<number | undefined> {
  let last: AuditHead = EMPTY_AUDIT_HEAD
  // Nothing may stand in front of the first entry, however far.
  let after = -Infinity
  for (;;) {
    // Before the entries: those that are written meanwhile come after it, and never too few.
    const head = await log.auditHead()
    const entries = await log.listAudit(after, pageSize)
    for (const entry of entries) {
      const expected = last.sequence + 1
      if (entry.sequence !== expected || entry.hash !== hashEntry(last.hash, entry, sha256)) return expected
      last = entry
      after = entry.sequence
      verified(entry)
    }
    if (entries.length > 0) continue
    if (head.sequence === last.sequence) {
      return head.hash === last.hash ? undefined : Math.max(1, head.sequence)
    }
    return Math.min(head.sequence, last.sequence) + 1
  }
}

/** What audit entries say of partners and keys: the texts that a replay compares with what is stored. */

/** Member by member, in a fixed order: a new member of partners does not end up here by itself. */
export function partnerSnapshot({ slug, name, state, modules, limits, createdAt }: Partner): string {
  return JSON.stringify({ slug, name, state, modules, limits, createdAt })
}

/** Without the digest, for entries are shown to people: its hash tells whether it is still the same. */
export function keySnapshot(key: Key, sha256: (text: string) => string): string {
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
    successorId: key.successorId,
    digestHash: sha256(key.digest),
  })
}
