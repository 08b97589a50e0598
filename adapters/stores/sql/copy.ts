/** `store copy`: everything that a store keeps, table by table, into an empty one. */
import { createHash } from 'node:crypto'
import type { MaybePromise } from '../../../core/lib/promise.ts'
import type { ProfileRecord } from '../../../core/ports/content.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import type { ContentTable } from './content.ts'
import { type Dialect, query, rowsSql, type SqlQuery, upsertRowsSql, type Work } from './database.ts'
import { unfinishedCopyError } from './errors.ts'
import { INTEGER_COLUMNS, safeColumns, type SqlValue } from './row-format.ts'
import { randomHex } from './schema.ts'
import { COPIED_TABLES, type CopiedTable, PROFILES, TABLE_NAMES, type TableName } from './tables.ts'

/** A database with a store, or for one. */
export interface CopyDatabase {
  /** The place of the store for messages, without user and password. */
  readonly location: string
  readonly dialect: Dialect
  /** Whether its texts can have the character U+0000. */
  readonly takesNul: boolean
  readonly read: SqlQuery
  transaction(work: () => Work<unknown>): MaybePromise<unknown>
  /** Runs work that reads one state of the store. */
  snapshot<T>(work: (read: SqlQuery) => Promise<T>): Promise<T>
  /** @throws {StoreError} `refused` when a server uses the store. */
  checkUnused(): MaybePromise<void>
  /** The table of profiles, for one transaction. Listings and words are written with their profiles. */
  openProfileTable(): ContentTable<ProfileRecord>
  /** Whether there is a store. @throws {StoreError} `refused` when it has to be migrated first. */
  hasStore(): MaybePromise<boolean>
  /** Creates or migrates the store. */
  prepare(): MaybePromise<void>
  /** Has servers read the revision. */
  notify(): MaybePromise<void>
  refreshStatistics(): MaybePromise<void>
  close(): MaybePromise<void>
}

/** A table of a copy. */
export interface TableReport {
  readonly table: TableName
  readonly rows: number
  /** SHA-256 of the rows in the order of their keys: each as a JSON array and a line feed, in UTF-8. */
  readonly sha256: string
}

/** Called page by page with the number of rows of a table that have been copied or compared. */
export type CopyProgress = (doing: 'copying' | 'comparing', table: TableName, rows: number) => unknown

/**
 * Copies one state of a store that no server uses, and compares the copy with it. From its first row until both are
 * equal, the target is marked, and refuses to be opened.
 *
 * @param openTarget Opens the target, which is closed when the copy ends.
 * @throws {StoreError} `missing` without a source, `refused` when servers use it, when it changes during the copy,
 * when the target is not empty, and when both differ in the end.
 */
export async function copyStore(
  source: CopyDatabase,
  openTarget: () => Promise<CopyDatabase>,
  progress: CopyProgress = () => undefined,
): Promise<readonly TableReport[]> {
  if (!await source.hasStore()) {
    throw new StoreError('missing', `There is no store at ${source.location}.`)
  }
  await source.checkUnused()
  return await source.snapshot(async (read) => {
    const { id, isIncomplete } = await readState(read)
    if (isIncomplete) throw unfinishedCopyError(source.location)
    const target = await openTarget()
    try {
      await begin(target, id)
      const tables: TableReport[] = []
      for (const table of TABLE_NAMES) {
        tables.push(await copyTable(table, source.location, read, target, progress))
      }
      await target.refreshStatistics()
      await compare(tables, source, target, progress)
      await source.checkUnused()
      await checkUnchanged(source, read)
      await target.transaction(() => query('UPDATE partner_api.store SET is_incomplete = FALSE'))
      await target.notify()
      return tables
    } finally {
      await target.close()
    }
  })
}

async function readState(read: SqlQuery) {
  const [row] = await read<[id: string, isIncomplete: number]>(
    'SELECT id, is_incomplete FROM partner_api.store',
  )
  const [id, isIncomplete] = row!
  return { id, isIncomplete: Boolean(isIncomplete) }
}

const isEmpty = `audit_sequence = 0 AND ${
  ['audit', 'partner', 'industry', 'plan'].map((table) => `NOT EXISTS (SELECT 1 FROM partner_api.${table})`)
    .join(' AND ')
}`

/**
 * Creates the target if there is none, and marks it. It gets a new id: a program that has it open refuses
 * to go on after the copy.
 */
async function begin(target: CopyDatabase, sourceId: string): Promise<void> {
  const { location } = target
  if (await target.hasStore()) {
    const { id, isIncomplete } = await readState(target.read)
    if (isIncomplete) throw unfinishedCopyError(location)
    if (id === sourceId) {
      throw new StoreError(
        'refused',
        `${location} is the source, or a duplicate of its file: choose another place.`,
      )
    }
  }
  await target.prepare()
  await target.transaction(function* () {
    const marked = yield* query(
      `UPDATE partner_api.store SET id = $1, is_incomplete = TRUE WHERE NOT is_incomplete AND ${isEmpty} RETURNING 1`,
      [randomHex(8)],
    )
    if (marked.length > 0) return
    throw new StoreError(
      'refused',
      `The store ${location} is in use already: it holds partners, content or an audit log of its own. A store can only ` +
        'be copied into an empty one.',
    )
  })
  await target.notify()
}

async function copyTable(
  table: TableName,
  source: string,
  read: SqlQuery,
  target: CopyDatabase,
  progress: CopyProgress,
): Promise<TableReport> {
  function write(rows: readonly CopiedRow[]) {
    const problem = findProblem(table, rows, target.takesNul)
    if (problem === undefined) return target.transaction(() => writeRows(table, target, rows))
    const advice = `Correct it, drop the copy in ${target.location}, and start again.`
    throw new StoreError('refused', `The store ${source} cannot be copied: ${problem}. ${advice}`)
  }

  // Industries refer to each other in any order: all are there before they get their parents.
  if (table === 'industries') {
    const parent = COPIED_TABLES.industries.columns.indexOf('parent_slug')
    for await (const rows of pagesOfTable(table, read)) await write(rows.map((row) => row.with(parent, null)))
  }
  return await digest(table, read, async (rows, count) => {
    await write(rows)
    await progress('copying', table, count)
  })
}

/** Tables whose integers `audit verify` compares as text, and reports. */
const verified: ReadonlySet<TableName> = new Set(['settings', 'audit'])

/** @returns What a copy could not have, or no program read: only another program can have written it. */
function findProblem(
  tableName: TableName,
  rows: readonly CopiedRow[],
  takesNul: boolean,
): string | undefined {
  const { name, columns, keyLength }: CopiedTable = COPIED_TABLES[tableName]
  const isInteger = columns.map((column) => INTEGER_COLUMNS.has(column) && !verified.has(tableName))
  for (const row of rows) {
    const isUnsafe = (value: SqlValue, column: number) =>
      isInteger[column] && !Number.isSafeInteger(Number(value))
    const hasNul = (value: SqlValue) => !takesNul && typeof value === 'string' && value.includes('\0')
    const column = row.findIndex((value, index) => isUnsafe(value, index) || hasNul(value))
    if (column === -1) continue
    const value = isInteger[column] ? `is ${row[column]}, beyond ±2^53` : 'has the character U+0000'
    return `${columns[column]} of the row ${JSON.stringify(row.slice(0, keyLength))} in ${name} ${value}`
  }
  return undefined
}

/** Reads a table from its first key to its last. @param page Called with each page, and the number of rows so far. */
async function digest(
  table: TableName,
  read: SqlQuery,
  page: (rows: readonly CopiedRow[], count: number) => unknown,
): Promise<TableReport> {
  const hash = createHash('sha256')
  let count = 0
  for await (const rows of pagesOfTable(table, read)) {
    for (const row of rows) hash.update(`${JSON.stringify(row)}\n`, 'utf8')
    count += rows.length
    await page(rows, count)
  }
  return { table, rows: count, sha256: hash.digest('hex') }
}

async function compare(
  tables: readonly TableReport[],
  source: CopyDatabase,
  target: CopyDatabase,
  progress: CopyProgress,
): Promise<void> {
  for (const { table, rows, sha256 } of tables) {
    const copied = await digest(table, target.read, (_, count) => progress('comparing', table, count))
    if (copied.rows === rows && copied.sha256 === sha256) continue
    throw new StoreError(
      'refused',
      `The copy in ${target.location} differs from ${source.location} in the table ${table}: ${copied.rows} rows of ` +
        `${rows}, or other values. Drop it, and start again.`,
    )
  }
}

const selectHead = 'SELECT CAST(audit_sequence AS TEXT), audit_hash FROM partner_api.store'

async function checkUnchanged(source: CopyDatabase, read: SqlQuery): Promise<void> {
  const copied = await read(selectHead)
  const current = await source.read(selectHead)
  if (String(copied) === String(current)) return
  throw new StoreError(
    'refused',
    `The store ${source.location} was changed during the copy: drop the copy, which lacks the change, and start again.`,
  )
}

/** The values of a table's columns: integers as text, so that none is rounded. */
type CopiedRow = readonly SqlValue[]

/** Large enough that a query costs little per row, and small enough to hold and to write in one transaction. */
const pageRows = 500

/** Reads a table in the order of its keys. */
async function* pagesOfTable(tableName: TableName, read: SqlQuery): AsyncGenerator<readonly CopiedRow[]> {
  const { name, columns, keyLength }: CopiedTable = COPIED_TABLES[tableName]
  const keys = columns.slice(0, keyLength)
  // Signup counts are summed up over their slots.
  const isSummed = tableName === 'signup_counts'
  const selected = isSummed ? [...keys, 'CAST(sum(signups) AS TEXT)'] : safeColumns(columns)
  // Qualified: else the order is that of the selected values, which no index has.
  const order = keyLength === 0 ? '' : `ORDER BY ${keys.map((key) => `t.${key}`)}`
  const select = (where: string) => `
    SELECT ${selected} FROM partner_api.${name} AS t ${where} ${isSummed ? `GROUP BY ${keys}` : ''}
    ${order} LIMIT ${pageRows}`
  const last = keys.map((key, index) =>
    INTEGER_COLUMNS.has(key) ? `CAST($${index + 1} AS BIGINT)` : `$${index + 1}`
  )
  const nextPage = select(`WHERE (${keys.map((key) => `t.${key}`)}) > (${last})`)

  let rows: readonly CopiedRow[] = await read(select(''))
  while (rows.length > 0) {
    yield rows
    rows = rows.length < pageRows ? [] : await read(nextPage, rows.at(-1)!.slice(0, keyLength))
  }
}

/** Columns that follow from those that are copied. Signup counts are copied into one slot. */
const derivedColumns: { readonly [Name in TableName]?: Readonly<Record<string, string>> } = {
  signups: { recency: '-created_at' },
  signup_counts: { slot: '0' },
  audit: { recency: '-at' },
}

/**
 * Creates rows, or replaces them by their keys. Data that follows from a row, such as the listings of a profile, too.
 */
function writeRows(
  tableName: TableName,
  { dialect, openProfileTable }: CopyDatabase,
  rows: readonly CopiedRow[],
): Work<unknown> {
  if (tableName === 'profiles') return writeProfiles(openProfileTable(), rows)
  const { name, columns, keyLength }: CopiedTable = COPIED_TABLES[tableName]
  const sql = keyLength === 0
    ? `UPDATE partner_api.${name} SET (${columns}) = (SELECT ${columns} FROM ${
      rowsSql(dialect, columns)
    } AS given)`
    : upsertRowsSql(dialect, name, columns, {
      keys: [...columns.slice(0, keyLength), 'slot'],
      derived: derivedColumns[tableName] ?? {},
    })
  return query(sql, [JSON.stringify(rows)])
}

const publishedAt = PROFILES.columns.indexOf('published_at')

function* writeProfiles(table: ContentTable<ProfileRecord>, rows: readonly CopiedRow[]): Work<void> {
  const drafts = rows.map((texts) => {
    const published = texts[publishedAt]
    const row = texts.slice(0, -1).with(publishedAt, published === null ? null : Number(published))
    return { slug: String(row[0]), record: PROFILES.read(row), row, updatedAt: Number(texts.at(-1)) }
  })
  yield* table.write(drafts, yield* table.find(drafts.map(({ slug }) => slug)))
  if (table.flush) yield* table.flush()
}
