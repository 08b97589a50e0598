/** What a store hands over and takes in when it is copied: everything that it keeps, table by table. */
import type { MaybePromise } from '../../../core/ports.ts'
import type { ArchiveRows, TableName } from './tables.ts'

/** What a row is found by, of one length and kind in a table. Texts are in the order of their code points. */
export type RowKey = readonly (string | number)[]

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
export interface ArchiveState {
  /** Tells it from all other stores. */
  readonly id: string
  /** Whether nobody has ever put anything into it. */
  readonly isEmpty: boolean
  /** The id of the store that a copy into this one is under way from. */
  readonly copiedFrom: string | undefined
  /** The id of the store that it is a finished copy of, if nothing in it was changed since. */
  readonly copyOf: string | undefined
}

/** A store that is copied from. Nothing in it is changed. */
export interface SourceArchive {
  /** Where it is, without user and password, for messages. */
  readonly place: string
  /**
   * `undefined` where there is no store yet.
   * @throws {StoreError} `refused` when it has to be migrated first.
   */
  state(): MaybePromise<ArchiveState | undefined>
  /** Equal texts mean that nothing was changed in between, be it a count or when a key was used. */
  changes(): MaybePromise<string>
  readonly tables: { readonly [Name in TableName]: ReadableTable<ArchiveRows[Name]> }
  close(): MaybePromise<void>
}

/** A store that is copied into. */
export interface TargetArchive extends SourceArchive {
  readonly tables: { readonly [Name in TableName]: WritableTable<ArchiveRows[Name]> }
  /**
   * Makes the store, if there is none, and marks it: from now on nobody may use it, not even who has it open. It gets
   * another id, so that who did will not go on with it either when it is done.
   *
   * @param from The id of the store that is copied.
   * @throws {StoreError} `refused` when it is neither empty nor a copy of `from`, unfinished or unchanged since.
   */
  begin(from: string): MaybePromise<void>
  /** Called when all has been written, before it is compared. */
  settle?(): MaybePromise<void>
  /** Takes the mark away, and notes what the copy was then. */
  finish(from: string): MaybePromise<void>
}
