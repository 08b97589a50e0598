import { createHash } from 'node:crypto'
import { compareCodePoints } from '../../../core/lib/text.ts'
import { StoreError } from '../store-error.ts'
import { COPIED_TABLES, TABLE_NAMES, type TableName } from '../tables.ts'
import { type CopySource, PAGE_ROWS, type Row } from './ends.ts'

export interface TableReport {
  readonly table: TableName
  readonly rows: number
  /** SHA-256 of the source's rows in the order of their keys: each as a JSON array and a line feed, in UTF-8. */
  readonly checksum: string
  /** Rows that the target lacks or that differ. */
  readonly toWrite: number
  /** Rows that only the target has. */
  readonly toRemove: number
  /** The first row to write or to remove; `undefined` when the tables are equal. */
  readonly differsAt: string | undefined
}

export interface CopyOptions {
  /** Milliseconds since the epoch: idempotency keys that have expired by then are skipped on both sides. */
  readonly now: number
  /** Called page by page with the number of rows of a table that have been compared. */
  readonly progress?: (doing: 'copying' | 'comparing', table: TableName, rows: number) => void
}

/** The differences between two stores from one key to another. */
export interface Differences {
  /** Rows of the source whose key the target lacks. */
  readonly missing: readonly Row[]
  /** Rows of the source that differ from the target's row with the same key. */
  readonly changed: readonly Row[]
  /** Rows of the target whose key the source lacks. */
  readonly surplus: readonly Row[]
}

/** Compares all tables. @param target `undefined` compares with an empty store. */
export async function compareTables(
  source: CopySource,
  target: CopySource | undefined,
  options: CopyOptions,
): Promise<readonly TableReport[]> {
  const reports: TableReport[] = []
  for (const table of TABLE_NAMES) reports.push(await compareTable(table, source, target, options))
  return reports
}

/**
 * Compares a table from its first key to its last, one page of each store at a time.
 *
 * @param copy Called with the differences of each page, while the next pages are read.
 */
export async function compareTable(
  table: TableName,
  source: CopySource,
  target: CopySource | undefined,
  { now, progress }: CopyOptions,
  copy?: (differences: Differences) => Promise<void>,
): Promise<TableReport> {
  const hash = createHash('sha256')
  let [rows, toWrite, toRemove] = [0, 0, 0]
  let differsAt: string | undefined
  for await (const [sourceRows, targetRows] of readPages(table, source, target, now)) {
    const texts = sourceRows.map((row) => JSON.stringify(row))
    for (const text of texts) hash.update(`${text}\n`, 'utf8')
    const differences = comparePages(table, sourceRows, texts, targetRows)
    rows += sourceRows.length
    toWrite += differences.missing.length + differences.changed.length
    toRemove += differences.surplus.length
    differsAt ??= firstLabel(table, differences)
    await copy?.(differences)
    progress?.(copy ? 'copying' : 'comparing', table, rows)
  }
  return { table, rows, checksum: hash.digest('hex'), toWrite, toRemove, differsAt }
}

/** What a message calls the first row that differs. It contains neither a secret nor a value that a partner sent. */
function firstLabel(table: TableName, { missing, changed, surplus }: Differences): string | undefined {
  const [row] = [...missing, ...changed, ...surplus].sort(compareKeys)
  if (row === undefined) return undefined
  if (table === 'settings') return 'its only row'
  if (table === 'idempotency_keys') return `${row[0]} ${row[4]}`
  return keyOf(table, row).join(' ')
}

/** The key of a row: its first columns. */
export function keyOf(table: TableName, row: Row): Row {
  return row.slice(0, COPIED_TABLES[table].keyLength)
}

/** The rows of both stores between the same keys, in the order of their keys. */
async function* readPages(
  table: TableName,
  source: CopySource,
  target: CopySource | undefined,
  now: number,
): AsyncGenerator<readonly [source: readonly Row[], target: readonly Row[]]> {
  const expiry = COPIED_TABLES.idempotency_keys.columns.indexOf('expires_at')
  const isLive = (row: Row) => table !== 'idempotency_keys' || Number(row[expiry]) > now
  const read = (after: Row | undefined) =>
    Promise.all([readPage(table, source, after), target === undefined ? [] : readPage(table, target, after)])

  for (let pages: ReturnType<typeof read> | undefined = read(undefined); pages !== undefined;) {
    const found: readonly (readonly Row[])[] = await pages
    // The key up to which all pages are complete, `undefined` when they all reach the end of their table.
    const [end] = found.filter((rows) => rows.length === PAGE_ROWS).map((rows) => keyOf(table, rows.at(-1)!))
      .sort(compareKeys)
    pages = end && read(end)
    // A caller that stops early never awaits these pages: their failure must not be an unhandled rejection.
    pages?.catch(() => undefined)
    const [ofSource, ofTarget] = found.map((rows) =>
      rows.filter((row) => isLive(row) && (end === undefined || compareKeys(keyOf(table, row), end) <= 0))
    )
    yield [ofSource!, ofTarget!]
  }
}

/** @throws {StoreError} `refused` for an integer that the other kind of store could not hold. */
async function readPage(
  table: TableName,
  store: CopySource,
  after: Row | undefined,
): Promise<readonly Row[]> {
  const rows = await store.read(table, after)
  const isStorable = (value: Row[number]) => typeof value !== 'number' || Number.isSafeInteger(value)
  if (rows.every((row) => row.every(isStorable))) return rows
  const advice = table === 'audit' ? ' audit verify names the first such entry.' : ''
  throw new StoreError(
    'refused',
    `The store ${store.location} cannot be copied: its table ${table} contains a number that this program never ` +
      `writes.${advice}`,
  )
}

/** @param texts The rows of the source as JSON. */
function comparePages(
  table: TableName,
  sourceRows: readonly Row[],
  texts: readonly string[],
  targetRows: readonly Row[],
): Differences {
  const keyText = (row: Row) => JSON.stringify(keyOf(table, row))
  const surplus = new Map(targetRows.map((row) => [keyText(row), row]))
  const [missing, changed]: [Row[], Row[]] = [[], []]
  for (const [index, row] of sourceRows.entries()) {
    const key = keyText(row)
    const found = surplus.get(key)
    surplus.delete(key)
    if (found === undefined) missing.push(row)
    else if (JSON.stringify(found) !== texts[index]) changed.push(row)
  }
  return { missing, changed, surplus: [...surplus.values()] }
}

/** Orders keys, and rows by their keys, as both kinds of store do: text by code points. */
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
