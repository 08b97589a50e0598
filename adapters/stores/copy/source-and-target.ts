/** Both ends of `store copy`: everything that a store keeps, table by table, as the rows of its SQL tables. */
import type { MaybePromise } from '../../../core/lib/promise.ts'
import type { ProfileRecord } from '../../../core/ports/content.ts'
import type { Draft } from '../content-import.ts'
import type { Value } from '../row-format.ts'
import { StoreError, unfinishedCopyError } from '../store-error.ts'
import { COPIED_TABLES, type CopiedTable, PROFILES, TABLE_NAMES, type TableName } from '../tables.ts'

/** The values of a table's columns, or of those that are its key. */
export type Row = readonly Value[]

interface ReadableTable {
  /** At most `limit` rows in the order of their keys, starting after the key `after`. */
  read(after: Row | undefined, limit: number): MaybePromise<readonly Row[]>
}

export interface WritableTable extends ReadableTable {
  /**
   * Creates or replaces rows by key and removes others, in one durable transaction. Data that follows from a row, such
   * as the listings of a profile, is written and removed with it.
   *
   * @throws {StoreError} `refused` when a row refers to one that does not exist.
   */
  write(put: readonly Row[], removedKeys: readonly Row[]): MaybePromise<void>
}

/** The state of a store before a copy. */
export interface StoreState {
  /** Tells the store from all others. */
  readonly id: string
  /** Whether the store was never written to. */
  readonly isEmpty: boolean
  /** The id of the store that an unfinished copy into this one comes from. */
  readonly copyingFrom: string | undefined
  /** The id of the store that this one is a finished copy of, unless it was changed since. */
  readonly finishedCopyOf: string | undefined
}

/** A store to copy from. It is only read. */
export interface CopySource {
  /** The place of the store for messages, without user and password. */
  readonly location: string
  /** `undefined` when there is no store yet. @throws {StoreError} `refused` when it has to be migrated first. */
  state(): MaybePromise<StoreState | undefined>
  /** Equal tokens mean that nothing was changed in between, not even a counter or the last use of a key. */
  changeToken(): MaybePromise<string>
  readonly tables: Readonly<Record<TableName, ReadableTable>>
  close(): MaybePromise<void>
}

export interface CopyTarget extends CopySource {
  readonly tables: Readonly<Record<TableName, WritableTable>>
  /**
   * Creates the store if necessary, and marks it as unfinished: from now on it refuses to be used. It gets a new id, so
   * that a program that has it open does not go on with it after the copy either.
   *
   * @param from The id of the source.
   * @throws {StoreError} as `checkStillCopyable` does.
   */
  begin(from: string): MaybePromise<void>
  /** Called after the last write, before the comparison. */
  refreshStatistics?(): MaybePromise<void>
  /** Removes the mark, and records the source and the state of this store. */
  finish(from: string): MaybePromise<void>
}

export function openTables(
  open: (table: CopiedTable, name: TableName) => WritableTable,
): CopyTarget['tables'] {
  const tables = TABLE_NAMES.map((name) => [name, open(COPIED_TABLES[name], name)])
  return Object.fromEntries(tables)
}

/** What a target holds before the copy. */
type TargetState =
  /** No store. */
  | 'missing'
  /** A store that was never written to. */
  | 'empty'
  /** An unfinished copy of this source. */
  | 'begun'
  /** A finished copy of this source, unchanged since. */
  | 'finished'
  /** Perhaps a finished copy of this source that was changed since. */
  | 'modified'

/**
 * The state of a store that can be copied.
 *
 * @throws {StoreError} `missing` when there is none, `refused` when it is an unfinished copy itself.
 */
export async function readSourceState(source: CopySource): Promise<StoreState> {
  const state = await source.state()
  if (state === undefined) throw new StoreError('missing', `There is no store at ${source.location}.`)
  if (state.copyingFrom !== undefined) throw unfinishedCopyError(source.location)
  return state
}

/**
 * Determines what a target holds.
 *
 * @throws {StoreError} `refused` when it is the source itself or holds anything but a copy of it.
 */
export async function checkTarget(source: CopySource, target: CopySource): Promise<TargetState> {
  const [from, to] = [await readSourceState(source), await target.state()]
  if (to === undefined) return 'missing'
  if (to.id === from.id) {
    throw new StoreError(
      'refused',
      `${source.location} and ${target.location} are one store, or one is a duplicate of the other's file: copy the ` +
        'store to another place.',
    )
  }
  if (to.copyingFrom === from.id) return 'begun'
  if (to.copyingFrom !== undefined) {
    throw new StoreError(
      'refused',
      `A copy of another store into ${target.location} has not been finished: finish that copy, or choose another target.`,
    )
  }
  if (to.isEmpty) return 'empty'
  if (to.finishedCopyOf === from.id) return 'finished'
  if (await readCursorSecret(source) === await readCursorSecret(target)) return 'modified'
  throw new StoreError(
    'refused',
    `The store ${target.location} is in use already: it holds partners, content or an audit log of its own. A store can ` +
      'only be copied into an empty one.',
  )
}

/**
 * Whether a copy has to be marked as begun. Called in the transaction that marks it: another program may have written
 * to the store since `checkTarget`.
 *
 * @returns false when the mark is there already.
 * @throws {StoreError} `refused` when the store is neither empty nor a copy of `from`, unfinished or unchanged since.
 */
export function checkStillCopyable(
  { copyingFrom, finishedCopyOf, isEmpty }: StoreState,
  from: string,
  location: string,
): boolean {
  if (copyingFrom === from) return false
  if (copyingFrom === undefined && (isEmpty || finishedCopyOf === from)) return true
  throw new StoreError('refused', `The store ${location} is not empty any more: nothing was copied.`)
}

/** 256 random bits, equal only when one store was copied from the other or both from a third. */
async function readCursorSecret({ tables }: CopySource): Promise<Value | undefined> {
  const [row] = await tables.settings.read(undefined, 1)
  return row?.[COPIED_TABLES.settings.columns.indexOf('cursor_secret')]
}

/** Parses a row of the table of profiles, whose listings and words are written with it. */
export function toProfileDraft(row: Row): Draft<ProfileRecord> {
  return {
    slug: String(row[0]),
    record: PROFILES.read(row),
    row: row.slice(0, -1),
    updatedAt: Number(row.at(-1)),
  }
}

/**
 * What a store records when a copy into it is finished: the id of the source, and the store's own state at that time.
 *
 * @param contents Changes whenever the store does.
 */
export function formatCopyMark(from: string, contents: string): string {
  return `${from} ${contents}`
}

/** The id of the source, unless the contents have changed since. */
export function parseCopyMark(mark: string | null, contents: string): string | undefined {
  const [from] = mark?.split(' ', 1) ?? []
  return from !== undefined && mark === formatCopyMark(from, contents) ? from : undefined
}
