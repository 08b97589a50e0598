import { StoreError } from '../store-error.ts'
import { COPIED_TABLES, TABLE_NAMES, type TableName } from '../tables.ts'
import { type CompareOptions, compareTable, compareTables, keyOf, type TableReport } from './compare.ts'
import {
  checkTarget,
  type CopySource,
  type CopyTarget,
  readSourceState,
  type Row,
} from './source-and-target.ts'

export interface CopyOptions {
  /** Milliseconds since the epoch: idempotency keys that have expired by then are not copied. */
  readonly now: number
  /** Called page by page with the number of rows of a table that have been compared. */
  readonly progress?: (doing: 'copying' | 'comparing', table: TableName, rows: number) => void
}

export interface CopyReport {
  /** Every table, compared after the last row was written. */
  readonly tables: readonly TableReport[]
  /** Whether both stores are equal, so that the target may be used. */
  readonly isFinished: boolean
  /** Whether the source was changed during the copy or the comparison. */
  readonly sourceChanged: boolean
}

/**
 * Copies a store into an empty one. An interrupted copy can be resumed any number of times, and a finished one repeated
 * until the target is used: rows that the target already has are compared and not written again. After the last write,
 * both stores are read from end to end; the target becomes usable only when they are equal.
 *
 * @throws {StoreError} `refused`, with nothing written, when the target holds anything but this copy; also when the
 * source changes so that a row refers to one that was not there a moment before.
 */
export async function copyStore(
  source: CopySource,
  target: CopyTarget,
  options: CopyOptions,
): Promise<CopyReport> {
  const { id } = await readSourceState(source)
  const targetState = await checkTarget(source, target)
  const initialToken = await source.changeToken()
  const compare = () => compareStores(source, target, initialToken, options)
  if (targetState === 'modified' || targetState === 'finished') {
    const report = await compare()
    if (report.isFinished) return report
    if (targetState === 'modified') throw divergedError(source, target)
  }
  await target.begin(id)
  await syncTables(source, target, compareOptions('copying', options))
  await target.refreshStatistics?.()
  const report = await compare()
  if (report.isFinished) await target.finish(id)
  return report
}

async function compareStores(
  source: CopySource,
  target: CopySource,
  initialToken: string,
  options: CopyOptions,
): Promise<CopyReport> {
  const tokenBefore = await source.changeToken()
  const tables = await compareTables(source, target, compareOptions('comparing', options))
  const tokenAfter = await source.changeToken()
  // Rows read before a change and rows read after it may never have existed together.
  const isFinished = tokenAfter === tokenBefore && tables.every(isEqual)
  return { tables, isFinished, sourceChanged: tokenAfter !== initialToken }
}

/**
 * Compares both stores and writes nothing: `copyStore` would write and remove the rows that differ.
 *
 * @param target `undefined` when there is no store yet.
 * @throws {StoreError} `refused` when the target holds anything but this copy.
 */
export async function planCopy(
  source: CopySource,
  target: CopySource | undefined,
  options: CopyOptions,
): Promise<readonly TableReport[]> {
  await readSourceState(source)
  const targetState = target === undefined ? 'missing' : await checkTarget(source, target)
  const existing = targetState === 'missing' ? undefined : target
  const tables = await compareTables(source, existing, compareOptions('comparing', options))
  if (targetState === 'modified' && !tables.every(isEqual)) throw divergedError(source, target!)
  return tables
}

/** Whether a table of the target has the same rows as the source's. */
function isEqual({ differsAt }: TableReport): boolean {
  return differsAt === undefined
}

function compareOptions(
  doing: 'copying' | 'comparing',
  { now, progress }: CopyOptions,
): CompareOptions {
  return { now, progress: (table, rows) => progress?.(doing, table, rows) }
}

function divergedError(source: CopySource, target: CopySource): StoreError {
  return new StoreError(
    'refused',
    `The store ${target.location} is a finished copy of ${source.location} that has been used since: nothing was written.`,
  )
}

/** Makes the tables of a target equal to those of a source, one after the other. */
async function syncTables(source: CopySource, target: CopyTarget, options: CompareOptions): Promise<void> {
  const sync = (table: TableName) =>
    compareTable(
      table,
      source,
      target,
      options,
      ({ missing, changed, surplus }) => writeRows(target, table, [...missing, ...changed], surplus),
    )

  for (const table of TABLE_NAMES) {
    // Industries refer to each other in any order, and profiles to industries: all industries exist first, then they
    // get their parents, and surplus ones go after the profiles.
    if (table === 'industries') {
      await compareTable(
        table,
        source,
        target,
        options,
        ({ missing }) => writeRows(target, table, missing.map(withoutParent), []),
      )
      continue
    }
    await sync(table)
    if (table === 'profiles') await sync('industries')
  }
}

async function writeRows(
  target: CopyTarget,
  table: TableName,
  rows: readonly Row[],
  surplus: readonly Row[],
): Promise<void> {
  if (rows.length + surplus.length === 0) return
  await target.tables[table].write(rows, surplus.map((row) => keyOf(COPIED_TABLES[table], row)))
}

function withoutParent(row: Row): Row {
  return row.with(COPIED_TABLES.industries.columns.indexOf('parent_slug'), null)
}
