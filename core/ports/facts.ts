import type { MaybePromise } from '../lib/promise.ts'
import type { KeyFacts } from '../model.ts'

/** Where key facts come from. */
export interface FactSource {
  /**
   * Makes sure that what is kept can be read now, and not only that nothing is known to have changed.
   * @throws when it can't.
   */
  check(): MaybePromise<void>

  /**
   * The revision at the time of the call, changes committed by other processes included.
   * @throws when the store does not answer.
   */
  revision(): MaybePromise<Revision>

  /**
   * The key with this public id and its partner, whatever their state, or `undefined`.
   * @throws when the store does not answer.
   */
  findKey(id: string): MaybePromise<KeyFacts | undefined>

  /** Notes when keys were used last, by public id. Never bumps the revision; unknown ids are passed over. */
  recordKeyUses(uses: ReadonlyMap<string, number>): MaybePromise<void>
}

/**
 * What has been changed so far. Two revisions that are equal mean that nothing was changed in between;
 * nothing else can be read from them.
 */
export interface Revision {
  /** Changes with every administrative change: partners, modules, keys, scopes. Neither text holds a space. */
  readonly facts: string
  /** Changes with every change of content. */
  readonly content: string
}
