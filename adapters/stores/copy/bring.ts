import type { SourceArchive, TargetArchive } from './archive.ts'
import { compareTables, type Stretch } from './compare.ts'
import { type ArchiveRows, type TableName, TABLES } from './tables.ts'

/** What is written and removed of a stretch in which two tables differ. */
interface Move<R> {
  readonly put: readonly R[]
  readonly remove: readonly R[]
}

/** Called with the number of rows of a table that have been looked at. */
type Progress = (table: TableName, rows: number) => void

/** Makes the tables of a target the same as those of a source, one after the other. */
export async function bringTables(
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
