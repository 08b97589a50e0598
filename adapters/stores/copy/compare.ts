import { createHash } from 'node:crypto'
import { compareCodePoints } from '../../../core/lib/text.ts'
import type { Value } from '../row-format.ts'
import { StoreError } from '../store-error.ts'
import { COPIED_TABLES, type CopiedTable, TABLE_NAMES, type TableName } from '../tables.ts'
import type { CopySource, Row } from './source-and-target.ts'

/** How a table of the source compares with the same table of the target. */
export interface TableReport {
  readonly table: TableName
  /** Rows of the source. */
  readonly rows: number
  /** SHA-256 of the source's rows in the order of their keys: each as a JSON array and a line feed, in UTF-8. */
  readonly checksum: string
  /** Whether the target has as many rows and the same checksum. */
  readonly same: boolean
  /** The first row that differs or that only one store has. */
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
  for (const table of TABLE_NAMES) {
    reports.push(await verifyTable(table, source, target, now, (rows) => progress(table, rows)))
  }
  return reports
}

async function verifyTable(
  table: TableName,
  source: CopySource,
  target: CopySource,
  now: number,
  progress: (rows: number) => void,
): Promise<TableReport> {
  const [sourceChecksum, targetChecksum] = [createChecksum(), createChecksum()]
  let differsAt: string | undefined
  for await (const { texts, firstDifference } of compareTables(table, source, target, now)) {
    sourceChecksum.add(texts[0])
    targetChecksum.add(texts[1])
    if (firstDifference !== undefined) differsAt ??= rowLabel(table, firstDifference)
    progress(sourceChecksum.rows())
  }
  const [rows, checksum] = [sourceChecksum.rows(), sourceChecksum.digest()]
  const same = checksum === targetChecksum.digest() && rows === targetChecksum.rows()
  return { table, rows, checksum, same, differsAt }
}

/** What a message calls a row. It contains neither a secret nor a value that a partner sent. */
function rowLabel(table: TableName, row: Row): string {
  if (table === 'settings') return 'its only row'
  if (table === 'idempotency_keys') return `${row[0]} ${row[4]}`
  return keyOf(COPIED_TABLES[table], row).join(' ')
}

/** The key of a row: its first columns. */
export function keyOf({ keyLength }: CopiedTable, row: Row): Row {
  return row.slice(0, keyLength)
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

/** Large enough that a query costs little per row, and small enough to hold and to write in one transaction. */
const pageRows = 500

/** The rows of both stores between two keys. */
export interface Chunk {
  /** The rows of each store as text, in the order of their keys. */
  readonly texts: readonly [source: readonly string[], target: readonly string[]]
  /** Rows of the source whose key the target lacks. */
  readonly missing: readonly Row[]
  /** Rows of the source that differ from the target's row with the same key. */
  readonly changed: readonly Row[]
  /** Rows of the target whose key the source lacks. */
  readonly surplus: readonly Row[]
  /** The first row that is missing, changed or surplus. */
  readonly firstDifference: Row | undefined
}

/**
 * Compares a table of two stores from its first key to its last, one page of each at a time. The next pages are read
 * while the caller works on a chunk.
 *
 * @param target `undefined` compares with an empty table.
 * @param now Idempotency keys that have expired by this instant are skipped on both sides.
 */
export async function* compareTables(
  table: TableName,
  source: CopySource,
  target: CopySource | undefined,
  now: number,
): AsyncGenerator<Chunk> {
  const form = COPIED_TABLES[table]
  const isLive = ([, , , , , , expiresAt]: Row) => table !== 'idempotency_keys' || Number(expiresAt) > now
  const read = (after: Row | undefined) =>
    Promise.all([readPage(table, source, after), target === undefined ? [] : readPage(table, target, after)])

  for (let pages: ReturnType<typeof read> | undefined = read(undefined); pages !== undefined;) {
    const [sourceRows, targetRows] = await pages
    const end = commonEnd(form, sourceRows, targetRows)
    pages = end === undefined ? undefined : read(end)
    // A caller that stops early never awaits these pages: their failure must not be an unhandled rejection.
    pages?.catch(() => undefined)
    yield compareItems(
      itemsUpTo(form, sourceRows, end).filter(({ row }) => isLive(row)),
      itemsUpTo(form, targetRows, end).filter(({ row }) => isLive(row)),
    )
  }
}

/** @throws {StoreError} `refused` for an integer that the other kind of store could not hold. */
async function readPage(
  table: TableName,
  store: CopySource,
  after: Row | undefined,
): Promise<readonly Row[]> {
  const rows = await store.tables[table].read(after, pageRows)
  if (rows.every((row) => row.every(isStorable))) return rows
  const advice = table === 'audit' ? ' audit verify names the first such entry.' : ''
  throw new StoreError(
    'refused',
    `The store ${store.location} cannot be copied: its table ${table} contains a number that this program never ` +
      `writes.${advice}`,
  )
}

function isStorable(value: Value): boolean {
  return typeof value !== 'number' || Number.isSafeInteger(value)
}

/** The key up to which both pages are complete, `undefined` when both reach the end of their table. */
function commonEnd(form: CopiedTable, ...pages: readonly (readonly Row[])[]): Row | undefined {
  const ends = pages.filter((rows) => rows.length === pageRows).map((rows) => keyOf(form, rows.at(-1)!))
  return ends.sort(compareKeys)[0]
}

interface Item {
  readonly row: Row
  readonly key: Row
  readonly text: string
}

function itemsUpTo(form: CopiedTable, rows: readonly Row[], end: Row | undefined): Item[] {
  return rows.map((row) => ({ row, key: keyOf(form, row), text: JSON.stringify(row) }))
    .filter(({ key }) => end === undefined || compareKeys(key, end) <= 0)
}

function compareItems(sourceItems: readonly Item[], targetItems: readonly Item[]): Chunk {
  const missing: Row[] = []
  const changed: Row[] = []
  const surplus: Row[] = []
  let firstDifference: Row | undefined
  let [sourceIndex, targetIndex] = [0, 0]
  while (sourceIndex < sourceItems.length || targetIndex < targetItems.length) {
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
    firstDifference ??= (order <= 0 ? sourceItem! : targetItem!).row
    if (order < 0) missing.push(sourceItem!.row)
    else if (order > 0) surplus.push(targetItem!.row)
    else changed.push(sourceItem!.row)
  }
  const texts = [sourceItems.map(({ text }) => text), targetItems.map(({ text }) => text)] as const
  return { texts, missing, changed, surplus, firstDifference }
}

/** Orders keys as both kinds of store do: text by code points. */
function compareKeys(a: Row, b: Row): number {
  for (const [part, left] of a.entries()) {
    const right = b[part]!
    const order = typeof left === 'number'
      ? left - Number(right)
      : compareCodePoints(String(left), String(right))
    if (order !== 0) return order
  }
  return 0
}
