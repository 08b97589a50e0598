import { StoreError } from '../store-error.ts'
import type { SourceArchive, TargetArchive } from './archive.ts'
import { compareTables, type Stretch } from './compare.ts'
import { judgeTarget, stateOfSource } from './standing.ts'
import { type ArchiveRows, TABLE_NAMES, type TableName, TABLES } from './tables.ts'
import { type TableReport, verifyTables } from './verify.ts'

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
  source: SourceArchive,
  target: TargetArchive,
  { now, progress }: CopyOptions,
): Promise<CopyReport> {
  const { id } = await stateOfSource(source)
  const standing = await judgeTarget(source, target)
  const atFirst = await source.changes()
  if (standing === 'finished' || standing === 'unchanged') {
    const report = await compare()
    if (report.isFinished) return report
    if (standing === 'finished') throw outgrown(source, target)
  }
  await target.begin(id)
  await bringTables(source, target, now, (table, rows) => progress?.('copying', table, rows))
  await target.settle?.()
  const report = await compare()
  if (report.isFinished) await target.finish(id)
  return report

  async function compare(): Promise<CopyReport> {
    const before = await source.changes()
    const tables = await verifyTables(
      source,
      target,
      now,
      (table, rows) => progress?.('comparing', table, rows),
    )
    const atLast = await source.changes()
    // What was read before a change and what was read after it may never have been there together.
    const isFinished = atLast === before && tables.every(({ same }) => same)
    return { tables, isFinished, sourceChanged: atLast !== atFirst }
  }
}

/**
 * Says what `copyStore` would do, and writes nothing.
 *
 * @param target `undefined` where there is no store yet.
 * @throws {StoreError} `refused` when the target holds anything else than this copy.
 */
export async function planCopy(
  source: SourceArchive,
  target: SourceArchive | undefined,
  options: CopyOptions,
): Promise<readonly TablePlan[]> {
  await stateOfSource(source)
  const standing = target === undefined ? 'missing' : await judgeTarget(source, target)
  const plans: TablePlan[] = []
  for (const name of TABLE_NAMES) {
    plans.push(await planTable(name, source, standing === 'missing' ? undefined : target, options))
  }
  const differs = plans.some(({ toWrite, toRemove }) => toWrite + toRemove > 0)
  if (standing === 'finished' && differs) throw outgrown(source, target!)
  return plans
}

function outgrown(source: SourceArchive, target: SourceArchive): StoreError {
  return new StoreError(
    'refused',
    `The store ${target.place} is a finished copy of ${source.place} that has been used since: nothing was written.`,
  )
}

async function planTable<Name extends TableName>(
  table: Name,
  source: SourceArchive,
  target: SourceArchive | undefined,
  { now, progress }: CopyOptions,
): Promise<TablePlan> {
  const plan = { table, rows: 0, toWrite: 0, toRemove: 0 }
  const nothing = { read: () => [] }
  const stretches = compareTables(TABLES[table], source.tables[table], target?.tables[table] ?? nothing, now)
  for await (const { texts, missing, changed, surplus } of stretches) {
    plan.rows += texts[0].length
    plan.toWrite += missing.length + changed.length
    plan.toRemove += surplus.length
    progress?.('comparing', table, plan.rows)
  }
  return plan
}

/** What is written and removed of a stretch in which two tables differ. */
interface Move<R> {
  readonly put: readonly R[]
  readonly remove: readonly R[]
}

/** Called with the number of rows of a table that have been looked at. */
type Progress = (table: TableName, rows: number) => void

/** Makes the tables of a target the same as those of a source, one after the other. */
async function bringTables(
  source: SourceArchive,
  target: TargetArchive,
  now: number,
  progress: Progress,
): Promise<void> {
  const bring = async <Name extends TableName>(
    name: Name,
    decide: (stretch: Stretch<ArchiveRows[Name]>) => Move<ArchiveRows[Name]> = all,
  ): Promise<void> => {
    const form = TABLES[name]
    let rows = 0
    for await (const stretch of compareTables(form, source.tables[name], target.tables[name], now)) {
      const { put, remove } = decide(stretch)
      if (put.length + remove.length > 0) await target.tables[name].write(put, remove.map(form.key))
      rows += stretch.texts[0].length
      progress(name, rows)
    }
  }

  // Before the rows that refer to them, and what is gone after those.
  await bring('settings')
  await bring('partners')
  await bring('keys')
  // Industries refer to each other, in no order: first they are all there, then they get their parents.
  await bring('industries', ({ missing }) => ({
    put: missing.map((industry) => ({ ...industry, parentSlug: undefined })),
    remove: [],
  }))
  await bring('profiles')
  await bring('industries')
  await bring('plans')
  await bring('banners')
  await bring('signups')
  await bring('idempotency_keys')
  await bring('signup_counts')
  await bring('request_counts')
  await bring('audit')
}

function all<R>({ missing, changed, surplus }: Stretch<R>): Move<R> {
  return { put: [...missing, ...changed], remove: surplus }
}
