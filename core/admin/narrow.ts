/** Narrows what a restored store allows to what the store that it replaces allows. */
import { intersectRanges } from '../lib/ip-address.ts'
import type { Key, Modules, Partner } from '../model.ts'
import type { Change } from '../ports/changes.ts'

/**
 * The changes after which a partner may do no more than in either store. What gives no access, such as its name and
 * limits, stays as it was in the backup.
 *
 * @param replaced The partner in the replaced store. A partner that it does not have is suspended: it refused its keys.
 * @param modules Those of the restored store.
 * @param others Those of the replaced one. A module that has another scope there is another module.
 */
export function narrowPartner(
  partner: Partner,
  replaced: Partner | undefined,
  modules: Modules,
  others: Modules,
): readonly Change[] {
  const { slug, state, selfService } = partner
  if (state === 'removed') return []
  if (replaced?.state === 'removed') return [{ type: 'partner.removed', slug }]
  const changes: Change[] = []
  if (state === 'active' && replaced?.state !== 'active') changes.push({ type: 'partner.suspended', slug })
  if (replaced === undefined) return changes
  for (const module of partner.modules) {
    const isActive = replaced.modules.includes(module) && modules.scopeOf(module) === others.scopeOf(module)
    if (!isActive) changes.push({ type: 'module.deactivated', slug, module })
  }
  const kept = selfService.filter((each) => replaced.selfService.includes(each))
  if (kept.length < selfService.length) {
    changes.push({ ...partner, type: 'partner.updated', selfService: kept })
  }
  return changes
}

/**
 * The changes after which a key is accepted only where both stores accept it. A key whose end in the
 * replaced store depends on no clock is revoked; without an address in common, it is disabled and has the
 * addresses of the replaced store.
 *
 * @param replaced The key in the replaced store. A key that it does not have, or has with another digest, is disabled:
 * keys are never deleted, so that the two stores were changed independently, and the replaced one refused it.
 */
export function narrowKey(key: Key, replaced: Key | undefined): readonly Change[] {
  const { id, state, allow, expiresAt } = key
  if (isFinal(key)) return []
  if (replaced?.digest !== key.digest) return state === 'active' ? [{ type: 'key.disabled', id }] : []
  if (isFinal(replaced)) return [{ type: 'key.revoked', id }]
  const changes: Change[] = []
  for (const scope of key.scopes) {
    if (!replaced.scopes.includes(scope)) changes.push({ type: 'scope.removed', id, scope })
  }
  const shared = intersectRanges(allow, replaced.allow)
  const allowed = shared ?? replaced.allow
  const replacedEnd = endOf(replaced)
  const end = replacedEnd < endOf(key) ? replacedEnd : expiresAt
  if (end !== expiresAt || allowed.join() !== allow.join()) {
    changes.push({ ...key, type: 'key.updated', allow: allowed, expiresAt: end })
  }
  const isDisabled = shared === undefined || replaced.state === 'disabled'
  if (isDisabled && state === 'active') changes.push({ type: 'key.disabled', id })
  return changes
}

/** The instant from which a key is not accepted. */
function endOf({ expiresAt = Infinity, retiresAt = Infinity }: Key): number {
  return Math.min(expiresAt, retiresAt)
}

/** Whether a key has ended whatever the clocks say. */
function isFinal({ state }: Pick<Key, 'state'>): boolean {
  return state === 'revoked' || state === 'retired'
}
