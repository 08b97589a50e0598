import { createHash } from 'node:crypto'
import { compareCodePoints } from '../../../core/lib/text.ts'
import type { CopySource, ReadableTable } from './source-and-target.ts'
import { type RowKey, TABLE_NAMES, type TableName, TABLES, type TableSpec } from './tables.ts'

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
  source: CopySource,
  target: CopySource,
  now: number,
  progress: (table: TableName, rows: number) => void,
): Promise<readonly TableReport[]> {
  const reports: TableReport[] = []
  for (const name of TABLE_NAMES) reports.push(await verifyTable(name, source, target, now, progress))
  return reports
}

async function verifyTable<Name extends TableName>(
  table: Name,
  source: CopySource,
  target: CopySource,
  now: number,
  progress: (table: TableName, rows: number) => void,
): Promise<TableReport> {
  const spec = TABLES[table]
  const [sourceChecksum, targetChecksum] = [createChecksum(), createChecksum()]
  let differsAt: string | undefined
  for await (const chunk of compareTables(spec, source.tables[table], target.tables[table], now)) {
    sourceChecksum.add(chunk.texts[0])
    targetChecksum.add(chunk.texts[1])
    if (chunk.firstDifference !== undefined) differsAt ??= rowLabel(spec, chunk.firstDifference)
    progress(table, sourceChecksum.rows())
  }
  const checksum = sourceChecksum.digest()
  const same = checksum === targetChecksum.digest() && sourceChecksum.rows() === targetChecksum.rows()
  return { table, rows: sourceChecksum.rows(), checksum, same, differsAt }
}

function rowLabel<R>(spec: TableSpec<R>, row: R): string {
  return spec.label?.(row) ?? spec.key(row).join(' ')
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

/** Enough that asking costs little beside reading, and few enough to hold and to write at once. */
const pageRows = 500

/** What lies between two keys, on both sides. */
export interface Chunk<R> {
  /** The texts of the rows of each side, in the order of their keys. */
  readonly texts: readonly [one: readonly string[], other: readonly string[]]
  /** Rows of the one side of which the other has none with the key. */
  readonly missing: readonly R[]
  /** Rows of the one side that the other has otherwise. */
  readonly changed: readonly R[]
  /** Rows of the other side of which the one has none with the key. */
  readonly surplus: readonly R[]
  /** The first row that is missing, changed or surplus. */
  readonly firstDifference: R | undefined
}

/**
 * Compares two tables from their first key to their last, a page of each at a time. The next pages are read while a
 * stretch is worked on.
 *
 * @param now Rows that are not to be there at this instant are passed over on both sides.
 */
export async function* compareTables<R>(
  form: TableSpec<R>,
  source: ReadableTable<R>,
  target: ReadableTable<R>,
  now: number,
): AsyncGenerator<Chunk<R>> {
  const read = async (after: RowKey | undefined) =>
    await Promise.all([source.read(after, pageRows), target.read(after, pageRows)])

  for (let pages: Promise<readonly (readonly R[])[]> | undefined = read(undefined); pages !== undefined;) {
    const [sourceRows, targetRows] = await pages as [readonly R[], readonly R[]]
    const end = commonEnd(form, sourceRows, targetRows)
    pages = end === undefined ? undefined : read(end)
    // Whoever stops in the middle asks for no more of them, and has no use for why they could not be read.
    pages?.catch(() => undefined)
    yield compareItems(itemsUpTo(form, sourceRows, end, now), itemsUpTo(form, targetRows, end, now))
  }
}

/** The key up to which both sides are known, `undefined` when both are known to their ends. */
function commonEnd<R>(form: TableSpec<R>, ...sides: readonly (readonly R[])[]): RowKey | undefined {
  const ends = sides.filter((rows) => rows.length === pageRows).map((rows) => form.key(rows.at(-1)!))
  return ends.sort(compareKeys)[0]
}

/** A row with what it is compared by. */
interface Item<R> {
  readonly row: R
  readonly key: RowKey
  readonly text: string
}

function itemsUpTo<R>(
  form: TableSpec<R>,
  rows: readonly R[],
  end: RowKey | undefined,
  now: number,
): Item<R>[] {
  const items: Item<R>[] = []
  for (const row of rows) {
    const key = form.key(row)
    if (end !== undefined && compareKeys(key, end) > 0) break
    if (form.isLive?.(row, now) ?? true) items.push({ row, key, text: form.text(row) })
  }
  return items
}

function compareItems<R>(sourceItems: readonly Item<R>[], targetItems: readonly Item<R>[]): Chunk<R> {
  const missing: R[] = []
  const changed: R[] = []
  const surplus: R[] = []
  let firstDifference: R | undefined
  for (
    let sourceIndex = 0, targetIndex = 0;
    sourceIndex < sourceItems.length || targetIndex < targetItems.length;
  ) {
    const sourceItem = sourceItems[sourceIndex]
    const targetItem = targetItems[targetIndex]
    const order = sourceItem === undefined
      ? 1
      : targetItem === undefined
      ? -1
      : compareKeys(sourceItem.key, targetItem.key)
    if (order <= 0) sourceIndex++
    if (order >= 0) targetIndex++
    if (order === 0 && sourceItem!.text === targetItem!.text) continue
    firstDifference ??= (sourceItem !== undefined && order <= 0 ? sourceItem : targetItem!).row
    if (order < 0) missing.push(sourceItem!.row)
    else if (order > 0) surplus.push(targetItem!.row)
    else changed.push(sourceItem!.row)
  }
  const texts = [sourceItems.map(({ text }) => text), targetItems.map(({ text }) => text)] as const
  return { texts, missing, changed, surplus, firstDifference }
}

/** As both stores order their rows. */
function compareKeys(a: RowKey, b: RowKey): number {
  for (let part = 0; part < a.length; part++) {
    const left = a[part]!
    const right = b[part]!
    const order = typeof left === 'number'
      ? left - (right as number)
      : compareCodePoints(left, right as string)
    if (order !== 0) return order
  }
  return 0
}
