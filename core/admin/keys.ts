import { formatValue } from '../http/redact.ts'
import { mintKey } from '../keys/format.ts'
import { keyState } from '../keys/lifecycle.ts'
import { parseCidr } from '../lib/ip-address.ts'
import { readPages } from '../lib/read-pages.ts'
import { createClock } from '../lib/time.ts'
import type { Environment, Key, KeyFacts, LimitOverrides } from '../model.ts'
import { MODULES } from '../policy/modules.ts'
import type { Change } from '../ports/changes.ts'
import type { Store } from '../ports/store.ts'
import { applyWithRetry, createAuditContext, findKey, findPartner, type Operator } from './apply.ts'
import {
  AdminError,
  applyLimitChange,
  equalLimits,
  type LimitChange,
  MAX_DURATION_MS,
  requireActiveModules,
  requireExpiry,
  requireLimits,
  requireName,
  requireNotEnded,
  requireNotRemoved,
  requireScopes,
} from './validate.ts'

/** A key to be issued. */
export interface NewKey {
  /** Slug of the partner that will own it. A suspended partner may be given keys: they answer once it is resumed. */
  readonly partner: string
  /** 1–200 code points without control characters. */
  readonly name: string
  /** Names of scopes that active modules need; by default all of them. */
  readonly scopes?: readonly string[]
  /** What a `test` key does is stored as a test and never counted. */
  readonly environment: Environment
  /** Milliseconds since the epoch, in the future; by default never. */
  readonly expiresAt?: number | undefined
  /** Addresses and CIDR ranges from which it may be used; by default from anywhere. */
  readonly allow?: readonly string[]
  /** Limits of its own; none by default. */
  readonly limits?: LimitOverrides
}

/** What is to be changed of a key; what is left out stays. */
export interface KeyUpdate {
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
  /** The key as it is at rest. */
  readonly key: Key
  /** The whole key: a secret, to be shown once and kept nowhere. */
  readonly text: string
}

/**
 * What an operator may do about keys, by their public ids. Everything that changes a key gives it back as
 * it is then; to ask for what is already so changes nothing. A revoked or expired key is no longer changed,
 * except that an expired one can be revoked.
 */
export interface KeyAdministration {
  /**
   * Makes a key. Its text is given back here and never again.
   *
   * @throws {AdminError} `partner_not_found`, `partner_removed`, `invalid_name`, `unknown_scope`,
   * `module_inactive`, `invalid_expiry`, `invalid_address_range`, `invalid_limit`
   */
  issue(key: NewKey): Promise<IssuedKey>
  /**
   * All keys, or those of one partner, oldest first, read from the store in pages.
   *
   * @throws {AdminError} `partner_not_found` when the first key is asked for.
   */
  list(partner?: string): AsyncIterable<Key>
  /** The key, whatever its state. @throws {AdminError} `key_not_found` */
  show(id: string): Promise<Key>
  /**
   * Gives a key a successor that may do the same, and ends the old key after an overlap; both, or nothing.
   *
   * @returns The successor.
   * @throws {AdminError} `key_not_found`, `key_revoked`, `key_expired`, `key_disabled`, `key_rotated`,
   * `invalid_duration`, `invalid_expiry`
   */
  rotate(id: string, options?: RotationOptions): Promise<IssuedKey>
  /**
   * Changes its name, addresses, expiry and limits.
   *
   * @throws {AdminError} `invalid_name`, `invalid_address_range`, `invalid_expiry`, `invalid_limit`, `key_not_found`,
   * `key_revoked`, `key_expired`
   */
  update(id: string, update: KeyUpdate): Promise<Key>
  /** Refuses the key until it is enabled again. @throws {AdminError} `key_not_found`, `key_revoked`, `key_expired` */
  disable(id: string): Promise<Key>
  /** Undoes `disable`. @throws {AdminError} `key_not_found`, `key_revoked`, `key_expired` */
  enable(id: string): Promise<Key>
  /** For good. @throws {AdminError} `key_not_found` */
  revoke(id: string): Promise<Key>
  /**
   * All scopes or none.
   * @throws {AdminError} `unknown_scope`, `key_not_found`, `key_revoked`, `key_expired`, `module_inactive`
   */
  grant(id: string, scopes: readonly string[]): Promise<Key>
  /** Takes scopes away, all or none. @throws {AdminError} `unknown_scope`, `key_not_found`, `key_revoked`, `key_expired` */
  remove(id: string, scopes: readonly string[]): Promise<Key>
}

/** Keys of this store. @throws {RangeError} when the operator's name is none. */
export function createKeyAdministration(
  store: Pick<
    Store,
    'revision' | 'clock' | 'findKey' | 'listKeys' | 'findPartner' | 'apply' | 'settings' | 'sha256'
  >,
  operator: Operator,
): KeyAdministration {
  const { clock = createClock(() => store.clock?.()).now } = operator
  const auditContext = createAuditContext({ ...operator, clock })

  async function show(id: string): Promise<Key> {
    return (await findKey(store, id)).key
  }

  async function change(id: string, buildChanges: (facts: KeyFacts) => readonly Change[]): Promise<Key> {
    await applyWithRetry(store, auditContext, async () => buildChanges(await findKey(store, id)))
    return show(id)
  }

  return {
    async issue({ partner: slug, name, scopes: names, environment, expiresAt, allow = [], limits = {} }) {
      requireName(name)
      requireLimits(limits)
      requireRanges(allow)
      requireExpiry(expiresAt, clock())
      const wanted = names && requireScopes(names)
      const minted = mintKey(store.settings.keyPrefix, environment)
      const digest = store.sha256(minted.text)
      const changes = await applyWithRetry(store, auditContext, async () => {
        const partner = await findPartner(store, slug)
        requireNotRemoved(partner)
        const scopes = wanted ?? requireScopes(partner.modules.map((module) => MODULES[module].scope))
        requireActiveModules(partner, scopes)
        const key: Key = {
          id: minted.id,
          partner: slug,
          name,
          environment,
          digest,
          hint: minted.hint,
          state: 'active',
          scopes,
          allow,
          limits,
          createdAt: clock(),
          expiresAt,
          retiresAt: undefined,
          successorId: undefined,
          lastUsedAt: undefined,
        }
        return [{ type: 'key.issued', key }]
      })
      return { key: issuedKey(changes), text: minted.text }
    },

    async *list(slug) {
      if (slug !== undefined) await findPartner(store, slug)
      yield* readPages<Key>((after, limit) => store.listKeys(slug, after, limit))
    },

    show,

    async rotate(id, options = {}) {
      // Read before, because a key's text says whether it is live or test, and that never changes.
      const { environment } = await show(id)
      const { text, ...minted } = mintKey(store.settings.keyPrefix, environment)
      const digest = store.sha256(text)
      const changes = await applyWithRetry(store, auditContext, async () => {
        const { key } = await findKey(store, id)
        return rotationChanges(key, { id: minted.id, hint: minted.hint, digest }, options, clock())
      })
      return { key: issuedKey(changes), text }
    },

    async update(id, { name: newName, allow: newAllow, expiresAt: newExpiry, limits: wanted = {} }) {
      if (newName !== undefined) requireName(newName)
      requireRanges(newAllow ?? [])
      requireExpiry(newExpiry ?? undefined, clock())
      return await change(id, ({ key }) => {
        requireNotEnded(key, clock())
        const name = newName ?? key.name
        const allow = newAllow ?? key.allow
        const expiresAt = newExpiry === undefined ? key.expiresAt : newExpiry ?? undefined
        const limits = applyLimitChange(key.limits, wanted)
        const isSame = name === key.name && allow.join() === key.allow.join() &&
          expiresAt === key.expiresAt && equalLimits(limits, key.limits)
        return isSame ? [] : [{ type: 'key.updated', id, name, allow, limits, expiresAt }]
      })
    },

    disable(id) {
      return change(id, ({ key }) => {
        requireNotEnded(key, clock())
        return key.state === 'disabled' ? [] : [{ type: 'key.disabled', id }]
      })
    },

    enable(id) {
      return change(id, ({ key }) => {
        requireNotEnded(key, clock())
        return key.state === 'active' ? [] : [{ type: 'key.enabled', id }]
      })
    },

    revoke(id) {
      return change(id, ({ key }) => key.state === 'revoked' ? [] : [{ type: 'key.revoked', id }])
    },

    async grant(id, names) {
      const scopes = requireScopes(names)
      return await change(id, ({ key, partner }) => {
        requireNotEnded(key, clock())
        requireActiveModules(partner, scopes)
        return scopes
          .filter((scope) => !key.scopes.includes(scope))
          .map((scope) => ({ type: 'scope.granted', id, scope }))
      })
    },

    async remove(id, names) {
      const scopes = requireScopes(names)
      return await change(id, ({ key }) => {
        requireNotEnded(key, clock())
        return scopes
          .filter((scope) => key.scopes.includes(scope))
          .map((scope) => ({ type: 'scope.removed', id, scope }))
      })
    },
  }
}

/** The key that changes issue. Not read again: if that failed, nobody would ever be told its text. */
function issuedKey(changes: readonly Change[]): Key {
  return changes.find((change) => change.type === 'key.issued')!.key
}

function requireRanges(ranges: readonly string[]): void {
  for (const range of ranges) {
    try {
      parseCidr(range)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      throw new AdminError('invalid_address_range', `The range ${formatValue(range)} ${error.message}.`)
    }
  }
}

/** How a key is replaced. */
export interface RotationOptions {
  /** Milliseconds for which the old key goes on to work, 0 to 36,525 days; by default 24 hours. */
  readonly overlapMs?: number | undefined
  /**
   * When the successor expires, milliseconds since the epoch; by default when the old key would have. A rotation
   * replaces a secret: access that was given for a time does not outlast it by being rotated.
   */
  readonly expiresAt?: number | undefined
}

const defaultOverlapMs = 86_400_000

/**
 * Replaces a key by a successor that may do the same: partner, name, environment, scopes (those out of force too),
 * addresses, limits and, unless it gets another one, expiry are those of the old key.
 *
 * @param minted What is new about the successor.
 * @throws {AdminError} `key_revoked`, `key_expired`, `key_disabled`, `key_rotated`, `invalid_duration`, `invalid_expiry`
 */
export function rotationChanges(
  key: Key,
  minted: Pick<Key, 'id' | 'digest' | 'hint'>,
  { overlapMs = defaultOverlapMs, expiresAt }: RotationOptions,
  now: number,
): readonly Change[] {
  requireNotEnded(key, now)
  if (keyState(key, now) === 'disabled') {
    throw new AdminError(
      'key_disabled',
      `Key ${key.id} is disabled, and a successor would let its holder in again. To rotate it all the same, ` +
        `first: partner-api keys enable ${key.id}`,
    )
  }
  if (key.successorId !== undefined) {
    throw new AdminError(
      'key_rotated',
      `Key ${key.id} was rotated already. To replace its successor: partner-api keys rotate ${key.successorId}`,
    )
  }
  if (!Number.isInteger(overlapMs) || overlapMs < 0 || overlapMs > MAX_DURATION_MS) {
    throw new AdminError('invalid_duration', 'The overlap of a rotation is 0 or more, up to 36525d.')
  }
  requireExpiry(expiresAt, now)
  const successor: Key = {
    ...key,
    ...minted,
    createdAt: now,
    expiresAt: expiresAt ?? key.expiresAt,
    lastUsedAt: undefined,
  }
  // A key that expires within the overlap ends there, and says so.
  const retiresAt = Math.min(now + overlapMs, key.expiresAt ?? Infinity)
  return [
    { type: 'key.issued', key: successor },
    { type: 'key.rotated', id: key.id, successorId: successor.id, retiresAt, ended: overlapMs === 0 },
  ]
}
