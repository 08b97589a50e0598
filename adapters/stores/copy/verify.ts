import { createHash } from 'node:crypto'
import type { SourceArchive } from './archive.ts'
import { compareTables } from './compare.ts'
import { TABLE_NAMES, type TableForm, type TableName, TABLES } from './tables.ts'

/** How a table of the source compares with that of the target. */
export interface TableReport {
  readonly table: TableName
  /** Rows of the source. */
  readonly rows: number
  /** SHA-256 of the rows of the source in the order of their keys: of each the text and a line feed, in UTF-8. */
  readonly checksum: string
  /** Whether the target has as many rows and the same checksum. */
  readonly same: boolean
  /** The first row that differs or that only one of them has. */
  readonly differsAt: string | undefined
}

/** Reads all tables of both stores from end to end. */
export async function verifyTables(
  source: SourceArchive,
  target: SourceArchive,
  now: number,
  progress: (table: TableName, rows: number) => void,
): Promise<readonly TableReport[]> {
  const reports: TableReport[] = []
  for (const name of TABLE_NAMES) reports.push(await verifyTable(name, source, target, now, progress))
  return reports
}

async function verifyTable<Name extends TableName>(
  table: Name,
  source: SourceArchive,
  target: SourceArchive,
  now: number,
  progress: (table: TableName, rows: number) => void,
): Promise<TableReport> {
  const form = TABLES[table]
  const [ours, theirs] = [createChecksum(), createChecksum()]
  let differsAt: string | undefined
  for await (const stretch of compareTables(form, source.tables[table], target.tables[table], now)) {
    ours.add(stretch.texts[0])
    theirs.add(stretch.texts[1])
    if (stretch.firstDifference !== undefined) differsAt ??= nameOf(form, stretch.firstDifference)
    progress(table, ours.rows())
  }
  const checksum = ours.digest()
  const same = checksum === theirs.digest() && ours.rows() === theirs.rows()
  return { table, rows: ours.rows(), checksum, same, differsAt }
}

function nameOf<R>(form: TableForm<R>, row: R): string {
  return form.name?.(row) ?? form.key(row).join(' ')
}

function createChecksum() {
  const hash = createHash('sha256')
  let rows = 0
  return {
    add(texts: readonly string[]): void {
      if (texts.length === 0) return
      rows += texts.length
      hash.update(`${texts.join('\n')}\n`, 'utf8')
    },
    rows: () => rows,
    digest: () => hash.digest('hex'),
  }
}
