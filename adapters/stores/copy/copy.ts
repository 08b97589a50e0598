import { StoreError } from '../store-error.ts'
import { type Chunk, compareTables, type TableReport, verifyTables } from './compare.ts'
import { checkTarget, type CopySource, type CopyTarget, readSourceState } from './source-and-target.ts'
import { type CopiedRows, TABLE_NAMES, type TableName, TABLES } from './tables.ts'

/** How a copy is made. */
export interface CopyOptions {
  /** Milliseconds since the epoch: idempotency keys that have expired by then stay behind. */
  readonly now: number
  /** Called page by page with the number of rows of a table that have been looked at. */
  readonly progress?: (doing: 'copying' | 'comparing', table: TableName, rows: number) => void
}

/** What came of a copy. */
export interface CopyReport {
  /** Every table, compared after the last row was written. */
  readonly tables: readonly TableReport[]
  /** Whether the copy is finished: both stores are the same, and the target may be used. */
  readonly isFinished: boolean
  /** Whether the source was changed meanwhile, be it before the tables were compared. */
  readonly sourceChanged: boolean
}

/** What there is to be done for a table. */
export interface TablePlan {
  readonly table: TableName
  /** Rows of the source. */
  readonly rows: number
  /** Those that the target lacks or has otherwise. */
  readonly toWrite: number
  /** Rows that only the target has. */
  readonly toRemove: number
}

/**
 * Copies a store into an empty one, or goes on with a copy that was broken off: what is there already is compared and
 * not written again, so that a copy can be broken off at any moment and begun again any number of times, also once it
 * was finished, for as long as nobody has changed it. Once all is written, both stores are read from end to end, and only
 * when they are the same may the target be used.
 *
 * @throws {StoreError} `refused`, with nothing written, when the target holds anything else than this copy; and when
 * the source changes so that rows refer to what was not there a moment before.
 */
export async function copyStore(
  source: CopySource,
  target: CopyTarget,
  { now, progress }: CopyOptions,
): Promise<CopyReport> {
  const { id } = await readSourceState(source)
  const targetState = await checkTarget(source, target)
  const initialToken = await source.changeToken()
  if (targetState === 'finished' || targetState === 'unchanged') {
    const report = await compare()
    if (report.isFinished) return report
    if (targetState === 'finished') throw divergedError(source, target)
  }
  await target.begin(id)
  await syncTables(source, target, now, (table, rows) => progress?.('copying', table, rows))
  await target.refreshStatistics?.()
  const report = await compare()
  if (report.isFinished) await target.finish(id)
  return report

  async function compare(): Promise<CopyReport> {
    const tokenBefore = await source.changeToken()
    const tables = await verifyTables(
      source,
      target,
      now,
      (table, rows) => progress?.('comparing', table, rows),
    )
    const tokenAfter = await source.changeToken()
    // What was read before a change and what was read after it may never have been there together.
    const isFinished = tokenAfter === tokenBefore && tables.every(({ same }) => same)
    return { tables, isFinished, sourceChanged: tokenAfter !== initialToken }
  }
}

/**
 * Says what `copyStore` would do, and writes nothing.
 *
 * @param target `undefined` where there is no store yet.
 * @throws {StoreError} `refused` when the target holds anything else than this copy.
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
  if (targetState === 'finished' && differs) throw divergedError(source, target!)
  return plans
}

function divergedError(source: CopySource, target: CopySource): StoreError {
  return new StoreError(
    'refused',
    `The store ${target.location} is a finished copy of ${source.location} that has been used since: nothing was written.`,
  )
}

async function planTable<Name extends TableName>(
  table: Name,
  source: CopySource,
  target: CopySource | undefined,
  { now, progress }: CopyOptions,
): Promise<TablePlan> {
  const plan = { table, rows: 0, toWrite: 0, toRemove: 0 }
  const emptyTable = { read: () => [] }
  const chunks = compareTables(TABLES[table], source.tables[table], target?.tables[table] ?? emptyTable, now)
  for await (const { texts, missing, changed, surplus } of chunks) {
    plan.rows += texts[0].length
    plan.toWrite += missing.length + changed.length
    plan.toRemove += surplus.length
    progress?.('comparing', table, plan.rows)
  }
  return plan
}

/** What is written and removed of a stretch in which two tables differ. */
interface ChunkChanges<R> {
  readonly put: readonly R[]
  readonly remove: readonly R[]
}

/** Called with the number of rows of a table that have been looked at. */
type Progress = (table: TableName, rows: number) => void

/** Makes the tables of a target the same as those of a source, one after the other. */
async function syncTables(
  source: CopySource,
  target: CopyTarget,
  now: number,
  progress: Progress,
): Promise<void> {
  const syncTable = async <Name extends TableName>(
    name: Name,
    selectChanges: (stretch: Chunk<CopiedRows[Name]>) => ChunkChanges<CopiedRows[Name]> = allChanges,
  ): Promise<void> => {
    const form = TABLES[name]
    let rows = 0
    for await (const stretch of compareTables(form, source.tables[name], target.tables[name], now)) {
      const { put, remove } = selectChanges(stretch)
      if (put.length + remove.length > 0) await target.tables[name].write(put, remove.map(form.key))
      rows += stretch.texts[0].length
      progress(name, rows)
    }
  }

  // Before the rows that refer to them, and what is gone after those.
  await syncTable('settings')
  await syncTable('partners')
  await syncTable('keys')
  // Industries refer to each other, in no order: first they are all there, then they get their parents.
  await syncTable('industries', ({ missing }) => ({
    put: missing.map((industry) => ({ ...industry, parentSlug: undefined })),
    remove: [],
  }))
  await syncTable('profiles')
  await syncTable('industries')
  await syncTable('plans')
  await syncTable('banners')
  await syncTable('signups')
  await syncTable('idempotency_keys')
  await syncTable('signup_counts')
  await syncTable('request_counts')
  await syncTable('audit')
}

function allChanges<R>({ missing, changed, surplus }: Chunk<R>): ChunkChanges<R> {
  return { put: [...missing, ...changed], remove: surplus }
}
