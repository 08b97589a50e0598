import type { MaybePromise } from '../lib/promise.ts'
import type { AuditContext, Change } from './changes.ts'

/** The trail of everything that operators did. */
export interface AuditLog {
  /**
   * Entries in the order of their sequence, from the one after `after` (0 for the first). Rows that somebody put there
   * past the store are among them; a number that no store counts to is infinite.
   *
   * @param partner Only entries about this partner, its modules and keys.
   */
  listAudit(after: number, limit: number, partner?: string): MaybePromise<readonly AuditEntry[]>

  /**
   * The position at which the last `count` entries begin, as `after` of `listAudit`; `-Infinity` when there are no others.
   */
  auditTail(count: number, partner?: string): MaybePromise<number>

  /** What the store noted of the last entry when it wrote it. */
  auditHead(): MaybePromise<AuditHead>

  /**
   * Names of triggers, rules and views that somebody added to the store, on whichever table: they may keep entries from
   * arriving, which no seal misses, and change what is written or read.
   */
  auditIntruders?(): MaybePromise<readonly string[]>
}

/** What an entry of the audit trail is about. Changes of content are noted by kind, not record by record. */
export type AuditEventType = Change['type'] | 'content.imported' | 'content.removed'

/** One entry of the audit trail. Each seals all before it. */
export interface AuditEntry extends AuditContext {
  /** 1 for the first entry, and one more for each. */
  readonly sequence: number
  /** `act_` and 20 characters: what the activity report calls it. */
  readonly id: string
  /** What was decided. */
  readonly type: AuditEventType
  /** The partner that it is about, or that owns the key that it is about. */
  readonly partner: string | undefined
  /** Public id of the key that it is about. */
  readonly keyId: string | undefined
  /** The scope or module that was granted, removed, activated or deactivated; the kind of content. */
  readonly subject: string | undefined
  /**
   * The state before and after as JSON text: of a key without its digest, but with `digestHash`, the SHA-256 of that;
   * `undefined` where there was or is none.
   */
  readonly before: string | undefined
  /** See `before`. */
  readonly after: string | undefined
  /** SHA-256 over the seal of the entry before and all of this one, 64 hexadecimal digits. */
  readonly hash: string
}

/** Where the trail ends, kept apart from it: an end that was cut off is missed. */
export interface AuditHead {
  /** Of the last entry; 0 when there is none. */
  readonly sequence: number
  /** Of the last entry; empty when there is none. */
  readonly hash: string
}

/** The head of a trail without entries. */
export const EMPTY_AUDIT_HEAD: AuditHead = { sequence: 0, hash: '' }
