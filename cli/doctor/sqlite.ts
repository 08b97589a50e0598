import { openDatabase } from '../../adapters/stores/sqlite/database.ts'
import { MIGRATIONS } from '../../adapters/stores/sqlite/migrate.ts'
import { type Check, checkIndexes } from './check.ts'

export function checkSqlite(check: Check, file: string): void {
  const database = openDatabase(file, { create: false, readOnly: true })
  try {
    const rows = database.statement<[string]>("SELECT name FROM sqlite_schema WHERE type = 'index'").all()
    checkIndexes(check, MIGRATIONS, rows.map(([name]) => name))
  } finally {
    database.close()
  }
}
