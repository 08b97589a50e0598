/** What each administrative change makes of the facts: the part of applying it that all stores share. */
import type { Change } from '../../core/admin/changes.ts'
import type { Key, Partner } from '../../core/model.ts'
import { type Module, MODULE_NAMES } from '../../core/policy/modules.ts'
import { type Scope, SCOPES } from '../../core/policy/scopes.ts'
import { StoreError } from './store-error.ts'

/** A change of a partner that exists. */
export type PartnerChange = Extract<Change, { slug: string }>

/** A change of a key that exists. */
export type KeyChange = Extract<Change, { id: string }>

/** The partner after a change of it. That its removal revokes its keys is the store's to do. */
export function changedPartner(partner: Partner, change: PartnerChange): Partner {
  switch (change.type) {
    case 'partner.updated':
      return { ...partner, name: change.name, limits: change.limits }
    case 'partner.suspended':
      return { ...partner, state: 'suspended' }
    case 'partner.resumed':
      return { ...partner, state: 'active' }
    case 'partner.removed':
      return { ...partner, state: 'removed' }
    case 'module.activated':
      return { ...partner, modules: inOrder([...partner.modules, change.module]) }
    case 'module.deactivated':
      return { ...partner, modules: partner.modules.filter((module) => module !== change.module) }
  }
}

/** The key after a change of it. */
export function changedKey(key: Key, change: KeyChange): Key {
  switch (change.type) {
    case 'key.rotated':
      return {
        ...key,
        successorId: change.successorId,
        retiresAt: change.retiresAt,
        state: change.ended ? 'retired' : key.state,
      }
    case 'key.updated': {
      const { name, allow, limits, expiresAt } = change
      return { ...key, name, allow, limits, expiresAt }
    }
    case 'key.disabled':
      return { ...key, state: 'disabled' }
    case 'key.enabled':
      return { ...key, state: 'active' }
    case 'key.revoked':
      return { ...key, state: 'revoked' }
    case 'scope.granted':
      return { ...key, scopes: scopesInOrder([...key.scopes, change.scope]) }
    case 'scope.removed':
      return { ...key, scopes: key.scopes.filter((scope) => scope !== change.scope) }
  }
}

/** A new partner as it is kept: modules once each, in the contract's order. */
export function newPartner(partner: Partner): Partner {
  return { ...partner, modules: inOrder(partner.modules) }
}

/** A new key as it is kept: scopes once each, in the specification's order. */
export function newKey(key: Key): Key {
  return { ...key, scopes: scopesInOrder(key.scopes) }
}

/**
 * The partner or key that a change needs.
 *
 * @throws {StoreError} `refused` when there is none: the rules that let the change pass were applied to other facts.
 */
export function required<T>(found: T | undefined, change: Change, what: 'partner' | 'key', name: string): T {
  if (found !== undefined) return found
  throw new StoreError('refused', `${change.type} cannot be applied: there is no ${what} ${name}.`)
}

/** @throws {StoreError} `refused` when what a change would make is there already. */
export function absent(found: unknown, change: Change, what: 'partner' | 'key', name: string): void {
  if (found === undefined) return
  throw new StoreError('refused', `${change.type} cannot be applied: there is a ${what} ${name} already.`)
}

function inOrder(modules: readonly Module[]): Module[] {
  return MODULE_NAMES.filter((module) => modules.includes(module))
}

function scopesInOrder(scopes: readonly Scope[]): Scope[] {
  return SCOPES.filter((scope) => scopes.includes(scope))
}
