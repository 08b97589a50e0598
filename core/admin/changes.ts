/** Everything that an operator can decide about partners and keys, as facts that a store applies. */
import type { Key, LimitOverrides, Partner } from '../model.ts'
import type { Module } from '../policy/modules.ts'
import type { Scope } from '../policy/scopes.ts'

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
