import type { RowKey, WritableTable } from '../copy/archive.ts'
import type { SqlTable } from '../copy/columns.ts'
import { danglingRow } from '../copy/unfit-row.ts'
import { type Database, reasonOf } from './database.ts'

/** What of a table is not done as everywhere. */
export interface TableWays<R> {
  /** The columns as they are read. */
  readonly columns?: readonly string[]
  /** Writes rows. */
  readonly put?: (rows: readonly R[]) => void
  /** Removes what follows from the rows with these keys, or refers to them. */
  readonly beforeRemoval?: (keys: readonly RowKey[]) => void
}

/** A table of a file as it is copied: rows are read by key, and written one by one in a transaction of all. */
export function createTable<R>(
  database: Database,
  file: string,
  { name, columns, keyLength, values, read }: SqlTable<R>,
  ways: TableWays<R> = {},
): WritableTable<R> {
  const keys = columns.slice(0, keyLength)
  const numbered = (from: readonly string[]) => from.map((_, index) => `?${index + 1}`)
  const selected = `SELECT ${ways.columns ?? columns} FROM ${name}`
  const first = database.statement(`${selected} ORDER BY ${keys} LIMIT ?1 + 0`)
  const next = database.statement(
    `${selected} WHERE (${keys}) > (${numbered(keys)}) ORDER BY ${keys} LIMIT ?${keyLength + 1} + 0`,
  )
  const upsert = database.statement(`
    INSERT INTO ${name} (${columns}) VALUES (${numbered(columns)}) ON CONFLICT (${keys})
    DO UPDATE SET ${columns.slice(keyLength).map((column) => `${column} = excluded.${column}`)}`)
  const erase = database.statement(`DELETE FROM ${name} WHERE (${keys}) = (${numbered(keys)})`)
  const put = ways.put ?? ((rows: readonly R[]) => {
    for (const row of rows) upsert.run(...values(row))
  })

  return {
    read: (after, limit) =>
      (after === undefined ? first.all(limit) : next.all(...after, limit)).map((row) => read(row)),

    write(rows, surplus) {
      try {
        database.transaction(() => {
          put(rows)
          ways.beforeRemoval?.(surplus)
          for (const key of surplus) erase.run(...key)
        })
      } catch (error) {
        throw reasonOf(error).includes('FOREIGN KEY') ? danglingRow(file, error) : error
      }
    },
  }
}
