import type { Revision } from '../../../core/ports/facts.ts'
import { replacedByCopyError, unfinishedCopyError } from '../store-error.ts'
import type { Database } from './database.ts'

/** The revision of a store, and the only way to move it. */
export interface Revisions {
  /** @throws {StoreError} `refused` while the store is copied into, and after that: what it was is gone. */
  current(): Revision
  /** To be called in the transaction of the change. @throws as `current` does. */
  bump(counter: keyof Revision): void
}

type StoreRow = [id: string, facts: number, content: number, copiedFrom: string | null]

/**
 * Watches a file for changes. `PRAGMA data_version` is a look at shared memory that moves when another connection
 * has committed anything; only then, and after a change of one's own, is the row read.
 */
export function createRevisions(database: Database, file: string): Revisions {
  const dataVersion = database.statement<[number]>('PRAGMA data_version')
  const selectRow = database.statement<StoreRow>(
    'SELECT id, facts_changes, content_changes, copied_from FROM store',
  )
  const bumps = {
    facts: database.statement('UPDATE store SET facts_changes = facts_changes + 1'),
    content: database.statement('UPDATE store SET content_changes = content_changes + 1'),
  }
  let seenVersion: number | undefined
  let known: Revision | undefined
  const openedId = readRow()[0]

  function readRow(): StoreRow {
    const row = selectRow.get()!
    if (row[3] !== null) throw unfinishedCopyError(file)
    return row
  }

  function readRevision(): Revision {
    const [id, facts, content] = readRow()
    if (id !== openedId) throw replacedByCopyError(file)
    return { facts: `${id}.${facts}`, content: `${id}.${content}` }
  }

  function current(): Revision {
    database.checkFileIdentity()
    // Before the row: what is committed between the two is then read now and looked for once more later.
    const [version] = dataVersion.get()!
    if (known === undefined || version !== seenVersion) {
      known = undefined
      known = readRevision()
      seenVersion = version
    }
    return known
  }

  return {
    current,

    bump(counter) {
      current()
      bumps[counter].run()
      // Not what it will be: the transaction may yet be rolled back.
      known = undefined
    },
  }
}
