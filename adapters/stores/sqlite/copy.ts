import {
  type CopyDialect,
  type CopySource,
  type CopyTarget,
  type CopyTransaction,
  createCopyEnd,
  type Row,
} from '../copy/ends.ts'
import type { StoredRow } from '../row-format.ts'
import { danglingReferenceError } from '../store-error.ts'
import { replaceProfiles } from '../content.ts'
import { createProfileTable } from './content-tables.ts'
import { errorMessage, openDatabase, type Statement } from './database.ts'
import { checkSchema, configure, migrate, schemaVersion } from './migrate.ts'

const dialect: CopyDialect = {
  given: (columns) => `SELECT ${columns.map((column, index) => `$${index + 1} AS ${column}`)}`,
  revisions: 'facts_changes, content_changes',
  lockRevisions: undefined,
  // Moves when another connection commits; this one writes nothing to a source.
  changeToken: 'PRAGMA data_version',
  tables: {},
}

/**
 * Opens a file to copy from, read-only.
 *
 * @throws {StoreError} `unreachable` when there is no such file or it cannot be opened.
 */
export function openSqliteSource(file: string): CopySource {
  return openCopyEnd(file, { create: false, readOnly: true })
}

/**
 * Opens a file to copy into. An existing file is not changed before the copy begins.
 *
 * @throws {StoreError} `unreachable` when it cannot be opened.
 */
export function openSqliteTarget(file: string): CopyTarget {
  return openCopyEnd(file, { create: true })
}

function openCopyEnd(file: string, options: { create: boolean; readOnly?: boolean }): CopyTarget {
  const database = openDatabase(file, options)
  const profiles = createProfileTable(database)
  const statements = new Map<string, Statement<StoredRow>>()

  function query(sql: string, parameters: Row = []): StoredRow[] {
    let statement = statements.get(sql)
    if (statement === undefined) {
      statement = database.statement(sql.replaceAll('partner_api.', '').replaceAll('$', '?'))
      statements.set(sql, statement)
    }
    return statement.all(...parameters)
  }

  const transaction: CopyTransaction = {
    query,
    runAll(sql, rows) {
      for (const row of rows) query(sql, row)
    },
    changeProfiles: (drafts, removed) => replaceProfiles(profiles, drafts, removed),
  }

  return createCopyEnd({
    location: file,
    query,

    transaction(work) {
      try {
        return database.transaction(() => work(transaction))
      } catch (error) {
        throw errorMessage(error).includes('FOREIGN KEY') ? danglingReferenceError(file, error) : error
      }
    },

    hasStore() {
      if (schemaVersion(database, file) === 0) return false
      checkSchema(database, file, false)
      return true
    },

    async prepare() {
      await configure(database)
      // Rows arrive in the order of one index and change pages of eight others all over the file: a checkpoint every
      // 64 MiB of log instead of every 4 writes such a page once and halves the time.
      database.exec('PRAGMA wal_autocheckpoint = 16384')
      migrate(database, file, undefined)
    },

    notify() {},
    refreshStatistics() {},
    close: database.close,
  }, dialect)
}
