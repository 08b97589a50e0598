/** The parts that the SQL stores are made of: each statement is one text, which both databases run. */
import type { AuditRecord } from '../../../core/audit/records.ts'
import type { MaybePromise } from '../../../core/lib/promise.ts'
import type { AuditContext } from '../../../core/ports/changes.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import type { WebhookEvent } from '../../../core/ports/webhooks.ts'
import { INTEGER_COLUMNS, type RowFormat, type SqlValue, type StoredRow } from './row-format.ts'

/** Runs a statement with the parameters `$1`, `$2`, …. Its tables are in the schema `partner_api`. */
export type SqlQuery = <R extends readonly SqlValue[] = StoredRow>(
  sql: string,
  parameters?: readonly SqlValue[],
) => MaybePromise<R[]>

/** SQL in which the databases differ. */
export interface Dialect {
  /** Milliseconds since the epoch. */
  readonly now: string
  /** The elements of a JSON array, as a table of one column: `value`. */
  elements(parameter: string): string
  readonly least: string
  readonly greatest: string
  readonly forUpdate: string
  readonly skipLocked: string
  /** An integer column, written as in an index that serves only the queries that write the column in this way. */
  indexed(column: string): string
  /** The columns that follow from others, if the database does not generate them. */
  derived(columns: Readonly<Record<string, string>>): Readonly<Record<string, string>>
}

/** A database that is only read. */
export interface SqlReader {
  readonly dialect: Dialect
  readonly read: SqlQuery
}

/** A database as the SQL stores use it. */
export interface SqlDatabase extends SqlReader {
  /** Runs a short read that a request waits for. */
  readonly lookUp: SqlQuery
  /** Runs a statement that changes rows, and commits it. */
  readonly write: SqlQuery
  /** Runs a statement whose changes may be lost in a power failure: then they are attempted again. */
  readonly writeUnsynced: SqlQuery
  /** Runs steps in a transaction: each sees what those before it have changed. @param work May run more than once. */
  readonly transaction: RunTransaction
  /** Runs steps whose changes may be lost in a power failure: then they are attempted again. */
  readonly transactionUnsynced: RunTransaction
  /** Runs a statement in the background, and ignores errors. */
  prune(sql: string, parameters: readonly SqlValue[]): void
  /**
   * Makes a change, writes its audit records and events, and moves the revision of its kind. Changes of one
   * kind wait for each other.
   *
   * @param kind No cache has what an `uncached` change changes.
   * @param work May run more than once. It is given the revision that the change is made under.
   */
  change<T>(
    kind: ChangeKind,
    context: AuditContext,
    work: (revision: string) => Work<AuditedChange<T>>,
  ): MaybePromise<T>
}

type RunTransaction = <T>(work: () => Work<T>) => MaybePromise<T>

export type ChangeKind = keyof Revision | 'uncached'

/** The result of a change. A change without audit records has written nothing or is rolled back. */
export interface AuditedChange<T> {
  readonly result: T
  readonly auditRecords: readonly AuditRecord[]
  /** The events of the change, for webhooks. */
  readonly events?: () => readonly WebhookEvent[]
}

/** The steps of a transaction: yields statements, and is resumed with their rows. */
export type Work<T> = Generator<
  readonly [sql: string, parameters: readonly SqlValue[], other: SqlQuery | undefined],
  T,
  StoredRow[]
>

/** A step of `Work`. @param other Runs it in another database. */
export function* query<R extends readonly SqlValue[] = StoredRow>(
  sql: string,
  parameters: readonly SqlValue[] = [],
  other?: SqlQuery,
): Work<R[]> {
  return (yield [sql, parameters, other]) as readonly unknown[] as R[]
}

/** The removal of a partner changes all of its keys, and has an audit entry for each. */
const rowsPerStatement = 1000

/** Runs a statement whose parameter, `$1`, has rows of `rowsSql`. */
export function* writeRows<R>(
  sql: string,
  format: RowFormat<R>,
  records: Iterable<R>,
): Work<void> {
  const rows = [...records]
  for (let start = 0; start < rows.length; start += rowsPerStatement) {
    yield* query(sql, [rowsText(format, rows.slice(start, start + rowsPerStatement))])
  }
}

/** `Work` without a statement. */
// deno-lint-ignore require-yield -- that is its purpose
export function* done<T>(result: T): Work<T> {
  return result
}

/** Runs all steps, synchronously unless `query` returns promises. */
export function runWork<T>(work: Work<T>, query: SqlQuery, rows: StoredRow[] = []): MaybePromise<T> {
  let step = work.next(rows)
  while (!step.done) {
    const [sql, parameters, run = query] = step.value
    const found = run(sql, parameters)
    if (found instanceof Promise) return found.then((later) => runWork(work, query, later))
    step = work.next(found)
  }
  return step.value
}

/** A parameter for `rowsSql` of the format's columns. */
export function rowsText<R>({ values }: RowFormat<R>, records: Iterable<R>): string {
  return JSON.stringify(Array.from(records, values))
}

/** Names that are columns of parameters only. */
const integers: ReadonlySet<string> = new Set([
  ...INTEGER_COLUMNS,
  'retry_ms',
  'term',
  'used',
  'unused',
  'recency',
  'listings',
  'position',
])

/** The rows of a parameter that is a JSON array of arrays, to be selected from. */
export function rowsSql({ elements }: Dialect, columns: readonly string[], parameter: string = '$1'): string {
  const values = columns.map((column, index) =>
    `CAST(value ->> ${index} AS ${integers.has(column) ? 'BIGINT' : 'TEXT'}) AS ${column}`
  )
  return `(SELECT ${values} FROM ${elements(parameter)})`
}

interface UpsertOptions {
  /** Default: the first column. */
  readonly keys?: readonly string[]
  /** Columns that stay as they are in existing rows. */
  readonly preserved?: readonly string[]
  /** Columns that follow from others, see `Dialect.derived`. */
  readonly derived?: Readonly<Record<string, string>>
}

/** Inserts or replaces the rows of a parameter, `$1`, by their keys. */
export function upsertRowsSql(
  dialect: Dialect,
  table: string,
  columns: readonly string[],
  { keys = columns.slice(0, 1), preserved = [], derived = {} }: UpsertOptions = {},
): string {
  const added = dialect.derived(derived)
  const all = [...columns, ...Object.keys(added)]
  const changed = all.filter((column) => !keys.includes(column) && !preserved.includes(column))
  return `
    INSERT INTO partner_api.${table} (${all})
    SELECT ${[...columns, ...Object.values(added)]} FROM ${rowsSql(dialect, columns)} AS given WHERE true
    ON CONFLICT (${keys.filter((key) => all.includes(key))})
    DO UPDATE SET ${changed.map((column) => `${column} = excluded.${column}`)}`
}

/** The ids of a parameter that `idsText` makes, for `IN`. */
export function idsSql({ elements }: Dialect, parameter: string): string {
  return `(SELECT value ->> 0 AS id FROM ${elements(parameter)})`
}

export function idsText(ids: Iterable<string>): string {
  return JSON.stringify(Array.from(ids, (id) => [id]))
}

interface PruneTarget {
  readonly table: string
  readonly key: readonly string[]
  /** An SQL expression. */
  readonly expiry: string
  /** An SQL condition on `$1`. Default: `expiry` is at or before `$1`, and past by the server's clock. */
  readonly condition?: string
  readonly batchSize: number
}

/** Deletes a batch of expired rows, the oldest first. Locked rows are skipped: they are deleted another time. */
export function pruneSql(
  { least, now, skipLocked }: Dialect,
  { table, key, expiry, condition, batchSize }: PruneTarget,
): string {
  return `
    WITH expired AS MATERIALIZED (
      SELECT ${key} FROM partner_api.${table}
      WHERE ${condition ?? `${expiry} <= (SELECT ${least}(CAST($1 AS BIGINT), ${now}))`}
      ORDER BY ${expiry} LIMIT ${batchSize} ${skipLocked}
    )
    DELETE FROM partner_api.${table} WHERE (${key}) IN (SELECT ${key} FROM expired)`
}
