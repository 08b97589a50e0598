import { StoreError, unfinishedCopyError } from '../store-error.ts'
import { COPIED_TABLES, TABLE_NAMES, type TableName } from '../tables.ts'
import {
  compareTable,
  compareTables,
  type CopyOptions,
  type Differences,
  keyOf,
  type TableReport,
} from './compare.ts'
import type { CopySource, CopyTarget, Row, StoreState } from './ends.ts'

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
  await syncTables(source, target, options)
  await target.refreshStatistics()
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
  const tables = await compareTables(source, target, options)
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
  const tables = await compareTables(source, existing, options)
  if (targetState === 'modified' && !tables.every(isEqual)) throw divergedError(source, target!)
  return tables
}

/** Whether a table of the target has the same rows as the source's. */
function isEqual({ differsAt }: TableReport): boolean {
  return differsAt === undefined
}

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

/** `finished`: a finished copy of this source; `modified`: perhaps one that was changed since. */
type TargetState = 'missing' | 'empty' | 'begun' | 'finished' | 'modified'

/**
 * Determines what a target holds.
 *
 * @throws {StoreError} `refused` when it is the source itself or holds anything but a copy of it.
 */
async function checkTarget(source: CopySource, target: CopySource): Promise<TargetState> {
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

/** 256 random bits, equal only when one store was copied from the other or both from a third. */
async function readCursorSecret(store: CopySource): Promise<Row[number] | undefined> {
  const [row] = await store.read('settings', undefined)
  return row?.[COPIED_TABLES.settings.columns.indexOf('cursor_secret')]
}

function divergedError(source: CopySource, target: CopySource): StoreError {
  return new StoreError(
    'refused',
    `The store ${target.location} is a finished copy of ${source.location} that has been used since: nothing was written.`,
  )
}

/** Makes the tables of a target equal to those of a source, one after the other. */
async function syncTables(source: CopySource, target: CopyTarget, options: CopyOptions): Promise<void> {
  const sync = (
    table: TableName,
    rowsOf = ({ missing, changed }: Differences) => [...missing, ...changed],
    surplusOf = ({ surplus }: Differences) => surplus,
  ) =>
    compareTable(table, source, target, options, async (differences) => {
      const [rows, surplus] = [rowsOf(differences), surplusOf(differences)]
      if (rows.length + surplus.length === 0) return
      await target.write(table, rows, surplus.map((row) => keyOf(table, row)))
    })

  for (const table of TABLE_NAMES) {
    // Industries refer to each other in any order, and profiles to industries: all industries exist first, then they
    // get their parents, and surplus ones go after the profiles.
    if (table === 'industries') await sync(table, ({ missing }) => missing.map(withoutParent), () => [])
    else await sync(table)
    if (table === 'profiles') await sync('industries')
  }
}

function withoutParent(row: Row): Row {
  return row.with(COPIED_TABLES.industries.columns.indexOf('parent_slug'), null)
}
