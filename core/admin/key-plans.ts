/** The changes that issue, rotate, disable, enable and revoke keys. */
import { mintKey } from '../keys/format.ts'
import { newKey } from '../keys/lifecycle.ts'
import { assertOptions, type OptionKinds } from '../lib/options.ts'
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
import type { Administration, Change } from '../ports/changes.ts'
import type { Store } from '../ports/store.ts'
import { findKey, findPartner } from './apply.ts'
import { type MintedKey, planRotation, type RotationOptions } from './rotation.ts'
import {
  assertEnvironment,
  changeDetails,
  type DetailsChange,
  requireActiveModules,
  requireExpiry,
  requireLifetime,
  requireLimits,
  requireName,
  requireNames,
  requireNotEnded,
  requireNotRemoved,
  requireRanges,
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
  /** The key's own limits; none by default. */
  readonly limits?: LimitOverrides | undefined
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

/** What the administration of keys needs of a store. */
export type KeyStore =
  & Omit<Administration, 'findDigests' | 'listPartners' | 'listClaims' | 'findClaim'>
  & Pick<Store, 'revision' | 'clock' | 'now' | 'findKey' | 'listModules' | 'settings' | 'sha256'>

const newKeyKinds: OptionKinds<NewKey> = {
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

export const ROTATION_OPTIONS: OptionKinds<RotationOptions> = {
  overlapMs: 'anything',
  expiresAt: 'anything',
  replaces: 'a text',
  serviceLimits: 'an object',
}

/** What changes of keys are built from. */
export interface KeyChangeContext {
  readonly store: KeyStore
  readonly modules: Modules
  /** When they are made, milliseconds since the epoch. */
  readonly now: number
}

/** The changes that make a key, and the key. */
export interface KeyPlan extends IssuedKey {
  readonly changes: readonly Change[]
}

/** The changes that rotate a key, and its successor. */
export interface RotationPlan extends KeyPlan, RotatedKey {}

/** The latest end of a key that is issued or changed now. */
export async function latestEnd({ store, now }: Omit<KeyChangeContext, 'modules'>): Promise<number> {
  return now + (await store.maxKeyLifetimeMs() ?? Infinity)
}

/** @throws {AdminError} What `KeyAdministration.issue` throws. */
export async function issueChanges(context: KeyChangeContext, requested: NewKey): Promise<KeyPlan> {
  assertOptions('keys.issue', requested, newKeyKinds)
  const { store, modules, now } = context
  const { partner: slug, name, environment, expiresAt, allow = [], limits = {} } = requested
  assertEnvironment('keys.issue', environment)
  requireName(name)
  const details = changeDetails(NO_KEY_DETAILS, requested)
  requireLimits(limits, KEY_POLICY_NAMES)
  requireRanges(allow)
  requireExpiry(expiresAt, now)
  requireLifetime(expiresAt ?? Infinity, await latestEnd(context), now)
  const named = requested.scopes && requireNames('scope', requested.scopes, modules.scopes)
  const partner = await findPartner(store, slug)
  requireNotRemoved(partner)
  const scopes = named ?? partner.modules.map((module) => modules.scopeOf(module)!)
  requireActiveModules(partner, scopes, modules)
  const { minted, text } = drawKey(store, environment)
  const access = { environment, scopes, allow, limits, expiresAt, createdAt: now }
  const key = newKey({ ...minted, ...details, partner: slug, name, ...access })
  return { changes: [{ type: 'key.issued', key }], key, text }
}

/** @throws {AdminError} What `KeyAdministration.rotate` throws. */
export async function rotationChanges(
  context: KeyChangeContext,
  id: string,
  options: RotationOptions,
): Promise<RotationPlan> {
  assertOptions('keys.rotate', options, ROTATION_OPTIONS)
  const facts = await findKey(context.store, id)
  return await planSuccessor(context, facts, await findReplaced(context.store, facts, options), options)
}

/** @param former The successor that the new one replaces. */
export async function planSuccessor(
  context: KeyChangeContext,
  facts: KeyFacts,
  former: Key | undefined,
  options: RotationOptions,
): Promise<RotationPlan> {
  const { minted, text } = drawKey(context.store, facts.key.environment)
  const time = { now: context.now, latest: await latestEnd(context) }
  return { ...planRotation(facts, former, minted, options, time), text }
}

/** The successor of a key that another rotation of it replaces. */
export async function findReplaced(
  store: KeyStore,
  { key: { successorId } }: KeyFacts,
  { replaces }: RotationOptions,
): Promise<Key | undefined> {
  if (successorId === undefined || successorId !== replaces) return undefined
  return await showKey(store, successorId)
}

/** @throws {AdminError} `key_revoked`, `key_expired` */
export function disableChanges({ key }: KeyFacts, now: number): readonly Change[] {
  requireNotEnded(key, now)
  return key.state === 'disabled' ? [] : [{ type: 'key.disabled', id: key.id }]
}

/** @throws {AdminError} `key_revoked`, `key_expired` */
export function enableChanges({ key }: KeyFacts, now: number): readonly Change[] {
  requireNotEnded(key, now)
  return key.state === 'active' ? [] : [{ type: 'key.enabled', id: key.id }]
}

/** The change that revokes a key, even an expired one; none for a key that is revoked. */
export function revocationChanges({ key: { id, state } }: KeyFacts): readonly Change[] {
  return state === 'revoked' ? [] : [{ type: 'key.revoked', id }]
}

/** Draws the secret of a key. */
function drawKey(
  store: KeyStore,
  environment: Environment,
): { readonly minted: MintedKey; readonly text: string } {
  const { text, id, hint } = mintKey(store.settings.keyPrefix, environment)
  return { minted: { id, hint, digest: store.sha256(text) }, text }
}

/** Finds a key by its id, in any state. @throws {AdminError} `key_not_found` */
export async function showKey(store: KeyStore, id: string): Promise<Key> {
  return (await findKey(store, id)).key
}
