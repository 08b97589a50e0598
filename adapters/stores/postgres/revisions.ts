import type { ClockReading } from '../../../core/lib/time.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import { newerSchemaError } from '../schema.ts'
import { randomHex } from '../settings.ts'
import { replacedByCopyError, unfinishedCopyError } from '../store-error.ts'
import type { Database, Query } from './database.ts'
import { LATEST, missingSettingsError } from './migrate.ts'
import { SERVER_NOW } from './sql.ts'

/** The revision of a store, and the only way to move it. */
export interface Revisions {
  /** The server's clock when the revision was asked for last. */
  clock(): ClockReading | undefined

  /**
   * The revision now.
   *
   * @param query Default: a look-up, which has little time.
   * @throws {StoreError} `unreachable` when the server takes no writes any more, `newer_schema` when the store is no longer for programs of this version, `refused` while it is
   * being copied into and after that: what it was is gone.
   */
  current(query?: Query): Promise<Revision>

  /**
   * Keeps others from changing what a kind of revision stands for until the transaction is over. To be the first thing
   * that a change does: what it reads then is what it changes.
   *
   * @returns The revision of this kind, which stays until then.
   * @throws {StoreError} as `current` does.
   */
  lock(query: Query, kind: keyof Revision): Promise<string>

  /** Moves the revision. To be called in the transaction of the change, which has locked it. */
  bump(query: Query, kind: keyof Revision): Promise<void>

  /** Tells all replicas that something was changed. To be called after the commit. Never rejects. */
  notify(): Promise<void>
}

type StoreRow = [id: string, servedFrom: number, copiedFrom: string | null]

export function createRevisions(database: Database): Revisions {
  let openedId: string | undefined
  let reading: ClockReading | undefined

  function checkStoreRow([id, servedFrom, copiedFrom]: StoreRow): void {
    if (servedFrom > LATEST) throw newerSchemaError(database.place, servedFrom, LATEST)
    if (copiedFrom !== null) throw unfinishedCopyError(database.place)
    openedId ??= id
    if (id !== openedId) throw replacedByCopyError(database.place)
  }

  return {
    clock: () => reading,

    async current(query = database.lookUp) {
      const askedAt = performance.now()
      const [row] = await query<
        [isReadOnly: boolean, ...StoreRow, string, number, string, number, now: number]
      >(`
        SELECT pg_catalog.current_setting('transaction_read_only') = 'on', s.id, s.served_from, s.copied_from, f.mark, f.changes, c.mark, c.changes, ${SERVER_NOW}
        FROM partner_api.store s, partner_api.revision f, partner_api.revision c
        WHERE f.kind = 'facts' AND c.kind = 'content'`)
      if (row === undefined) throw missingSettingsError(database.place)
      const [
        isReadOnly,
        id,
        servedFrom,
        copiedFrom,
        factsMark,
        factsChanges,
        contentMark,
        contentChanges,
        at,
      ] = row
      reading = { at, askedAt, answeredAt: performance.now() }
      if (isReadOnly) database.reportReadOnly()
      checkStoreRow([id, servedFrom, copiedFrom])
      return {
        facts: revisionText(id, factsMark, factsChanges),
        content: revisionText(id, contentMark, contentChanges),
      }
    },

    async lock(query, kind) {
      const [locked] = await query<[mark: string, changes: number]>(
        'SELECT mark, changes FROM partner_api.revision WHERE kind = $1 FOR UPDATE',
        [kind],
      )
      // Afterwards: what the lock was waited for may have been a migration.
      const [row] = await query<StoreRow>('SELECT id, served_from, copied_from FROM partner_api.store')
      if (locked === undefined || row === undefined) throw missingSettingsError(database.place)
      checkStoreRow(row)
      return revisionText(row[0], ...locked)
    },

    async bump(query, kind) {
      await query(
        'UPDATE partner_api.revision SET changes = changes + 1, mark = $2 WHERE kind = $1',
        [kind, randomHex(4)],
      )
    },

    notify: database.notify,
  }
}

/** The mark tells changes of one number apart: a server that takes over without the last ones counts them again. */
function revisionText(storeId: string, mark: string, changes: number): string {
  return `${storeId}-${mark}.${changes}`
}
