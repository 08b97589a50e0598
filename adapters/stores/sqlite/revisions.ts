import type { Revision } from '../../../core/ports.ts'
import type { Database } from './database.ts'

/** The revision of a store, and the only way to move it. */
export interface Revisions {
  current(): Revision
  /** To be called in the transaction of the change. */
  bump(counter: keyof Revision): void
}

/**
 * Watches a file for changes. `PRAGMA data_version` is a look at shared memory that moves when another connection
 * has committed anything; only then, and after a change of one's own, is the row read.
 */
export function createRevisions(database: Database): Revisions {
  const dataVersion = database.statement<[number]>('PRAGMA data_version')
  const read = database.statement<[string, string]>(
    `SELECT id || '.' || facts_changes, id || '.' || content_changes FROM store`,
  )
  const bumps = {
    facts: database.statement('UPDATE store SET facts_changes = facts_changes + 1'),
    content: database.statement('UPDATE store SET content_changes = content_changes + 1'),
  }
  let seenVersion: number | undefined
  let known: Revision | undefined

  return {
    current() {
      database.checkFile()
      // Before the row: what is committed between the two is then read now and looked for once more later.
      const [version] = dataVersion.get()!
      if (known === undefined || version !== seenVersion) {
        const [facts, content] = read.get()!
        known = { facts, content }
        seenVersion = version
      }
      return known
    },

    bump(counter) {
      bumps[counter].run()
      // Not what it will be: the transaction may yet be rolled back.
      known = undefined
    },
  }
}
