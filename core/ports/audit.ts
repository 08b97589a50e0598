import type { MaybePromise } from '../lib/promise.ts'
import type { AuditContext, Change } from './changes.ts'
import type { WebhookChangeType } from './webhooks.ts'

/** The log of all administrative changes. */
export interface AuditLog {
  /**
   * Entries in the order of their sequence, from the one after `after` (0 for the first), rows that were added
   * outside of the service included. A sequence beyond the safe integers is infinite.
   *
   * @param partner Only entries about this partner, its modules and keys.
   */
  listAudit(after: number, limit: number, partner?: string): MaybePromise<readonly AuditEntry[]>

  /** The `after` of `listAudit` for the last `count` entries; `-Infinity` when there are no others. */
  auditTail(count: number, partner?: string): MaybePromise<number>

  /** The head as stored when the last entry was written. */
  auditHead(): MaybePromise<AuditHead>

  /**
   * Names of triggers, rules and views that were added to the store, on any table. They can suppress entries without
   * breaking the chain, and change what is written or read.
   */
  auditIntruders(): MaybePromise<readonly string[]>
}

/** The type of an audit entry. Changes of content and of signups have one entry, not one for each record. */
export type AuditEventType =
  | Change['type']
  | WebhookChangeType
  | 'content.imported'
  | 'content.removed'
  | 'signups.deleted'
  /** The heads of the logs of the replaced store and of the backup; the entries of what it narrowed stand before it. */
  | 'store.restored'

/** One entry of the audit log. Its hash covers all entries before it. */
export interface AuditEntry extends AuditContext {
  /** 1 for the first entry, and one more for each. */
  readonly sequence: number
  /** `act_` and 20 characters, as in the activity report. */
  readonly id: string
  /** The kind of change. */
  readonly type: AuditEventType
  /** The partner, or the owner of the key, that was changed. */
  readonly partner: string | undefined
  /** Public id of the key that was changed. */
  readonly keyId: string | undefined
  /**
   * The scope or module that was granted, removed, activated or deactivated; the kind of content; a webhook;
   * `contact` or `note` of a partner, whose values are in no entry.
   */
  readonly subject: string | undefined
  /**
   * The state before and after as JSON text. That of a key has `digestHash`, the SHA-256 of its digest, and not the
   * digest. `undefined` where the partner or key does not exist.
   */
  readonly before: string | undefined
  /** The state after the change, see `before`. */
  readonly after: string | undefined
  /** SHA-256 over the hash of the entry before and all of this one, 64 hexadecimal digits. */
  readonly hash: string
}

/** The end of the log, stored separately so that a truncated log is noticed. */
export interface AuditHead {
  /** The sequence of the last entry; 0 when there is none. */
  readonly sequence: number
  /** The hash of the last entry; empty when there is none. */
  readonly hash: string
}

/** The head of an empty log. */
export const EMPTY_AUDIT_HEAD: AuditHead = { sequence: 0, hash: '' }
