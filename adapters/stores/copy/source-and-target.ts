/** What a store hands over and takes in when it is copied: everything that it keeps, table by table. */
import type { MaybePromise } from '../../../core/lib/promise.ts'
import { StoreError, unfinishedCopyError } from '../store-error.ts'
import type { CopiedRows, RowKey, TableName } from './tables.ts'

/** A table, as far as it is read. */
export interface ReadableTable<R> {
  /** At most `limit` rows in the order of their keys, from the first one after `after` on. */
  read(after: RowKey | undefined, limit: number): MaybePromise<readonly R[]>
}

/** A table of a store that is copied into. */
export interface WritableTable<R> extends ReadableTable<R> {
  /**
   * In one transaction, which is durable when it returns: puts rows, each in the place of the one with its key, and
   * removes others. What follows from a row, such as where a profile is listed, is written and removed with it.
   *
   * @throws {StoreError} `refused` when a row refers to one that is not there.
   */
  write(put: readonly R[], remove: readonly RowKey[]): MaybePromise<void>
}

/** What is known of a store before anything is copied. */
export interface StoreState {
  /** Tells it from all other stores. */
  readonly id: string
  /** Whether nobody has ever put anything into it. */
  readonly isEmpty: boolean
  /** The id of the store that a copy into this one is under way from. */
  readonly copyingFrom: string | undefined
  /** The id of the store that it is a finished copy of, if nothing in it was changed since. */
  readonly finishedCopyOf: string | undefined
}

/** A store that is copied from. Nothing in it is changed. */
export interface CopySource {
  /** Where it is, without user and password, for messages. */
  readonly location: string
  /**
   * `undefined` where there is no store yet.
   * @throws {StoreError} `refused` when it has to be migrated first.
   */
  state(): MaybePromise<StoreState | undefined>
  /** Equal texts mean that nothing was changed in between, be it a count or when a key was used. */
  changeToken(): MaybePromise<string>
  readonly tables: { readonly [Name in TableName]: ReadableTable<CopiedRows[Name]> }
  close(): MaybePromise<void>
}

/** A store that is copied into. */
export interface CopyTarget extends CopySource {
  readonly tables: { readonly [Name in TableName]: WritableTable<CopiedRows[Name]> }
  /**
   * Makes the store, if there is none, and marks it: from now on nobody may use it, not even who has it open. It gets
   * another id, so that who did will not go on with it either when it is done.
   *
   * @param from The id of the store that is copied.
   * @throws {StoreError} `refused` when it is neither empty nor a copy of `from`, unfinished or unchanged since.
   */
  begin(from: string): MaybePromise<void>
  /** Called when all has been written, before it is compared. */
  refreshStatistics?(): MaybePromise<void>
  /** Takes the mark away, and notes what the copy was then. */
  finish(from: string): MaybePromise<void>
}

/** How a target stands to a source before anything is done. */
export type TargetState =
  /** There is no store yet. */
  | 'missing'
  /** There is one, and nobody has ever put anything into it. */
  | 'empty'
  /** A copy of this source was begun and not finished. */
  | 'begun'
  /** A copy of this source was finished, and nothing in it was changed since. */
  | 'unchanged'
  /** It may be a copy of this source that was finished before. */
  | 'finished'

/**
 * The state of a store that can be copied.
 *
 * @throws {StoreError} `missing` when there is none, `refused` when it is not whole itself.
 */
export async function readSourceState(source: CopySource): Promise<StoreState> {
  const state = await source.state()
  if (state === undefined) throw new StoreError('missing', `There is no store at ${source.location}.`)
  if (state.copyingFrom !== undefined) throw unfinishedCopyError(source.location)
  return state
}

/**
 * Says how a target stands to a source.
 *
 * @throws {StoreError} `refused` when it is the source itself or holds anything else than a copy of it.
 */
export async function checkTarget(source: CopySource, target: CopySource): Promise<TargetState> {
  const [from, to] = [await readSourceState(source), await target.state()]
  if (to === undefined) return 'missing'
  if (to.id === from.id) {
    throw new StoreError(
      'refused',
      `${source.location} and ${target.location} are one store, or one is a duplicate of the other's file: a store is ` +
        'copied to another place.',
    )
  }
  if (to.copyingFrom === from.id) return 'begun'
  if (to.copyingFrom !== undefined) {
    throw new StoreError(
      'refused',
      `A copy of another store into ${target.location} has not been finished: finish that one, or take another target.`,
    )
  }
  if (to.isEmpty) return 'empty'
  if (to.finishedCopyOf === from.id) return 'unchanged'
  if (await readCursorSecret(source) === await readCursorSecret(target)) return 'finished'
  throw new StoreError(
    'refused',
    `The store ${target.location} is in use already: it holds partners, content or an audit trail of its own. A store is ` +
      'copied into an empty one.',
  )
}

/** 256 random bits: two stores have the same only when one was copied from the other, or both from a third. */
async function readCursorSecret({ tables }: CopySource): Promise<string | undefined> {
  const settings = await tables.settings.read(undefined, 10)
  return settings.find(({ name }) => name === 'cursor_secret')?.value
}

/** What a store notes of the copy that made it, once that is finished: the id of its source, and what it was then. */

/** @param contents Other contents of a store have another text. */
export function formatCopyMark(from: string, contents: string): string {
  return `${from} ${contents}`
}

/** The id of the source, for as long as the contents are what they were. */
export function parseCopyMark(mark: string | null, contents: string): string | undefined {
  const [from] = mark?.split(' ', 1) ?? []
  return from !== undefined && mark === formatCopyMark(from, contents) ? from : undefined
}
