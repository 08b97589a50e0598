/** Both ends of `store copy`: everything that a store keeps, table by table, as the rows of its SQL tables. */
import type { MaybePromise } from '../../../core/lib/promise.ts'
import type { ProfileRecord } from '../../../core/ports/content.ts'
import type { ContentTable } from '../content.ts'
import { INTEGER_COLUMNS, safeColumns, type Value } from '../row-format.ts'
import { type Dialect, type Query, query, rowsSql, upsertRowsSql, type Work } from '../sql/database.ts'
import { COPIED_TABLES, type CopiedTable, PROFILES, type TableName } from '../tables.ts'

/** The values of a table's columns: integers as text, so that none is rounded. */
export type Row = readonly Value[]

/** Large enough that a query costs little per row, and small enough to hold and to write in one transaction. */
const pageRows = 500

/** A database with a store, or for one. */
export interface CopyDatabase {
  /** The place of the store for messages, without user and password. */
  readonly location: string
  readonly dialect: Dialect
  readonly read: Query
  transaction(work: () => Work<unknown>): MaybePromise<unknown>
  /** Runs work that reads one state of the store. */
  snapshot<T>(work: (read: Query) => Promise<T>): Promise<T>
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

/** Reads a table in the order of its keys. */
export async function* readPages(tableName: TableName, read: Query): AsyncGenerator<readonly Row[]> {
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

  let rows: readonly Row[] = await read(select(''))
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

/** Creates rows, or replaces them by their keys. Data that follows from a row, such as the listings of a profile, too. */
export function writeRows(
  tableName: TableName,
  { dialect, openProfileTable }: Pick<CopyDatabase, 'dialect' | 'openProfileTable'>,
  rows: readonly Row[],
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

function* writeProfiles(table: ContentTable<ProfileRecord>, rows: readonly Row[]): Work<void> {
  const drafts = rows.map((texts) => {
    const published = texts[publishedAt]
    const row = texts.slice(0, -1).with(publishedAt, published === null ? null : Number(published))
    return { slug: String(row[0]), record: PROFILES.read(row), row, updatedAt: Number(texts.at(-1)) }
  })
  yield* table.write(drafts, yield* table.find(drafts.map(({ slug }) => slug)))
  if (table.flush) yield* table.flush()
}
