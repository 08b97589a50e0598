import type { Key, Partner } from '../model.ts'
import { type AuditEntry, type AuditHead, type AuditLog, EMPTY_AUDIT_HEAD } from '../ports/audit.ts'
import type { Webhook } from '../ports/webhooks.ts'

const pageSize = 500

/** SHA-256 over the hash of the entry before, which is empty for the first entry, and every field of this one. */
export function hashEntry(
  previousHash: string,
  entry: Omit<AuditEntry, 'hash'>,
  sha256: (text: string) => string,
): string {
  const { sequence, id, at, actor, type, partner, keyId, subject, before, after } = entry
  // A JSON array of numbers, strings and nulls is unambiguous. `undefined` becomes null, which is not ''.
  const optional = [partner, keyId, subject, before, after].map((value) => value ?? null)
  return sha256(JSON.stringify([previousHash, sequence, id, at, actor, type, ...optional]))
}

/**
 * Finds the first entry that was changed, removed, moved, repeated, added outside of the service, or cut off at the
 * end. An attacker who can write the whole store can rewrite the whole log: only a seal stored elsewhere reveals that.
 *
 * @param verified Called with each intact entry, in order.
 * @returns The sequence at which the log is broken; `undefined` for an intact log.
 */
export async function verifyChain(
  log: Pick<AuditLog, 'auditHead' | 'listAudit'>,
  sha256: (text: string) => string,
  verified: (entry: AuditEntry) => void = () => undefined,
): Promise<number | undefined> {
  let last: AuditHead = EMPTY_AUDIT_HEAD
  // Also finds rows inserted before the first entry.
  let after = -Infinity
  for (;;) {
    // Read before each page, so that entries written meanwhile never look cut off: `readPages` cannot do that.
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

/** The state of a partner in audit entries. Lists its members, so that a new member does not change old hashes. */
export function partnerSnapshot({ slug, name, state, modules, limits, createdAt }: Partner): string {
  return JSON.stringify({ slug, name, state, modules, limits, createdAt })
}

/** The state of a webhook in audit entries, without its secrets and whether it fails. */
export function webhookSnapshot({ id, url, events, partner, state, createdAt }: Webhook): string {
  return JSON.stringify({ id, url, events, partner, state, createdAt })
}

/** The state of a key in audit entries. Has a hash of the digest, because entries are shown to operators. */
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
