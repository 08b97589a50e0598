/** Both ends of `store copy`: everything that a store keeps, table by table, as the rows of its SQL tables. */
import { andThen, type MaybePromise } from '../../../core/lib/promise.ts'
import type { ProfileRecord } from '../../../core/ports/content.ts'
import type { Draft } from '../content.ts'
import { safeColumns, type Value } from '../row-format.ts'
import { randomHex } from '../schema.ts'
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

/** A store to copy from. It is only read. */
export interface CopySource {
  /** The place of the store for messages, without user and password. */
  readonly location: string
  /** `undefined` when there is no store yet. @throws {StoreError} `refused` when it has to be migrated first. */
  state(): Promise<StoreState | undefined>
  /** Equal tokens mean that nothing was changed in between, not even a counter or the last use of a key. */
  changeToken(): Promise<string>
  /** At most `PAGE_ROWS` rows in the order of their keys, starting after the key `after`. */
  read(table: TableName, after: Row | undefined): Promise<readonly Row[]>
  close(): MaybePromise<void>
}

export interface CopyTarget extends CopySource {
  /**
   * Creates the store if necessary, and marks it as unfinished: from now on it refuses to be used. It gets a new id, so
   * that a program that has it open does not go on with it after the copy either.
   *
   * @param from The id of the source.
   * @throws {StoreError} `refused` when the store is neither empty nor a copy of `from`, unfinished or unchanged since:
   * another program may have written to it meanwhile.
   */
  begin(from: string): Promise<void>
  /**
   * Creates or replaces rows by key and removes others, in one durable transaction. Data that follows from a row, such
   * as the listings of a profile, is written and removed with it.
   *
   * @throws {StoreError} `refused` when a row refers to one that does not exist.
   */
  write(table: TableName, rows: readonly Row[], removedKeys: readonly Row[]): Promise<void>
  /** Called after the last write, before the comparison. */
  refreshStatistics(): Promise<void>
  /** Removes the mark, and records the source and the state of this store. */
  finish(from: string): Promise<void>
}

/** Large enough that a query costs little per row, and small enough to hold and to write in one transaction. */
export const PAGE_ROWS = 500

type Query = (sql: string, parameters?: Row) => MaybePromise<readonly Row[]>

export interface CopyTransaction {
  readonly query: Query
  /** Runs a statement for all rows, which `CopyDialect.given` selects. */
  runAll(sql: string, rows: readonly Row[]): MaybePromise<unknown>
  /** Writes profiles, and their listings and words with them, and removes others. */
  changeProfiles(drafts: readonly Draft<ProfileRecord>[], removed: readonly string[]): MaybePromise<unknown>
}

/** A database with a store. Parameters are `$1`, `$2`, …, and tables are in `partner_api`. */
export interface CopyDatabase {
  readonly location: string
  readonly query: Query
  transaction(work: (transaction: CopyTransaction) => MaybePromise<unknown>): MaybePromise<unknown>
  /** Whether there is a store. @throws {StoreError} `refused` when it has to be migrated first. */
  hasStore(): MaybePromise<boolean>
  /** Creates or migrates the store. */
  prepare(): MaybePromise<void>
  /** Has servers read the revision. */
  notify(): MaybePromise<void>
  refreshStatistics(): MaybePromise<void>
  close(): MaybePromise<void>
}

/** SQL in which the databases differ. */
export interface CopyDialect {
  /** Selects the rows of `runAll`. */
  given(columns: readonly string[]): string
  /** An expression that every administrative change changes. */
  readonly revisions: string
  /** A statement that locks them, if the transaction has not. */
  readonly lockRevisions: string | undefined
  /** A statement whose row every change changes. Default: `contents`. */
  readonly changeToken?: string
  readonly tables: { readonly [Name in TableName]?: TableDialect }
}

interface TableDialect {
  /** Columns that follow from the written ones, with their SQL. */
  readonly derived?: Readonly<Record<string, string>>
  /** The same for columns that end the primary key. */
  readonly keyEnd?: Readonly<Record<string, string>>
  /** Columns that are summed up over several rows of the table. */
  readonly sums?: readonly string[]
}

export function createCopyEnd(database: CopyDatabase, dialect: CopyDialect): CopyTarget {
  const { location, query, notify } = database
  const statements = Object.fromEntries(TABLE_NAMES.map((name) => [name, tableStatements(name, dialect)]))
  const clearParents = `UPDATE partner_api.industry SET parent_slug = NULL
    WHERE parent_slug IN (${dialect.given(['slug'])})`
  const selectContents = contentsSql(dialect)

  const readContents = (query: Query, sql: string = selectContents) =>
    andThen(query(sql), (rows) => JSON.stringify(rows))

  /** What a store records when a copy into it is finished: the id of the source, and its own contents at that time. */
  const readMark = (query: Query, from: string) =>
    andThen(readContents(query), (contents) => `${from} ${contents}`)

  const readState = (query: Query): MaybePromise<StoreState> =>
    andThen(query(SELECT_STATE), ([row]) => {
      const [id, copiedFrom, mark, isUsed] = row as [string, string | null, string | null, number]
      const copyOf = mark?.split(' ', 1)[0] ?? ''
      return andThen(mark === null ? '' : readMark(query, copyOf), (current) => ({
        id,
        isEmpty: isUsed === 0,
        copyingFrom: copiedFrom ?? undefined,
        finishedCopyOf: mark !== null && mark === current ? copyOf : undefined,
      }))
    })

  const markBegun = (query: Query, from: string) =>
    andThen(readState(query), ({ isEmpty, copyingFrom, finishedCopyOf }) => {
      if (copyingFrom === from) return []
      if (copyingFrom !== undefined || !isEmpty && finishedCopyOf !== from) {
        throw new StoreError('refused', `The store ${location} is not empty any more: nothing was copied.`)
      }
      const sql = 'UPDATE partner_api.store SET id = $1, copied_from = $2, copied_as = NULL'
      return query(sql, [randomHex(8), from])
    })

  return {
    location,
    state: async () => await database.hasStore() ? await readState(query) : undefined,
    changeToken: async () => await readContents(query, dialect.changeToken),

    async read(table, after) {
      const { firstPage, nextPage } = statements[table]!
      return await (after === undefined ? query(firstPage) : query(nextPage, after))
    },

    async begin(from) {
      await database.prepare()
      const { lockRevisions } = dialect
      await database.transaction(({ query }) =>
        andThen(lockRevisions === undefined ? [] : query(lockRevisions), () => markBegun(query, from))
      )
      await notify()
    },

    async write(table, rows, removedKeys) {
      const { put, erase } = statements[table]!
      await database.transaction(({ runAll, changeProfiles }) => {
        if (table === 'profiles') {
          return changeProfiles(rows.map(toProfileDraft), removedKeys.map(([slug]) => String(slug)))
        }
        const cleared = () => table === 'industries' ? runAll(clearParents, removedKeys) : undefined
        return andThen(andThen(runAll(put, rows), cleared), () => runAll(erase, removedKeys))
      })
    },

    refreshStatistics: async () => await database.refreshStatistics(),

    async finish(from) {
      await database.transaction(({ query }) =>
        andThen(
          readMark(query, from),
          (mark) =>
            query('UPDATE partner_api.store SET copied_from = NULL, copied_as = $2 WHERE copied_from = $1', [
              from,
              mark,
            ]),
        )
      )
      await notify()
    },

    close: database.close,
  }
}

const SELECT_STATE = `
  SELECT id, copied_from, copied_as, CASE WHEN audit_sequence > 0 OR EXISTS (SELECT 1 FROM partner_api.audit)
    OR EXISTS (SELECT 1 FROM partner_api.partner) OR EXISTS (SELECT 1 FROM partner_api.industry)
    OR EXISTS (SELECT 1 FROM partner_api.plan) THEN 1 ELSE 0 END
  FROM partner_api.store`

/** Every change moves one of these. Instants in two parts: the sum of those of millions of keys would overflow. */
function contentsSql({ revisions }: CopyDialect): string {
  const sums = [
    ['signup', 'count(*)'],
    ['partner_key', "sum(last_used_at / 1000) || '.' || sum(last_used_at % 1000)"],
    ['usage', 'sum(requests)'],
    ['key_usage', 'sum(requests)'],
    ['webhook', 'sum(failing_since)'],
    [
      'webhook_delivery',
      "count(*) || '.' || sum(attempts) || '.' || sum(due_at / 1000) || '.' || sum(due_at % 1000)",
    ],
  ].map(([table, sum]) => `(SELECT CAST(${sum} AS TEXT) FROM partner_api.${table})`)
  return `SELECT ${revisions}, key_prefix, audit_sequence, audit_hash, ${sums} FROM partner_api.store`
}

function tableStatements(tableName: TableName, dialect: CopyDialect) {
  const { name, columns, keyLength }: CopiedTable = COPIED_TABLES[tableName]
  const { derived = {}, keyEnd = {}, sums = [] } = dialect.tables[tableName] ?? {}
  const table = `partner_api.${name}`
  const keys = columns.slice(0, keyLength)
  const selected = safeColumns(columns).map((sql, index) =>
    sums.includes(columns[index]!) ? `CAST(sum(${columns[index]}) AS DOUBLE PRECISION)` : sql
  )
  const fullKeys = [...keys, ...Object.keys(keyEnd)]
  const all = { ...derived, ...keyEnd }
  const written = [...columns, ...Object.keys(all)]
  const updates = written.filter((column) => !fullKeys.includes(column))
    .map((column) => `${column} = excluded.${column}`)
  // Qualified: else the order is that of the selected values, which no index has.
  const order = keys.map((key) => `t.${key}`)
  const page = (where: string) => `
    SELECT ${selected} FROM ${table} AS t ${where} ${sums.length > 0 ? `GROUP BY ${keys}` : ''}
    ${keyLength === 0 ? '' : `ORDER BY ${order}`} LIMIT ${PAGE_ROWS}`
  const given = `(${dialect.given(columns)}) AS given`
  return {
    firstPage: page(''),
    nextPage: page(`WHERE (${keys}) > (${keys.map((_, index) => `$${index + 1}`)})`),
    put: keyLength === 0
      ? `UPDATE ${table} SET (${columns}) = (SELECT ${columns} FROM ${given})`
      : `INSERT INTO ${table} (${written}) SELECT ${[
        ...columns,
        ...Object.values(all),
      ]} FROM ${given} WHERE true
        ON CONFLICT (${fullKeys}) DO UPDATE SET ${updates}`,
    erase: `DELETE FROM ${table} WHERE (${keys}) IN (${dialect.given(keys)})`,
  }
}

/** Parses a row of the table of profiles. */
function toProfileDraft(row: Row): Draft<ProfileRecord> {
  return {
    slug: String(row[0]),
    record: PROFILES.read(row),
    row: row.slice(0, -1),
    updatedAt: Number(row.at(-1)),
  }
}
