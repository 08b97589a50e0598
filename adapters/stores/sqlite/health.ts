import { type Database, openDatabase } from './database.ts'
import type { Revisions } from './revisions.ts'

/**
 * A look at whether the file can be read now, some 150 microseconds long. It takes a connection of its own: the one
 * that is open answers from pages that it has read before, whatever became of the file.
 */
export function createCheck(database: Database, file: string, revisions: Revisions): () => void {
  return () => {
    database.checkFile()
    revisions.current()
    if (file === ':memory:') return
    const fresh = openDatabase(file, { create: false, readOnly: true })
    try {
      fresh.statement('SELECT id FROM store').get()
    } finally {
      fresh.close()
    }
  }
}
