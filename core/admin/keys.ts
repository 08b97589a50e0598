import { formatValue } from '../http/redact.ts'
import { mintKey } from '../keys/format.ts'
import { newKey } from '../keys/lifecycle.ts'
import { assertOptions, type OptionKinds } from '../lib/options.ts'
import { MAX_DURATION_MS } from '../lib/time.ts'
import { KEY_POLICY_NAMES } from '../limits/policies.ts'
import {
  type Environment,
  type Key,
  type KeyDetails,
  type KeyFacts,
  type LimitOverrides,
  type Modules,
  NO_KEY_DETAILS,
} from '../model.ts'
import type { Administration, Change, KeyFilter } from '../ports/changes.ts'
import { readKeys, type Store } from '../ports/store.ts'
import { createAdministrator, findKey, findPartner, type Operator } from './apply.ts'
import { AdminError } from './error.ts'
import { limitChain, type MintedKey, planRotation, rotatedError, type RotationOptions } from './rotation.ts'
import {
  applyLimitChange,
  changeDetails,
  type DetailsChange,
  equalLimits,
  hasAll,
  type LimitChange,
  requireActiveModules,
  requireEnvironment,
  requireExpiry,
  requireLifetime,
  requireLimits,
  requireName,
  requireNames,
  requireNotEnded,
  requireNotRemoved,
  validateRange,
} from './validate.ts'

/** A key to be issued, by default without details. */
export interface NewKey extends DetailsChange<KeyDetails> {
  /** Slug of the partner that owns it. The keys of a suspended partner work once it is resumed. */
  readonly partner: string
  /** 1–200 code points without control characters. */
  readonly name: string
  /** Names of scopes that active modules need; by default all of them. */
  readonly scopes?: readonly string[] | undefined
  /** The signups of a `test` key are stored as tests; its requests and signups are never counted. */
  readonly environment: Environment
  /** Milliseconds since the epoch, in the future; by default never. */
  readonly expiresAt?: number | undefined
  /** Addresses and CIDR ranges from which it may be used; by default from anywhere. */
  readonly allow?: readonly string[] | undefined
  /** Its own limits; none by default. */
  readonly limits?: LimitOverrides | undefined
}

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

/** A key that was just issued. */
export interface IssuedKey {
  /** The key as it is stored. */
  readonly key: Key
  /** The whole key, a secret. Show it once; it is not stored. */
  readonly text: string
}

/** The successor of a rotated key. */
export interface RotatedKey extends IssuedKey {
  /** When the old key ends, milliseconds since the epoch. */
  readonly retiresAt: number
}

const NEW_KEY: OptionKinds<NewKey> = {
  partner: 'a text',
  name: 'a text',
  scopes: 'a list of texts',
  environment: 'anything',
  expiresAt: 'anything',
  allow: 'a list of texts',
  limits: 'an object',
  owner: 'a text or null',
  tags: 'a list of texts or null',
}

const KEY_UPDATE: OptionKinds<KeyUpdate> = {
  name: 'a text',
  allow: 'a list of texts',
  expiresAt: 'anything',
  limits: 'an object',
  owner: 'a text or null',
  tags: 'a list of texts or null',
}

const ROTATION: OptionKinds<RotationOptions> = {
  overlapMs: 'anything',
  expiresAt: 'anything',
  replaces: 'a text',
  serviceLimits: 'an object',
}

const KEY_FILTER: OptionKinds<KeyFilter> = {
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
 * Methods throw `TypeError` for an option that does not exist or a value of another kind, and `AdminError`: those that take an id with
 * `key_not_found`, changes to a revoked or expired key with `key_revoked` or `key_expired`, all changes with
 * `concurrent_change`, and each with its own codes.
 */
export interface KeyAdministration {
  /**
   * Creates a key and returns its text, which cannot be read again.
   * @throws {AdminError} `partner_not_found`, `partner_removed`, `invalid_name`, `invalid_limit`, `invalid_address_range`,
   * `invalid_details`, `invalid_expiry`, `unknown_scope`, `module_inactive`
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
   * Sets the longest lifetime of keys, 1 s to 36,525 days, or removes it: `issue`, `rotate`, `update` and imports refuse
   * a later end. Existing keys do not change.
   * @throws {AdminError} `invalid_duration`
   */
  setMaxLifetime(ms: number | undefined): Promise<void>
  /** Gives it scopes, all or none. @throws {AdminError} `unknown_scope`, `module_inactive` */
  grant(id: string, scopes: readonly string[]): Promise<Key>
  /** Takes scopes away, all or none. @throws {AdminError} `unknown_scope` */
  remove(id: string, scopes: readonly string[]): Promise<Key>
}

/** What the administration of keys needs of a store. */
export type KeyStore =
  & Omit<Administration, 'findDigests' | 'listPartners' | 'listClaims' | 'findClaim'>
  & Pick<Store, 'revision' | 'clock' | 'now' | 'findKey' | 'listModules' | 'settings' | 'sha256'>

/** Administers the keys of a store. @throws {RangeError} for an invalid name of the operator. */
export function createKeyAdministration(store: KeyStore, operator: Operator): KeyAdministration {
  return administerKeys(store, operator)
}

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
  return administerKeys(store, operator, rules)
}

function administerKeys(store: KeyStore, operator: Operator, rules?: SelfServiceRules): KeyAdministration {
  const { now, apply } = createAdministrator(store, operator)

  async function show(id: string): Promise<Key> {
    return (await findKey(store, id)).key
  }

  /** The latest end of a key that is issued or changed now. */
  async function latestEnd(): Promise<number> {
    return now() + (await store.maxKeyLifetimeMs() ?? Infinity)
  }

  async function change(
    id: string,
    buildChanges: (facts: KeyFacts, modules: Modules, latest: number) => readonly Change[],
  ): Promise<Key> {
    await apply(async (modules) => {
      const facts = await findKey(store, id)
      requireNotEnded(facts.key, now())
      return buildChanges(facts, modules, await latestEnd())
    })
    return show(id)
  }

  async function issue(
    environment: Environment,
    buildChanges: (minted: MintedKey, modules: Modules) => Promise<readonly Change[]>,
  ): Promise<IssuedKey> {
    const { text, id, hint } = mintKey(store.settings.keyPrefix, environment)
    const digest = store.sha256(text)
    const changes = await apply((modules) => buildChanges({ id, hint, digest }, modules))
    // Taken from the changes, because a failed read would lose the text of a key that exists.
    return { key: changes.find((change) => change.type === 'key.issued')!.key, text }
  }

  return {
    async issue(requestedKey) {
      assertOptions('keys.issue', requestedKey, NEW_KEY)
      const { partner: slug, name, scopes: names, environment, expiresAt, allow = [], limits = {} } =
        requestedKey
      requireEnvironment('keys.issue', environment)
      requireName(name)
      const details = changeDetails(NO_KEY_DETAILS, requestedKey)
      requireLimits(limits, KEY_POLICY_NAMES)
      requireRanges(allow)
      requireExpiry(expiresAt, now())
      return await issue(environment, async (minted, modules) => {
        requireLifetime(expiresAt ?? Infinity, await latestEnd(), now())
        const requested = names && requireNames('scope', names, modules.scopes)
        const partner = await findPartner(store, slug)
        requireNotRemoved(partner)
        const scopes = requested ?? partner.modules.map((module) => modules.scopeOf(module)!)
        requireActiveModules(partner, scopes, modules)
        const access = { environment, scopes, allow, limits, expiresAt, createdAt: now() }
        return [{
          type: 'key.issued',
          key: newKey({ ...minted, ...details, partner: slug, name, ...access }),
        }]
      })
    },

    async *list(filter = {}) {
      assertOptions('keys.list', filter, KEY_FILTER)
      if (filter.environment !== undefined) requireEnvironment('keys.list', filter.environment)
      if (filter.partner !== undefined) await findPartner(store, filter.partner)
      yield* readKeys(store, filter)
    },

    show,

    async rotate(id, options = {}) {
      assertOptions('keys.rotate', options, ROTATION)
      // The environment never changes, so that it can be read before the transaction.
      const { environment } = await show(id)
      let retiresAt = Infinity
      const issued = await issue(environment, async (minted, modules) => {
        const facts = await findKey(store, id)
        rules?.recheck(facts, modules)
        const { successorId } = facts.key
        const isReplaced = successorId !== undefined && successorId === options.replaces
        const former = isReplaced ? await show(successorId) : undefined
        if (rules !== undefined && former !== undefined) {
          const isOthers = rules.isUsed(former.id) ||
            await store.wasChangedByOthers(former.id, operator.actor)
          if (isOthers) throw rotatedError(facts.key, former.id)
        }
        const time = { now: now(), latest: await latestEnd() }
        const rotation = planRotation(facts, former, minted, options, time)
        retiresAt = rotation.retiresAt
        return rules === undefined
          ? rotation.changes
          : await limitChain(store, facts.key, rotation, rules.isUsed)
      })
      return { ...issued, retiresAt }
    },

    async update(id, update) {
      assertOptions('keys.update', update, KEY_UPDATE)
      if (update.name !== undefined) requireName(update.name)
      requireRanges(update.allow ?? [])
      requireExpiry(update.expiresAt ?? undefined, now())
      return await change(id, ({ key }, _modules, latest) => {
        const { name = key.name, allow = key.allow, expiresAt: end = now() } = update
        requireLifetime(end ?? Infinity, latest, now())
        const expiresAt = update.expiresAt === undefined ? key.expiresAt : update.expiresAt ?? undefined
        const limits = applyLimitChange(key.limits, update.limits, KEY_POLICY_NAMES)
        const change = { id, name, allow, expiresAt, ...changeDetails(NO_KEY_DETAILS, update, key) }
        const isSame = hasAll(key, change) && equalLimits(limits, key.limits)
        return isSame ? [] : [{ type: 'key.updated', ...change, limits }]
      })
    },

    disable: (id) => change(id, ({ key }) => key.state === 'disabled' ? [] : [{ type: 'key.disabled', id }]),

    enable: (id) => change(id, ({ key }) => key.state === 'active' ? [] : [{ type: 'key.enabled', id }]),

    async revoke(id) {
      await apply(async (modules) => {
        const facts = await findKey(store, id)
        rules?.recheck(facts, modules)
        return facts.key.state === 'revoked' ? [] : [{ type: 'key.revoked', id }]
      })
      return show(id)
    },

    async setMaxLifetime(after) {
      if (after !== undefined && !(Number.isInteger(after) && after >= 1_000 && after <= MAX_DURATION_MS)) {
        throw new AdminError('invalid_duration', 'The longest lifetime of keys must be from 1s to 36525d.')
      }
      await apply(async () => {
        const before = await store.maxKeyLifetimeMs()
        return before === after ? [] : [{ type: 'store.updated', before, after }]
      })
    },

    async grant(id, names) {
      return await change(id, ({ key, partner }, modules) => {
        const scopes = requireNames('scope', names, modules.scopes)
        requireActiveModules(partner, scopes, modules)
        return scopes.filter((scope) => !key.scopes.includes(scope))
          .map((scope) => ({ type: 'scope.granted', id, scope }))
      })
    },

    async remove(id, names) {
      return await change(id, ({ key }, modules) => {
        const scopes = requireNames('scope', names, modules.scopes)
        return scopes.filter((scope) => key.scopes.includes(scope))
          .map((scope) => ({ type: 'scope.removed', id, scope }))
      })
    },
  }
}

function requireRanges(ranges: readonly string[]): void {
  for (const range of ranges) {
    const problem = validateRange(range)
    if (problem === undefined) continue
    throw new AdminError('invalid_address_range', `The range ${formatValue(range)} ${problem}.`)
  }
}
