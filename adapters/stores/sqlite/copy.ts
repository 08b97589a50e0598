import type { CopyDatabase } from '../sql/copy.ts'
import { runWork } from '../sql/database.ts'
import { danglingReferenceError } from '../sql/errors.ts'
import { lockFile, openDatabase } from './database.ts'
import { errorMessage } from './errors.ts'
import { checkSchema, configure, migrate, readSchema } from './migrate.ts'
import { createProfileTable } from './profile-table.ts'
import { createQuery, DIALECT } from './sql-database.ts'

/**
 * Opens either end of a copy. An existing file is not changed before a copy into it begins.
 *
 * @throws {StoreError} `unreachable` when it cannot be opened.
 */
export function openSqliteCopy(file: string, options: { create: boolean }): CopyDatabase {
  const database = openDatabase(file, options)
  const profiles = createProfileTable(database)
  const read = createQuery(database)

  return {
    location: file,
    dialect: DIALECT,
    takesNul: true,
    read,
    transaction(work) {
      try {
        database.transaction(() => runWork(work(), read))
      } catch (error) {
        throw errorMessage(error).includes('FOREIGN KEY') ? danglingReferenceError(file, error) : error
      }
    },
    // No other process can change a file that `checkUnused` has locked.
    snapshot: (work) => work(read),
    checkUnused: () => lockFile(database, file),
    openProfileTable: () => profiles,

    hasStore() {
      if (readSchema(database, file).version === 0) return false
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
  }
}
