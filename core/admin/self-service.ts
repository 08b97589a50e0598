/** What a partner may do with its own keys. */
import { assertOptions } from '../lib/options.ts'
import type { Key, KeyFacts, Modules } from '../model.ts'
import { type Administrator, createAdministrator, findKey, type Operator } from './apply.ts'
import {
  findReplaced,
  type KeyStore,
  planSuccessor,
  revocationChanges,
  type RotatedKey,
  ROTATION_OPTIONS,
  showKey,
} from './key-plans.ts'
import type { KeyAdministration } from './keys.ts'
import { limitChain, rotatedError, type RotationOptions } from './rotation.ts'

/** How a partner changes a key of its own. */
export interface SelfServiceRules {
  /** Checks the request again by the facts under which the change is made. @throws what refuses it. */
  recheck(facts: KeyFacts, modules: Modules): void
  /** Whether a use of a key is known that the store may lack. */
  isUsed(id: string): boolean
}

/** Administers a key as its partner may: rotations and revocations. */
export function createSelfService(
  store: KeyStore,
  operator: Operator,
  rules: SelfServiceRules,
): Pick<KeyAdministration, 'rotate' | 'revoke'> {
  const administrator: KeyAdministrator = { store, ...createAdministrator(store, operator) }
  return {
    rotate: (id, options = {}) => rotateBySelfService(administrator, rules, id, options),
    revoke: (id) => revokeBySelfService(administrator, rules, id),
  }
}

interface KeyAdministrator extends Administrator {
  readonly store: KeyStore
}

async function rotateBySelfService(
  { store, actor, now, applyPlan }: KeyAdministrator,
  { recheck, isUsed }: SelfServiceRules,
  id: string,
  options: RotationOptions,
): Promise<RotatedKey> {
  assertOptions('keys.rotate', options, ROTATION_OPTIONS)
  const { key, text, retiresAt } = await applyPlan(async (modules) => {
    const facts = await findKey(store, id)
    recheck(facts, modules)
    const former = await findReplaced(store, facts, options)
    if (former !== undefined) {
      const isOthers = isUsed(former.id) || await store.wasChangedByOthers(former.id, actor)
      if (isOthers) throw rotatedError(facts.key, former.id)
    }
    const plan = await planSuccessor({ store, modules, now: now() }, facts, former, options)
    return { ...plan, changes: await limitChain(store, facts.key, plan, isUsed) }
  })
  return { key, text, retiresAt }
}

async function revokeBySelfService(
  { store, apply }: KeyAdministrator,
  { recheck }: SelfServiceRules,
  id: string,
): Promise<Key> {
  await apply(async (modules) => {
    const facts = await findKey(store, id)
    recheck(facts, modules)
    return revocationChanges(facts)
  })
  return showKey(store, id)
}
