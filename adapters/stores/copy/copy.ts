import { StoreError } from '../store-error.ts'
import { COPIED_TABLES, TABLE_NAMES, type TableName } from '../tables.ts'
import { type Chunk, compareTables, keyOf, type TableReport, verifyTables } from './compare.ts'
import {
  checkTarget,
  type CopySource,
  type CopyTarget,
  readSourceState,
  type Row,
} from './source-and-target.ts'

/** How a copy is made. */
export interface CopyOptions {
  /** Milliseconds since the epoch: idempotency keys that have expired by then are not copied. */
  readonly now: number
  /** Called page by page with the number of rows of a table that have been compared. */
  readonly progress?: (doing: 'copying' | 'comparing', table: TableName, rows: number) => void
}

/** The result of a copy. */
export interface CopyReport {
  /** Every table, compared after the last row was written. */
  readonly tables: readonly TableReport[]
  /** Whether both stores are equal, so that the target may be used. */
  readonly isFinished: boolean
  /** Whether the source was changed during the copy or the comparison. */
  readonly sourceChanged: boolean
}

/** What a copy would do to a table. */
export interface TablePlan {
  readonly table: TableName
  /** Rows of the source. */
  readonly rows: number
  /** Rows that the target lacks or that differ. */
  readonly toWrite: number
  /** Rows that only the target has. */
  readonly toRemove: number
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
  const { now, progress } = options
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
  await syncTables(source, target, now, (table, rows) => progress?.('copying', table, rows))
  await target.refreshStatistics?.()
  const report = await compare()
  if (report.isFinished) await target.finish(id)
  return report
}

async function compareStores(
  source: CopySource,
  target: CopySource,
  initialToken: string,
  { now, progress }: CopyOptions,
): Promise<CopyReport> {
  const tokenBefore = await source.changeToken()
  const tables = await verifyTables(
    source,
    target,
    now,
    (table, rows) => progress?.('comparing', table, rows),
  )
  const tokenAfter = await source.changeToken()
  // Rows read before a change and rows read after it may never have existed together.
  const isFinished = tokenAfter === tokenBefore && tables.every(({ same }) => same)
  return { tables, isFinished, sourceChanged: tokenAfter !== initialToken }
}

/**
 * Plans what `copyStore` would do, and writes nothing.
 *
 * @param target `undefined` when there is no store yet.
 * @throws {StoreError} `refused` when the target holds anything but this copy.
 */
export async function planCopy(
  source: CopySource,
  target: CopySource | undefined,
  options: CopyOptions,
): Promise<readonly TablePlan[]> {
  await readSourceState(source)
  const targetState = target === undefined ? 'missing' : await checkTarget(source, target)
  const plans: TablePlan[] = []
  for (const name of TABLE_NAMES) {
    plans.push(await planTable(name, source, targetState === 'missing' ? undefined : target, options))
  }
  const differs = plans.some(({ toWrite, toRemove }) => toWrite + toRemove > 0)
  if (targetState === 'modified' && differs) throw divergedError(source, target!)
  return plans
}

function divergedError(source: CopySource, target: CopySource): StoreError {
  return new StoreError(
    'refused',
    `The store ${target.location} is a finished copy of ${source.location} that has been used since: nothing was written.`,
  )
}

async function planTable(
  table: TableName,
  source: CopySource,
  target: CopySource | undefined,
  { now, progress }: CopyOptions,
): Promise<TablePlan> {
  const plan = { table, rows: 0, toWrite: 0, toRemove: 0 }
  for await (const { texts, missing, changed, surplus } of compareTables(table, source, target, now)) {
    plan.rows += texts[0].length
    plan.toWrite += missing.length + changed.length
    plan.toRemove += surplus.length
    progress?.('comparing', table, plan.rows)
  }
  return plan
}

/** Makes the tables of a target equal to those of a source, one after the other. */
async function syncTables(
  source: CopySource,
  target: CopyTarget,
  now: number,
  progress: (table: TableName, rows: number) => void,
): Promise<void> {
  for (const table of TABLE_NAMES) {
    // Industries refer to each other in any order, and profiles to industries: all industries exist first, then they
    // get their parents, and surplus ones go after the profiles.
    const selectChanges = table === 'industries' ? withoutParents : allChanges
    await syncTable(table, source, target, now, progress, selectChanges)
    if (table === 'profiles') await syncTable('industries', source, target, now, progress, allChanges)
  }
}

async function syncTable(
  table: TableName,
  source: CopySource,
  target: CopyTarget,
  now: number,
  progress: (table: TableName, rows: number) => void,
  selectChanges: (chunk: Chunk) => ChunkChanges,
): Promise<void> {
  let rows = 0
  for await (const chunk of compareTables(table, source, target, now)) {
    const { put, remove } = selectChanges(chunk)
    if (put.length + remove.length > 0) {
      await target.tables[table].write(put, remove.map((row) => keyOf(COPIED_TABLES[table], row)))
    }
    rows += chunk.texts[0].length
    progress(table, rows)
  }
}

/** The rows of a chunk to write and to remove. */
interface ChunkChanges {
  readonly put: readonly Row[]
  readonly remove: readonly Row[]
}

function allChanges({ missing, changed, surplus }: Chunk): ChunkChanges {
  return { put: [...missing, ...changed], remove: surplus }
}

function withoutParents({ missing }: Chunk): ChunkChanges {
  const parent = COPIED_TABLES.industries.columns.indexOf('parent_slug')
  return { put: missing.map((row) => row.with(parent, null)), remove: [] }
}
