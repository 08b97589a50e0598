import type { Change } from '../admin/changes.ts'

/** Who decided a change, and when. */
export interface Stamp {
  /** An operator's name: the user of the operating system unless one was given. 1–200 characters. */
  readonly actor: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** What an entry of the audit trail is about. Changes of content are noted by kind, not record by record. */
export type AuditedType = Change['type'] | 'content.imported' | 'content.removed'

/** One entry of the audit trail. Each seals all before it. */
export interface AuditEntry extends Stamp {
  /** 1 for the first entry, and one more for each. */
  readonly sequence: number
  /** `act_` and 20 characters: what the activity report calls it. */
  readonly id: string
  /** What was decided. */
  readonly type: AuditedType
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
  readonly seal: string
}

/** Where the trail ends, kept apart from it: an end that was cut off is missed. */
export interface AuditHead {
  /** Of the last entry; 0 when there is none. */
  readonly sequence: number
  /** Of the last entry; empty when there is none. */
  readonly seal: string
}

/** The head of a trail without entries. */
export const EMPTY_TRAIL: AuditHead = { sequence: 0, seal: '' }
