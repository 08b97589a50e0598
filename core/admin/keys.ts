import { assertOptions, type OptionKinds } from '../lib/options.ts'
import type { MaybePromise } from '../lib/promise.ts'
import { MAX_DURATION_MS } from '../lib/time.ts'
import { KEY_POLICY_NAMES } from '../limits/policies.ts'
import { type Key, type KeyDetails, type KeyFacts, NO_KEY_DETAILS } from '../model.ts'
import type { Change, KeyFilter } from '../ports/changes.ts'
import { readKeys } from '../ports/store.ts'
import { type Administrator, createAdministrator, findKey, findPartner, type Operator } from './apply.ts'
import { AdminError } from './error.ts'
import {
  disableChanges,
  enableChanges,
  issueChanges,
  type IssuedKey,
  type KeyChangeContext,
  type KeyStore,
  latestEnd,
  type NewKey,
  revocationChanges,
  type RotatedKey,
  rotationChanges,
  showKey,
} from './key-plans.ts'
import type { RotationOptions } from './rotation.ts'
import {
  applyLimitChange,
  assertEnvironment,
  changeDetails,
  type DetailsChange,
  equalLimits,
  hasAll,
  type LimitChange,
  requireActiveModules,
  requireExpiry,
  requireLifetime,
  requireName,
  requireNames,
  requireNotEnded,
  requireRanges,
} from './validate.ts'

/** The members of a key that change; the others stay. `null` removes a detail. */
export interface KeyUpdate extends DetailsChange<KeyDetails> {
  /** 1–200 code points without control characters. */
  readonly name?: string | undefined
  /** Addresses and CIDR ranges from which it may be used; none for anywhere. */
  readonly allow?: readonly string[] | undefined
  /** Milliseconds since the epoch, in the future; `null` for never. */
  readonly expiresAt?: number | null | undefined
  /** Limits that it gets and loses. */
  readonly limits?: LimitChange | undefined
}

const keyUpdateKinds: OptionKinds<KeyUpdate> = {
  name: 'a text',
  allow: 'a list of texts',
  expiresAt: 'anything',
  limits: 'an object',
  owner: 'a text or null',
  tags: 'a list of texts or null',
}

const keyFilterKinds: OptionKinds<KeyFilter> = {
  partner: 'a text',
  environment: 'anything',
  scope: 'a text',
  tag: 'a text',
  states: 'a list of texts',
  endsBefore: 'a number',
  unusedSince: 'a number',
  now: 'a number',
}

/**
 * Administration of keys, by their public ids. Each change returns the key as it is afterwards; a change to the state
 * that a key is already in does nothing. A revoked or expired key cannot be changed, except that an expired one can be
 * revoked.
 *
 * Methods throw `TypeError` for an option that does not exist or a value of another kind, and `AdminError`: those
 * that take an id with `key_not_found`, changes to a revoked or expired key with `key_revoked` or `key_expired`,
 * all changes with `concurrent_change`, and each with its own codes.
 */
export interface KeyAdministration {
  /**
   * Creates a key and returns its text, which cannot be read again.
   * @throws {AdminError} `partner_not_found`, `partner_removed`, `invalid_name`, `invalid_limit`,
   * `invalid_address_range`, `invalid_details`, `invalid_expiry`, `unknown_scope`, `module_inactive`
   */
  issue(key: NewKey): Promise<IssuedKey>
  /**
   * The keys that a filter selects, by default all, oldest first, read from the store in pages.
   * @throws {AdminError} `partner_not_found` when the iteration starts.
   */
  list(filter?: KeyFilter): AsyncIterable<Key>
  /** The key, in any state. */
  show(id: string): Promise<Key>
  /**
   * Creates a successor with the same permissions, and ends the old key after an overlap, in one transaction.
   * @returns The successor.
   * @throws {AdminError} `key_disabled`, `key_rotated`, `invalid_duration`, `invalid_expiry`, and with `replaces`
   * `addresses_disjoint` and `limits_differ`
   */
  rotate(id: string, options?: RotationOptions): Promise<RotatedKey>
  /**
   * Changes its name, addresses, expiry, limits and details.
   * @throws {AdminError} `invalid_name`, `invalid_address_range`, `invalid_expiry`, `invalid_limit`, `invalid_details`
   */
  update(id: string, update: KeyUpdate): Promise<Key>
  /** Refuses the key until it is enabled again. */
  disable(id: string): Promise<Key>
  /** Undoes `disable`. */
  enable(id: string): Promise<Key>
  /** Cannot be undone. */
  revoke(id: string): Promise<Key>
  /**
   * Sets the longest lifetime of keys, 1 s to 36,525 days, or removes it: `issue`, `rotate`, `update` and imports
   * refuse a later end. Existing keys do not change.
   * @throws {AdminError} `invalid_duration`
   */
  setMaxLifetime(ms: number | undefined): Promise<void>
  /** Gives it scopes, all or none. @throws {AdminError} `unknown_scope`, `module_inactive` */
  grant(id: string, scopes: readonly string[]): Promise<Key>
  /** Takes scopes away, all or none. @throws {AdminError} `unknown_scope` */
  remove(id: string, scopes: readonly string[]): Promise<Key>
}

/** Administers the keys of a store. @throws {RangeError} for an invalid name of the operator. */
export function createKeyAdministration(store: KeyStore, operator: Operator): KeyAdministration {
  const administrator: KeyAdministrator = { store, ...createAdministrator(store, operator) }
  return {
    issue: (requested) => issueKey(administrator, requested),
    list: (filter = {}) => listKeys(store, filter),
    show: (id) => showKey(store, id),
    rotate: (id, options = {}) => rotateKey(administrator, id, options),
    update: (id, update) => updateKey(administrator, id, update),
    disable: (id) => changeKey(administrator, id, (facts, { now }) => disableChanges(facts, now)),
    enable: (id) => changeKey(administrator, id, (facts, { now }) => enableChanges(facts, now)),
    revoke: (id) => changeKey(administrator, id, revocationChanges),
    setMaxLifetime: (ms) => setMaxLifetime(administrator, ms),
    grant: (id, scopes) => grantScopes(administrator, id, scopes),
    remove: (id, scopes) => removeScopes(administrator, id, scopes),
  }
}

interface KeyAdministrator extends Administrator {
  readonly store: KeyStore
}

async function* listKeys(store: KeyStore, filter: KeyFilter): AsyncGenerator<Key> {
  assertOptions('keys.list', filter, keyFilterKinds)
  if (filter.environment !== undefined) assertEnvironment('keys.list', filter.environment)
  if (filter.partner !== undefined) await findPartner(store, filter.partner)
  yield* readKeys(store, filter)
}

async function issueKey({ store, now, applyPlan }: KeyAdministrator, requested: NewKey): Promise<IssuedKey> {
  const { key, text } = await applyPlan((modules) => issueChanges({ store, modules, now: now() }, requested))
  // Not read again: if that failed, the text of a key that exists would be lost.
  return { key, text }
}

async function rotateKey(
  { store, now, applyPlan }: KeyAdministrator,
  id: string,
  options: RotationOptions,
): Promise<RotatedKey> {
  const { key, text, retiresAt } = await applyPlan((modules) =>
    rotationChanges({ store, modules, now: now() }, id, options)
  )
  return { key, text, retiresAt }
}

async function changeKey(
  { store, now, apply }: KeyAdministrator,
  id: string,
  buildChanges: (facts: KeyFacts, context: KeyChangeContext) => MaybePromise<readonly Change[]>,
): Promise<Key> {
  await apply(async (modules) => buildChanges(await findKey(store, id), { store, modules, now: now() }))
  return showKey(store, id)
}

async function updateKey(administrator: KeyAdministrator, id: string, update: KeyUpdate): Promise<Key> {
  assertOptions('keys.update', update, keyUpdateKinds)
  if (update.name !== undefined) requireName(update.name)
  requireRanges(update.allow ?? [])
  requireExpiry(update.expiresAt ?? undefined, administrator.now())
  return await changeKey(administrator, id, async ({ key }, context) => {
    requireNotEnded(key, context.now)
    const { name = key.name, allow = key.allow, expiresAt: end = context.now } = update
    requireLifetime(end ?? Infinity, await latestEnd(context), context.now)
    const expiresAt = update.expiresAt === undefined ? key.expiresAt : update.expiresAt ?? undefined
    const limits = applyLimitChange(key.limits, update.limits, KEY_POLICY_NAMES)
    const change = { id, name, allow, expiresAt, ...changeDetails(NO_KEY_DETAILS, update, key) }
    const isSame = hasAll(key, change) && equalLimits(limits, key.limits)
    return isSame ? [] : [{ type: 'key.updated', ...change, limits }]
  })
}

async function setMaxLifetime({ store, apply }: KeyAdministrator, after: number | undefined): Promise<void> {
  if (after !== undefined && !(Number.isInteger(after) && after >= 1_000 && after <= MAX_DURATION_MS)) {
    throw new AdminError('invalid_duration', 'The longest lifetime of keys must be from 1s to 36525d.')
  }
  await apply(async () => {
    const before = await store.maxKeyLifetimeMs()
    return before === after ? [] : [{ type: 'store.updated', before, after }]
  })
}

async function grantScopes(
  administrator: KeyAdministrator,
  id: string,
  names: readonly string[],
): Promise<Key> {
  return await changeKey(administrator, id, ({ key, partner }, { modules, now }) => {
    requireNotEnded(key, now)
    const scopes = requireNames('scope', names, modules.scopes)
    requireActiveModules(partner, scopes, modules)
    return scopes.filter((scope) => !key.scopes.includes(scope))
      .map((scope) => ({ type: 'scope.granted', id, scope }))
  })
}

async function removeScopes(
  administrator: KeyAdministrator,
  id: string,
  names: readonly string[],
): Promise<Key> {
  return await changeKey(administrator, id, ({ key }, { modules, now }) => {
    requireNotEnded(key, now)
    const scopes = requireNames('scope', names, modules.scopes)
    return scopes.filter((scope) => key.scopes.includes(scope))
      .map((scope) => ({ type: 'scope.removed', id, scope }))
  })
}
