import type { Revision } from '../../../core/ports/facts.ts'
import { missingSettingsError, replacedByCopyError, unfinishedCopyError } from '../sql/errors.ts'
import type { SqliteDatabase } from './database.ts'

type StoreRow = [id: string, facts: number, content: number, isIncomplete: number]

/** The revision of a store, and the only way to move it. */
export interface Revisions {
  /** @throws {StoreError} `refused` during a copy into the store and after it: the store is another one then. */
  current(): Revision
  /** Moves the revision, in the transaction of the change. @throws as `current` does. */
  bump(counter: keyof Revision): void
}

/**
 * `PRAGMA data_version` reads shared memory, and changes when another connection commits: the
 * row is read only then, and after a change by this connection.
 *
 * @throws {StoreError} `refused` while the store is copied into.
 */
export function createRevisions(database: SqliteDatabase, file: string): Revisions {
  const dataVersion = database.statement<[number]>('PRAGMA data_version')
  const selectRow = database.statement<StoreRow>(
    'SELECT id, facts_changes, content_changes, is_incomplete FROM store',
  )
  // By a random step: after an older file was put back, a change does not lead to a revision that servers know.
  const step = '1 + (random() & 0xffffff)'
  const bumps = {
    facts: database.statement(`UPDATE store SET facts_changes = facts_changes + ${step}`),
    content: database.statement(`UPDATE store SET content_changes = content_changes + ${step}`),
  }
  let seenVersion: number | undefined
  let known: Revision | undefined
  const openedId = readRow()[0]

  function readRow(): StoreRow {
    const row = selectRow.get()
    if (row === undefined) throw missingSettingsError(file)
    if (row[3] !== 0) throw unfinishedCopyError(file)
    return row
  }

  function current(): Revision {
    database.checkFileIdentity()
    // Before the row: a commit between the two reads is then read now, and once more at the next call.
    const [version] = dataVersion.get()!
    if (known === undefined || version !== seenVersion) {
      known = undefined
      const [id, facts, content] = readRow()
      if (id !== openedId) throw replacedByCopyError(file)
      known = { facts: `${id}.${facts}`, content: `${id}.${content}` }
      seenVersion = version
    }
    return known
  }

  return {
    current,

    bump(counter) {
      current()
      bumps[counter].run()
      // The new revision is unknown until the transaction commits.
      known = undefined
    },
  }
}
