/** A store in a SQLite file as the source or target of a copy. */
import {
  checkStillCopyable,
  type CopySource,
  type CopyTarget,
  formatCopyMark,
  openTables,
  parseCopyMark,
  type Row,
  type StoreState,
  toProfileDraft,
  type WritableTable,
} from '../copy/source-and-target.ts'
import { safeColumns } from '../row-format.ts'
import { randomHex } from '../schema.ts'
import { danglingReferenceError } from '../store-error.ts'
import type { CopiedTable, TableName } from '../tables.ts'
import { createProfileTable } from './content-tables.ts'
import { type Database, errorMessage, openDatabase, placeholders, upsertSql } from './database.ts'
import { checkSchema, configure, migrate, schemaVersion } from './migrate.ts'

/**
 * Opens a file to copy from, read-only.
 *
 * @throws {StoreError} `unreachable` when there is no such file or it cannot be opened.
 */
export function openSqliteSource(file: string): CopySource {
  return createCopyTarget(openDatabase(file, { create: false, readOnly: true }), file)
}

/**
 * Opens a file to copy into. An existing file is not changed before the copy begins.
 *
 * @throws {StoreError} `unreachable` when it cannot be opened.
 */
export function openSqliteTarget(file: string): CopyTarget {
  return createCopyTarget(openDatabase(file, { create: true }), file)
}

type StateRow = [
  id: string,
  copiedFrom: string | null,
  copiedAs: string | null,
  contents: string,
  isUsed: number,
]

/** Every change changes this text. Seconds: the sum of milliseconds over millions of keys would overflow. */
const contents = `json_array(facts_changes, content_changes, key_prefix, audit_sequence, audit_hash,
  (SELECT count(*) FROM signup), (SELECT sum(last_used_at / 1000) FROM partner_key), (SELECT sum(requests) FROM usage),
  (SELECT sum(requests) FROM key_usage),
  (SELECT json_array(count(*), sum(attempts), sum(due_at / 1000)) FROM webhook_delivery),
  (SELECT sum(failing_since) FROM webhook))`

function createCopyTarget(database: Database, file: string): CopyTarget {
  const selectState = database.statement<StateRow>(`
    SELECT id, copied_from, copied_as, ${contents}, audit_sequence > 0 OR EXISTS (SELECT 1 FROM audit)
      OR EXISTS (SELECT 1 FROM partner) OR EXISTS (SELECT 1 FROM industry) OR EXISTS (SELECT 1 FROM plan)
    FROM store`)
  const dataVersion = database.statement<[number]>('PRAGMA data_version')
  const markCopying = database.statement('UPDATE store SET id = ?1, copied_from = ?2, copied_as = NULL')
  const selectChangeToken = database.statement<[string]>(`SELECT ${contents} FROM store`)
  const clearMark = database.statement(
    'UPDATE store SET copied_from = NULL, copied_as = ?2 WHERE copied_from = ?1',
  )
  const overrides = createOverrides(database)

  function readState(): StoreState {
    const [id, copyingFrom, mark, changeToken, isUsed] = selectState.get()!
    return {
      id,
      isEmpty: isUsed === 0,
      copyingFrom: copyingFrom ?? undefined,
      finishedCopyOf: parseCopyMark(mark, changeToken),
    }
  }

  return {
    location: file,

    state() {
      if (schemaVersion(database, file) === 0) return undefined
      checkSchema(database, file, false)
      return readState()
    },

    // Moves when another connection commits; this one writes nothing to a source.
    changeToken: () => String(dataVersion.get()![0]),

    tables: openTables((table, name) => openTable(database, file, table, overrides[name])),

    async begin(from) {
      await configure(database)
      // Rows arrive in the order of one index and change pages of eight others all over the file: a checkpoint every
      // 64 MiB of log instead of every 4 writes such a page once and halves the time.
      database.exec('PRAGMA wal_autocheckpoint = 16384')
      migrate(database, file, undefined)
      database.transaction(() => {
        if (checkStillCopyable(readState(), from, file)) markCopying.run(randomHex(8), from)
      })
    },

    finish: (from) =>
      void database.transaction(() => clearMark.run(from, formatCopyMark(from, selectChangeToken.get()![0]))),
    close: database.close,
  }
}

/** Writes that differ from table to table. */
interface TableOverrides {
  readonly put?: (rows: readonly Row[]) => void
  /** Removes what follows from the rows with these keys, or what refers to them. */
  readonly beforeRemoval?: (keys: readonly Row[]) => void
}

type Overrides = { readonly [Name in TableName]?: TableOverrides }

function createOverrides(database: Database): Overrides {
  const clearParent = database.statement('UPDATE industry SET parent_slug = NULL WHERE parent_slug = ?1')
  const profiles = createProfileTable(database)
  return {
    industries: {
      beforeRemoval(keys) {
        for (const [slug] of keys) clearParent.run(slug!)
      },
    },
    // The listings and words of a profile are written with it.
    profiles: {
      put: (rows) => profiles.write(rows.map(toProfileDraft)),
      beforeRemoval: (keys) => profiles.remove(keys.map(([slug]) => String(slug))),
    },
  }
}

function openTable(
  database: Database,
  file: string,
  { name, columns, keyLength }: CopiedTable,
  overrides: TableOverrides = {},
): WritableTable {
  const keys = columns.slice(0, keyLength)
  const selected = `SELECT ${safeColumns(columns)} FROM ${name}`
  const order = keyLength === 0 ? '' : `ORDER BY ${keys}`
  const selectFirst = database.statement(`${selected} ${order} LIMIT ?1 + 0`)
  const selectNext = database.statement(
    `${selected} WHERE (${keys}) > (${placeholders(keys)}) ${order} LIMIT ?${keyLength + 1} + 0`,
  )
  const putRow = database.statement(
    keyLength === 0
      ? `UPDATE ${name} SET (${columns}) = (${placeholders(columns)})`
      : upsertSql(name, columns, keyLength),
  )
  const deleteRow = database.statement(`DELETE FROM ${name} WHERE (${keys}) = (${placeholders(keys)})`)
  const put = overrides.put ?? ((rows: readonly Row[]) => {
    for (const row of rows) putRow.run(...row)
  })

  return {
    read: (after, limit) => after === undefined ? selectFirst.all(limit) : selectNext.all(...after, limit),

    write(rows, removedKeys) {
      try {
        database.transaction(() => {
          put(rows)
          overrides.beforeRemoval?.(removedKeys)
          for (const key of removedKeys) deleteRow.run(...key)
        })
      } catch (error) {
        throw errorMessage(error).includes('FOREIGN KEY') ? danglingReferenceError(file, error) : error
      }
    },
  }
}
