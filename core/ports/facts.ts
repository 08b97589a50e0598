import type { MaybePromise } from '../lib/promise.ts'
import type { KeyFacts, ModuleDefinition } from '../model.ts'

/** The source of key facts. */
export interface FactSource {
  /** Reads from the store itself, not from a cache. @throws when that fails. */
  check(): MaybePromise<void>

  /**
   * The revision at the time of the call, changes committed by other processes included.
   * @throws when the store does not respond.
   */
  revision(): MaybePromise<Revision>

  /**
   * The key with this public id and its partner, in any state, or `undefined`.
   * @throws when the store does not respond.
   */
  findKey(id: string): MaybePromise<KeyFacts | undefined>

  /**
   * The imported key with this text and its partner, in any state; `undefined` without one, and `false` when the
   * store has no imported keys. Only text in the form `IMPORTED_KEY_PATTERN` is looked up. When several schemes
   * lead to a key, that with the longest prefix counts.
   * @throws when the store does not respond.
   */
  findImportedKey(text: string): MaybePromise<KeyFacts | undefined | false>

  /** The modules that the operator has defined, in the order of definition. */
  listModules(): MaybePromise<readonly ModuleDefinition[]>

  /** Records when keys were last used, by public id. Does not change the revision; ignores unknown ids. */
  recordKeyUses(uses: ReadonlyMap<string, number>): MaybePromise<void>
}

/** The state of the store's data. Equal revisions mean that nothing changed in between; they mean nothing else. */
export interface Revision {
  /** Changes with every administrative change: partners, modules, keys, scopes. Neither text contains a space. */
  readonly facts: string
  /** Changes with every change of content. */
  readonly content: string
}
