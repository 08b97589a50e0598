import type { ClockReading } from '../../../core/lib/clock.ts'
import type { Revision } from '../../../core/ports/facts.ts'
import { missingSettingsError, replacedByCopyError, unfinishedCopyError } from '../sql/errors.ts'
import { newerSchemaError, randomHex } from '../sql/schema.ts'
import type { PostgresQuery } from './connection.ts'
import type { PostgresDatabase } from './database.ts'
import { LATEST } from './migrate.ts'
import { SERVER_NOW } from './sql.ts'

type StoreRow = [id: string, servedFrom: number, isIncomplete: boolean]

/** The revision of a store, and the only way to move it. */
export interface Revisions {
  /** The server's clock when the revision was read last. */
  clock(): ClockReading | undefined
  /**
   * @param query Default: `lookUp`.
   * @throws {StoreError} `unreachable` when the server has stopped taking writes, `newer_schema` when the store has
   * outgrown this program, `refused` during a copy into the store and after it, as it is another store then.
   */
  current(query?: PostgresQuery): Promise<Revision>
  /**
   * Locks the revision of a kind, and with it all changes of that kind, until the end of the transaction. Call it
   * first: what was read before may have changed.
   *
   * @throws {StoreError} as `current` does.
   */
  lock(query: PostgresQuery, kind: keyof Revision): Promise<string>
  /** Moves a revision that the transaction has locked. */
  bump(query: PostgresQuery, kind: keyof Revision): Promise<void>
}

export function createRevisions(database: PostgresDatabase): Revisions {
  let openedId: string | undefined
  let reading: ClockReading | undefined

  function checkStoreRow([id, servedFrom, isIncomplete]: StoreRow): void {
    if (servedFrom > LATEST) throw newerSchemaError(database.location, servedFrom, LATEST)
    if (isIncomplete) throw unfinishedCopyError(database.location)
    openedId ??= id
    if (id !== openedId) throw replacedByCopyError(database.location)
  }

  return {
    clock: () => reading,

    async current(query = database.lookUp) {
      const askedAt = performance.now()
      const [row] = await query<
        [now: number, isReadOnly: boolean, string, number, string, number, ...StoreRow]
      >(`
        SELECT ${SERVER_NOW}, pg_catalog.current_setting('transaction_read_only') = 'on',
          f.mark, f.changes, c.mark, c.changes, s.id, s.served_from, s.is_incomplete
        FROM partner_api.store s, partner_api.revision f, partner_api.revision c
        WHERE f.kind = 'facts' AND c.kind = 'content'`)
      if (row === undefined) throw missingSettingsError(database.location)
      const [at, isReadOnly, factsMark, factsChanges, contentMark, contentChanges, ...storeRow] = row
      reading = { at, askedAt, answeredAt: performance.now() }
      if (isReadOnly) database.reportReadOnly()
      checkStoreRow(storeRow)
      const [id] = storeRow
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
      // After the lock, which a migration may have held.
      const [row] = await query<StoreRow>('SELECT id, served_from, is_incomplete FROM partner_api.store')
      if (locked === undefined || row === undefined) throw missingSettingsError(database.location)
      checkStoreRow(row)
      return revisionText(row[0], ...locked)
    },

    async bump(query, kind) {
      await query(
        'UPDATE partner_api.revision SET changes = changes + 1, mark = $2 WHERE kind = $1',
        [kind, randomHex(4)],
      )
    },
  }
}

/** The mark is random: a server that takes over without the last changes counts them again. */
function revisionText(storeId: string, mark: string, changes: number): string {
  return `${storeId}-${mark}.${changes}`
}
