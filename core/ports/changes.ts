import type { MaybePromise } from '../lib/promise.ts'
import type { Environment, Key, KeyState, Module, ModuleDefinition, Partner, Scope } from '../model.ts'

/** Who made a change, and when. */
export interface AuditContext {
  /** The operator's name, 1–200 characters; on the command line, the operating system's user by default. */
  readonly actor: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** The position of a row in a list that is sorted by the instant of creation, then by id. */
export interface CreationPosition {
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** The id of the row. */
  readonly id: string
}

/** Selects the keys that meet every condition; without one, all keys. A key is in force while active or retiring. */
export interface KeyFilter {
  /** Slug of the partner that owns it. */
  readonly partner?: string | undefined
  /** The environment of the key. */
  readonly environment?: Environment | undefined
  /** A scope that it holds. */
  readonly scope?: Scope | undefined
  /** A tag that it has, in the form of one. */
  readonly tag?: string | undefined
  /** Any of these states at `now`. */
  readonly states?: readonly KeyState[] | undefined
  /** Selects keys in force at `now` that expire or end their overlap before this: milliseconds since the epoch. */
  readonly endsBefore?: number | undefined
  /** Selects keys in force at `now` that were created before this and not used since: milliseconds since the epoch. */
  readonly unusedSince?: number | undefined
  /** Milliseconds since the epoch; by default the current time. */
  readonly now?: number | undefined
}

/** A one-time link to a key that is made when the link is used. Has a digest of the token in the link. */
export interface Claim extends Pick<Key, 'id' | 'digest' | 'partner' | 'name' | 'createdAt'> {
  /** The key to issue or the rotation to make, as JSON. */
  readonly draft: string
  /** The state of the link, without regard to its end. */
  readonly state: 'open' | 'used' | 'revoked'
  /** The end of the link, milliseconds since the epoch. */
  readonly expiresAt: number
  /** Public id of the key that was made. */
  readonly keyId: string | undefined
}

/** Administration of partners, keys and claims. */
export interface Administration {
  /**
   * Partners, removed ones included, by slug: at most `limit` of those after the slug `after`.
   *
   * @param tag Only partners with this tag, which has the form of one.
   */
  listPartners(after: string | undefined, limit: number, tag?: string): MaybePromise<readonly Partner[]>

  /** The partner with this slug, removed or not, or `undefined`. `slug` has the form of one. */
  findPartner(slug: string): MaybePromise<Partner | undefined>

  /** The longest lifetime of keys, in milliseconds; `undefined` for any. What the last `store.updated` has set. */
  maxKeyLifetimeMs(): MaybePromise<number | undefined>

  /** The keys that a filter selects, oldest first, then by id; `after` is the last one seen. */
  listKeys(
    filter: KeyFilter,
    after: CreationPosition | undefined,
    limit: number,
  ): MaybePromise<readonly Key[]>

  /**
   * The keys in force at `now` that follow from the same key by rotations as this one, oldest first: its predecessors
   * back to the first that was made at or before `since` and replaced none in force, and all of their successors.
   */
  listChain(id: string, since: number, now: number): MaybePromise<readonly Key[]>

  /** Whether the audit log has a change of a key, other than its issue, by anyone but this actor. */
  wasChangedByOthers(id: string, actor: string): MaybePromise<boolean>

  /** The claim with this id, in any state, or `undefined`. */
  findClaim(id: string): MaybePromise<Claim | undefined>

  /**
   * Claims, or those of a partner or that can be used at `openAt`, oldest first, then by id, after the last one seen.
   */
  listClaims(
    filter: { readonly partner?: string | undefined; readonly openAt?: number | undefined },
    after: CreationPosition | undefined,
    limit: number,
  ): MaybePromise<readonly Claim[]>

  /**
   * The ids of all digest schemes, and the keys with these digests under any scheme or none, in any order. Reads every
   * key: it is meant for imports.
   *
   * @param digests 64 hexadecimal digits each, without a scheme.
   */
  findDigests(
    digests: readonly string[],
  ): MaybePromise<{ readonly schemes: readonly string[]; readonly keys: readonly Key[] }>

  /**
   * Applies all changes or none, in order, in one transaction that also moves `Revision.facts` and adds an audit entry
   * for each; the removal of a partner adds one for each key that it revokes.
   *
   * @param ifFacts The revision that the changes are based on.
   * @returns false, with nothing applied, when the facts have changed since.
   */
  apply(changes: readonly Change[], ifFacts: string, context: AuditContext): MaybePromise<boolean>
}

/** How another system made the digests of its keys. */
export interface DigestScheme {
  /** Begins the digest of each of its keys, before a colon. Follows from the other members. */
  readonly id: string
  /** The function of the digest. */
  readonly algorithm: 'sha256' | 'hmac-sha256'
  /** The digest is that of what follows this in a key; empty for the whole key. */
  readonly prefix: string
  /** The bytes of the HMAC secret in hexadecimal; empty for `sha256`. */
  readonly secret: string
}

/** One administrative change, checked against all rules: a store only applies it. */
export type Change =
  | { readonly type: 'partner.created'; readonly partner: Partner }
  | ({ readonly type: 'partner.updated' } & Omit<Partner, 'state' | 'modules' | 'createdAt'>)
  | { readonly type: 'partner.suspended' | 'partner.resumed' | 'partner.removed'; readonly slug: string }
  | { readonly type: 'module.defined'; readonly module: ModuleDefinition }
  /** The longest lifetime of keys, see `Administration.maxKeyLifetimeMs`. */
  | ({ readonly type: 'store.updated' } & Readonly<Record<'before' | 'after', number | undefined>>)
  /** The end of a module. It takes the module's scope away from all keys that hold it, none of which is in force. */
  | { readonly type: 'module.forgotten'; readonly name: Module }
  | {
    readonly type: 'module.activated' | 'module.deactivated'
    readonly slug: string
    readonly module: Module
  }
  | {
    readonly type: 'key.issued'
    readonly key: Key
    /** The scheme of an imported key's digest. Stored unless there is one with its id. */
    readonly scheme?: DigestScheme
  }
  | {
    readonly type: 'key.rotated'
    readonly id: string
    readonly successorId: string
    readonly retiresAt: number
    /** Whether the key ends with this change, independently of any clock, because there is no overlap. */
    readonly ended?: boolean
  }
  | (
    & { readonly type: 'key.updated' }
    & Pick<Key, 'id' | 'name' | 'allow' | 'limits' | 'expiresAt' | 'owner' | 'tags'>
  )
  | { readonly type: 'key.disabled' | 'key.enabled'; readonly id: string }
  /** A revocation. With `ifUnused` it is refused for a key that was used: uses do not move the revision. */
  | { readonly type: 'key.revoked'; readonly id: string; readonly ifUnused?: true }
  /** The claim as it is afterwards; it was open before. */
  | { readonly type: 'claim.created' | 'claim.used' | 'claim.revoked'; readonly claim: Claim }
  | { readonly type: 'scope.granted' | 'scope.removed'; readonly id: string; readonly scope: Scope }
