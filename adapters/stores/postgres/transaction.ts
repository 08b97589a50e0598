import type { PostgresConnection, PostgresQuery } from './connection.ts'
import {
  CommitUnknownError,
  ConnectionLostError,
  isCanceled,
  isReadOnly,
  isRetryable,
  mayBeCommitted,
  overloadedError,
  SqlError,
  toStoreError,
} from './errors.ts'

/**
 * An expression that has the transaction acknowledged once it is on disk, also where `synchronous_commit` is off by
 * default. `remote_apply`, the only stronger value, is kept.
 */
export const SET_DURABLE_COMMIT =
  "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)"

/** A write with rows, on any connection of a pooler, that is acknowledged once it is on disk. */
export const durably = (statement: string): string => `
  WITH settings AS MATERIALIZED (SELECT ${SET_DURABLE_COMMIT}), written AS (${statement})
  SELECT written.* FROM written, settings`

/** Locks of a client that was cut off are released after half a minute. */
const beginSql = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = '30s'; SELECT ${SET_DURABLE_COMMIT}`
const beginSnapshotSql = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'

export interface TransactionOptions {
  /** Where the database is, for messages. */
  readonly location: string
  readonly readOnly: boolean
  /** Default: no limit. */
  readonly statementTimeoutMs?: number
}

/** The work of a transaction, which is then committed, unless a statement failed or `rollback` was called. */
export type TransactionWork<T> = (query: PostgresQuery, rollback: () => void) => Promise<T>

/**
 * Runs `work` once. It throws the first error of a statement if another run may succeed.
 */
export async function runTransaction<T>(
  connection: PostgresConnection,
  { location, readOnly, statementTimeoutMs }: TransactionOptions,
  work: TransactionWork<T>,
): Promise<T> {
  /** The first error: others follow from it. */
  let failure: unknown
  let isOver = false
  let isRolledBack = false
  let result: T

  const query: PostgresQuery = async (sql, parameters) => {
    if (isOver) throw new Error('The transaction is over.')
    try {
      return await connection.query(sql, parameters) as never[]
    } catch (error) {
      failure ??= error
      throw isCanceled(error) ? overloadedError(location, error.message) : toStoreError(location, error)
    }
  }

  const isTransient = () =>
    failure instanceof ConnectionLostError || isRetryable(failure) || !readOnly && isReadOnly(failure)
  const rollBack = () => connection.query('ROLLBACK').catch(({ message }) => connection.destroy(message))

  // For this transaction only, whatever a pooler does with the connection afterwards.
  const limit = statementTimeoutMs ? `; SET LOCAL statement_timeout = ${statementTimeoutMs}` : ''
  const begun = connection.query((readOnly ? beginSnapshotSql : beginSql) + limit)
    .catch((error) => failure ??= error)
  // If it fails, each statement is committed by itself.
  if (!readOnly) await begun
  try {
    if (failure !== undefined) throw failure
    result = await work(query, () => isRolledBack = true)
    await begun
  } catch (error) {
    isOver = true
    await rollBack()
    throw isTransient() ? failure : error
  }
  isOver = true
  if (failure !== undefined || isRolledBack) {
    await rollBack()
    if (isTransient() || !isRolledBack) throw failure
  } else if (readOnly) void connection.query('COMMIT').catch(() => {})
  else await commit(connection)
  return result
}

async function commit(connection: PostgresConnection): Promise<void> {
  const { command } = await connection.query('COMMIT').catch((error) => {
    throw mayBeCommitted(error) ? new CommitUnknownError(error.message) : error
  })
  if (command !== 'COMMIT') throw new SqlError('the transaction was rolled back before its end', '25P02')
}
