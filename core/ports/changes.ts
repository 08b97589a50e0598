import type { MaybePromise } from '../lib/promise.ts'
import type { Key, LimitOverrides, Partner } from '../model.ts'
import type { Module, Scope } from '../policy/modules.ts'

/** Who decided a change, and when. */
export interface AuditContext {
  /** An operator's name: the user of the operating system unless one was given. 1–200 characters. */
  readonly actor: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Partners and keys as an operator sees and changes them. */
export interface Administration {
  /** Partners, removed ones included, by slug: at most `limit` of those after the slug `after`. */
  listPartners(after: string | undefined, limit: number): MaybePromise<readonly Partner[]>

  /** The partner with this slug, removed or not, or `undefined`. `slug` has the form of one. */
  findPartner(slug: string): MaybePromise<Partner | undefined>

  /** Keys of all partners or of one, oldest first, then by id; `after` is the last one seen. */
  listKeys(
    partner: string | undefined,
    after: Pick<Key, 'createdAt' | 'id'> | undefined,
    limit: number,
  ): MaybePromise<readonly Key[]>

  /**
   * Applies all changes or none, in order, in one transaction that also moves `Revision.facts` and notes each of them
   * in the audit trail; the removal of a partner is followed by an entry for each key that it revokes.
   *
   * @param ifFacts The revision under which the changes were decided.
   * @param context Who decided them, and when.
   * @returns false, with nothing applied, when the facts have been changed since.
   */
  apply(changes: readonly Change[], ifFacts: string, context: AuditContext): MaybePromise<boolean>
}

/** Everything that an operator can decide about partners and keys, as facts that a store applies. */

/**
 * One administrative change. It says what came to be, not what was asked for: the rules have been applied
 * by the time a store sees it.
 */
export type Change =
  | { readonly type: 'partner.created'; readonly partner: Partner }
  | {
    readonly type: 'partner.updated'
    readonly slug: string
    readonly name: string
    readonly limits: LimitOverrides
  }
  | { readonly type: 'partner.suspended'; readonly slug: string }
  | { readonly type: 'partner.resumed'; readonly slug: string }
  | { readonly type: 'partner.removed'; readonly slug: string }
  | { readonly type: 'module.activated'; readonly slug: string; readonly module: Module }
  | { readonly type: 'module.deactivated'; readonly slug: string; readonly module: Module }
  | { readonly type: 'key.issued'; readonly key: Key }
  | {
    readonly type: 'key.rotated'
    readonly id: string
    readonly successorId: string
    readonly retiresAt: number
    /** There is no overlap: it ends with this change, and not by any clock. */
    readonly ended?: boolean
  }
  | ({ readonly type: 'key.updated' } & Pick<Key, 'id' | 'name' | 'allow' | 'limits' | 'expiresAt'>)
  | { readonly type: 'key.disabled'; readonly id: string }
  | { readonly type: 'key.enabled'; readonly id: string }
  | { readonly type: 'key.revoked'; readonly id: string }
  | { readonly type: 'scope.granted'; readonly id: string; readonly scope: Scope }
  | { readonly type: 'scope.removed'; readonly id: string; readonly scope: Scope }
