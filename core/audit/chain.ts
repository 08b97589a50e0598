import type { AuditTrail } from '../ports.ts'
import { type AuditEntry, type AuditHead, EMPTY_TRAIL } from './entry.ts'

/** Entries that are read at a time. */
const step = 500

/**
 * The seal of an entry: SHA-256 over the seal of the entry before and every field of this one.
 *
 * @param previousSeal Empty for the first entry.
 * @param sha256 SHA-256 of the UTF-8 bytes of a text, 64 lower-case hexadecimal digits.
 */
export function sealEntry(
  previousSeal: string,
  entry: Omit<AuditEntry, 'seal'>,
  sha256: (text: string) => string,
): string {
  const { sequence, id, at, actor, type, partner, keyId, subject, before, after } = entry
  // A JSON array of numbers, strings and nulls: two lists that differ have texts that differ. Absent is not empty.
  const optional = [partner, keyId, subject, before, after].map((value) => value ?? null)
  return sha256(JSON.stringify([previousSeal, sequence, id, at, actor, type, ...optional]))
}

/**
 * Looks for the first entry that is not as it was written: changed, missing, moved, repeated, added behind the store's
 * back, or cut off at the end. Whoever can write the whole store can also write the whole trail anew: against that
 * helps only a copy of a seal kept elsewhere.
 *
 * @param verified Called with each entry that is as it was written, in order.
 * @returns The sequence at which the trail is broken, `undefined` when it is whole.
 */
export async function verifyAudit(
  trail: Pick<AuditTrail, 'auditHead' | 'listAudit'>,
  sha256: (text: string) => string,
  verified: (entry: AuditEntry) => void = () => undefined,
): Promise<number | undefined> {
  let last: AuditHead = EMPTY_TRAIL
  // Nothing may stand in front of the first entry, however far.
  let after = -Infinity
  for (;;) {
    // Before the entries: those that are written meanwhile come after it, and never too few.
    const head = await trail.auditHead()
    const entries = await trail.listAudit(after, step)
    for (const entry of entries) {
      const expected = last.sequence + 1
      if (entry.sequence !== expected || entry.seal !== sealEntry(last.seal, entry, sha256)) return expected
      last = entry
      after = entry.sequence
      verified(entry)
    }
    if (entries.length > 0) continue
    if (head.sequence === last.sequence) {
      return head.seal === last.seal ? undefined : Math.max(1, head.sequence)
    }
    return Math.min(head.sequence, last.sequence) + 1
  }
}
