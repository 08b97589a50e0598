/** Both ends of `store copy`: everything that a store keeps, table by table, as the rows of its SQL tables. */
import type { MaybePromise } from '../../../core/lib/promise.ts'
import type { ProfileRecord } from '../../../core/ports/content.ts'
import type { ContentTable } from '../content.ts'
import { safeColumns, type Value } from '../row-format.ts'
import { randomHex } from '../schema.ts'
import {
  type Dialect,
  idsSql,
  type Query,
  query,
  rowsSql,
  runWork,
  upsertRowsSql,
  type Work,
} from '../sql/database.ts'
import { StoreError } from '../store-error.ts'
import { COPIED_TABLES, type CopiedTable, PROFILES, TABLE_NAMES, type TableName } from '../tables.ts'

/** The values of a table's columns, or of those that are its key. */
export type Row = readonly Value[]

/** The state of a store before a copy. */
export interface StoreState {
  /** Tells the store from all others. */
  readonly id: string
  /** Whether the store was never written to. */
  readonly isEmpty: boolean
  /** The id of the store that an unfinished copy into this one comes from. */
  readonly copyingFrom: string | undefined
  /** The id of the store that this one is a finished copy of, unless it was changed since. */
  readonly finishedCopyOf: string | undefined
}

/** Large enough that a query costs little per row, and small enough to hold and to write in one transaction. */
export const PAGE_ROWS = 500

/** A database with a store. */
export interface CopyDatabase {
  readonly location: string
  readonly dialect: Dialect
  /** An expression that every administrative change changes. */
  readonly revisions: string
  /** Has such changes wait, if a transaction does not. */
  readonly lockRevisions?: string
  /** A statement whose row every change changes. Default: `contentsSql`. */
  readonly changeToken?: string
  readonly read: Query
  transaction(work: () => Work<unknown>): MaybePromise<unknown>
  /** The table of profiles, for one transaction. Listings and words are written and removed with their profiles. */
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

/** A store to copy from. It is only read. */
export type CopySource = ReturnType<typeof createCopySource>
export type CopyTarget = ReturnType<typeof createCopyTarget>

function createCopySource({ location, revisions, read, hasStore, changeToken, close }: CopyDatabase) {
  const contents = contentsSql(revisions)
  const pages = Object.fromEntries(TABLE_NAMES.map((name) => [name, pageStatements(name)]))
  return {
    /** The place of the store for messages, without user and password. */
    location,
    /** `undefined` when there is no store yet. @throws {StoreError} `refused` when it has to be migrated first. */
    state: async () => await hasStore() ? await runWork(readState(contents), read) : undefined,
    /** Equal tokens mean that nothing was changed in between, not even a counter or the last use of a key. */
    changeToken: async () => JSON.stringify(await read(changeToken ?? contents)),
    /** At most `PAGE_ROWS` rows in the order of their keys, starting after the key `after`. */
    async read(table: TableName, after: Row | undefined): Promise<readonly Row[]> {
      const { firstPage, nextPage } = pages[table]!
      return await (after === undefined ? read(firstPage) : read(nextPage, after))
    },
    close,
  }
}

export function createCopyTarget(database: CopyDatabase) {
  const { location, dialect, notify, transaction } = database
  const contents = contentsSql(database.revisions)
  return {
    ...createCopySource(database),

    /**
     * Creates the store if necessary, and marks it as unfinished: from now on it refuses to be used. It gets a new id, so
     * that a program that has it open does not continue to use it after the copy.
     *
     * @param from The id of the source.
     * @throws {StoreError} `refused` when the store is neither empty nor a copy of `from`, unfinished or unchanged since:
     * another program may have written to it meanwhile.
     */
    async begin(from: string): Promise<void> {
      await database.prepare()
      await transaction(function* () {
        if (database.lockRevisions !== undefined) yield* query(database.lockRevisions)
        const { isEmpty, copyingFrom, finishedCopyOf } = yield* readState(contents)
        if (copyingFrom === from) return
        if (copyingFrom !== undefined || !isEmpty && finishedCopyOf !== from) {
          throw new StoreError('refused', `The store ${location} is not empty any more: nothing was copied.`)
        }
        const sql = 'UPDATE partner_api.store SET id = $1, copied_from = $2, copied_as = NULL'
        yield* query(sql, [randomHex(8), from])
      })
      await notify()
    },

    /**
     * Creates or replaces rows by key and removes others, in one durable transaction. Data that follows from a row, such
     * as the listings of a profile, is written and removed with it.
     *
     * @throws {StoreError} `refused` when a row refers to one that does not exist.
     */
    async write(table: TableName, rows: readonly Row[], removedKeys: readonly Row[]): Promise<void> {
      await transaction(() =>
        table === 'profiles'
          ? writeProfiles(database.openProfileTable(), rows, removedKeys)
          : writeTable(table, dialect, rows, removedKeys)
      )
    },

    /** Called after the last write, before the comparison. */
    refreshStatistics: database.refreshStatistics,

    /** Removes the mark, and records the source and the state of this store. */
    async finish(from: string): Promise<void> {
      await transaction(function* () {
        const mark = yield* readMark(from, contents)
        const sql = 'UPDATE partner_api.store SET copied_from = NULL, copied_as = $2 WHERE copied_from = $1'
        yield* query(sql, [from, mark])
      })
      await notify()
    },
  }
}

function* readState(contents: string): Work<StoreState> {
  const [row] = yield* query<[id: string, copiedFrom: string | null, mark: string | null, isUsed: number]>(`
    SELECT id, copied_from, copied_as, CASE WHEN audit_sequence > 0 OR EXISTS (SELECT 1 FROM partner_api.audit)
      OR EXISTS (SELECT 1 FROM partner_api.partner) OR EXISTS (SELECT 1 FROM partner_api.industry)
      OR EXISTS (SELECT 1 FROM partner_api.plan) THEN 1 ELSE 0 END
    FROM partner_api.store`)
  const [id, copiedFrom, mark, isUsed] = row!
  const copyOf = mark?.split(' ', 1)[0]
  const isUnchanged = copyOf !== undefined && mark === (yield* readMark(copyOf, contents))
  return {
    id,
    isEmpty: isUsed === 0,
    copyingFrom: copiedFrom ?? undefined,
    finishedCopyOf: isUnchanged ? copyOf : undefined,
  }
}

/** What a store records when a copy into it is finished: the id of the source, and its own contents at that time. */
function* readMark(from: string, contents: string): Work<string> {
  return `${from} ${JSON.stringify(yield* query(contents))}`
}

/** Every change moves one of these. Instants in two parts: the sum of those of millions of keys would overflow. */
function contentsSql(revisions: string): string {
  const sums = [
    ['signup', 'count(*)'],
    ['partner_key', "sum(last_used_at / 1000) || '.' || sum(last_used_at % 1000)"],
    ['usage', 'sum(requests)'],
    ['key_usage', 'sum(requests)'],
    ['problem', "count(*) || '.' || max(at)"],
    ['webhook', 'sum(failing_since)'],
    [
      'webhook_delivery',
      "count(*) || '.' || sum(attempts) || '.' || sum(due_at / 1000) || '.' || sum(due_at % 1000)",
    ],
  ].map(([table, sum]) => `(SELECT CAST(${sum} AS TEXT) FROM partner_api.${table})`)
  return `SELECT ${revisions}, key_prefix, audit_sequence, audit_hash, ${sums} FROM partner_api.store`
}

/** Columns that follow from those that are copied. Signup counts are summed up over their slots, and copied into one. */
const derivedColumns: { readonly [Name in TableName]?: Readonly<Record<string, string>> } = {
  signups: { recency: '-created_at' },
  signup_counts: { slot: '0' },
  audit: { recency: '-at' },
}

function pageStatements(tableName: TableName) {
  const { name, columns, keyLength }: CopiedTable = COPIED_TABLES[tableName]
  const keys = columns.slice(0, keyLength)
  const isSummed = tableName === 'signup_counts'
  const selected = isSummed ? [...keys, 'CAST(sum(signups) AS DOUBLE PRECISION)'] : safeColumns(columns)
  // Qualified: else the order is that of the selected values, which no index has.
  const order = keys.map((key) => `t.${key}`)
  const page = (where: string) => `
    SELECT ${selected} FROM partner_api.${name} AS t ${where} ${isSummed ? `GROUP BY ${keys}` : ''}
    ${keyLength === 0 ? '' : `ORDER BY ${order}`} LIMIT ${PAGE_ROWS}`
  return {
    firstPage: page(''),
    nextPage: page(`WHERE (${keys}) > (${keys.map((_, index) => `$${index + 1}`)})`),
  }
}

function* writeTable(
  tableName: TableName,
  dialect: Dialect,
  rows: readonly Row[],
  removedKeys: readonly Row[],
): Work<void> {
  const { name, columns, keyLength }: CopiedTable = COPIED_TABLES[tableName]
  const table = `partner_api.${name}`
  const keys = columns.slice(0, keyLength)
  const put = keyLength === 0
    ? `UPDATE ${table} SET (${columns}) = (SELECT ${columns} FROM ${rowsSql(dialect, columns)} AS given)`
    : upsertRowsSql(dialect, name, columns, {
      keys: [...keys, 'slot'],
      derived: derivedColumns[tableName] ?? {},
    })
  if (rows.length > 0) yield* query(put, [JSON.stringify(rows)])
  if (removedKeys.length === 0) return
  const removed = [JSON.stringify(removedKeys)]
  if (tableName === 'industries') {
    yield* query(
      `UPDATE ${table} SET parent_slug = NULL WHERE parent_slug IN ${idsSql(dialect, '$1')}`,
      removed,
    )
  }
  yield* query(`DELETE FROM ${table} WHERE (${keys}) IN ${rowsSql(dialect, keys)}`, removed)
}

function* writeProfiles(
  table: ContentTable<ProfileRecord>,
  rows: readonly Row[],
  removedKeys: readonly Row[],
): Work<void> {
  const drafts = rows.map((row) => ({
    slug: String(row[0]),
    record: PROFILES.read(row),
    row: row.slice(0, -1),
    updatedAt: Number(row.at(-1)),
  }))
  yield* table.write(drafts, yield* table.find(drafts.map(({ slug }) => slug)))
  yield* table.remove(removedKeys.map(([slug]) => String(slug)))
  if (table.flush) yield* table.flush()
}
