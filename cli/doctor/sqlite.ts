import { openDatabase } from '../../adapters/stores/sqlite/database.ts'
import { MIGRATIONS } from '../../adapters/stores/sqlite/migrate.ts'
import { checkIndexes, type Judge } from './check.ts'

export function checkSqlite(judge: Judge, file: string): void {
  const database = openDatabase(file, { create: false, readOnly: true })
  try {
    const rows = database.statement<[string]>("SELECT name FROM sqlite_schema WHERE type = 'index'").all()
    checkIndexes(judge, MIGRATIONS, rows.map(([name]) => name))
  } finally {
    database.close()
  }
}
