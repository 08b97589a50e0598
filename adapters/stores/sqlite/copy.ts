/** A store in a SQLite file as it is copied. */
import {
  type CopySource,
  type CopyTarget,
  formatCopyMark,
  parseCopyMark,
  type StoreState,
  type WritableTable,
} from '../copy/source-and-target.ts'
import { createSettingsTable, SQL_TABLES, type SqlTable, withSafeIntegers } from '../copy/sql-tables.ts'
import type { CopiedProfile, RowKey, Setting } from '../copy/tables.ts'
import { AUDIT_READ_COLUMNS } from '../rows.ts'
import { randomHex } from '../settings.ts'
import { danglingReferenceError, StoreError } from '../store-error.ts'
import { createProfileTable } from './content-tables.ts'
import { type Database, errorMessage, openDatabase } from './database.ts'
import { checkMigrated, configure, migrate, schemaVersion } from './migrate.ts'

/**
 * Opens a file to copy from, and only to read.
 *
 * @throws {StoreError} `unreachable` when there is no such file or it cannot be opened.
 */
export function openSqliteSource(file: string): CopySource {
  return createCopyTarget(openDatabase(file, { create: false, readOnly: true }), file)
}

/**
 * Opens a file to copy into, and changes nothing of one that is there before the copy begins.
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

/** Every change moves one of these. Keys are used once a minute each at most, and milliseconds of millions overflow. */
const contents = `json_array(facts_changes, content_changes, key_prefix, audit_sequence, audit_seal,
  (SELECT count(*) FROM signup), (SELECT sum(last_used_at / 1000) FROM partner_key), (SELECT sum(requests) FROM usage))`

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
  const clearParent = database.statement('UPDATE industry SET parent_slug = NULL WHERE parent_slug = ?1')
  const { audit, industries, ...others } = SQL_TABLES

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
      checkMigrated(database, file)
      return readState()
    },

    // It moves when another connection commits anything, and this one writes nothing to a source.
    changeToken: () => String(dataVersion.get()![0]),

    tables: {
      settings: createSettingsCopyTable(database),
      partners: createCopyTable(database, file, others.partners),
      keys: createCopyTable(database, file, others.keys),
      industries: createCopyTable(database, file, industries, {
        beforeRemoval(keys) {
          for (const [slug] of keys) clearParent.run(slug!)
        },
      }),
      profiles: createProfileCopyTable(database, file),
      plans: createCopyTable(database, file, others.plans),
      banners: createCopyTable(database, file, others.banners),
      signups: createCopyTable(database, file, others.signups),
      idempotency_keys: createCopyTable(database, file, others.idempotency_keys),
      signup_counts: createCopyTable(database, file, others.signup_counts),
      request_counts: createCopyTable(database, file, others.request_counts),
      audit: withSafeIntegers(file, createCopyTable(database, file, audit, { columns: AUDIT_READ_COLUMNS })),
    },

    async begin(from) {
      await configure(database)
      // Rows come in the order of one index and go into eight others, all over the file: a page that many of them change
      // is moved there once for 64 MiB of log, and not for every 4. That takes half the time.
      database.exec('PRAGMA wal_autocheckpoint = 16384')
      migrate(database, file, undefined)
      database.transaction(() => {
        const { copyingFrom: copiedFrom, finishedCopyOf: copyOf, isEmpty } = readState()
        if (copiedFrom === from) return
        // Somebody else was here since it was judged.
        if (copiedFrom !== undefined || !isEmpty && copyOf !== from) {
          throw new StoreError('refused', `The store ${file} is not empty any more: nothing was copied.`)
        }
        markCopying.run(randomHex(8), from)
      })
    },

    finish: (from) =>
      void database.transaction(() => clearMark.run(from, formatCopyMark(from, selectChangeToken.get()![0]))),
    close: database.close,
  }
}

/** Where a profile is listed and which words lead to it is written with it. */
function createProfileCopyTable(database: Database, file: string): WritableTable<CopiedProfile> {
  const table = createProfileTable(database)
  const setUpdated = database.statement('UPDATE profile SET updated_at = ?2 WHERE slug = ?1')
  return createCopyTable(database, file, SQL_TABLES.profiles, {
    put(rows) {
      table.write(rows.map(({ record }) => record), 0)
      for (const { record, updatedAt } of rows) setUpdated.run(record.slug, updatedAt)
    },
    beforeRemoval: (keys) => table.remove(keys.map(([slug]) => slug as string)),
  })
}

function createSettingsCopyTable(database: Database): WritableTable<Setting> {
  const read = database.statement<[prefix: string, secret: string, sequence: number, seal: string]>(
    'SELECT key_prefix, cursor_secret, CAST(audit_sequence AS REAL), audit_seal FROM store',
  )
  const write = database.statement(
    'UPDATE store SET key_prefix = ?1, cursor_secret = ?2, audit_sequence = ?3, audit_seal = ?4',
  )
  return createSettingsTable(
    () => {
      const [keyPrefix, cursorSecret, auditSequence, auditSeal] = read.get()!
      return { keyPrefix, cursorSecret, auditSequence, auditSeal }
    },
    ({ keyPrefix, cursorSecret, auditSequence, auditSeal }) =>
      void write.run(keyPrefix, cursorSecret, auditSequence, auditSeal),
  )
}

/** What of a table is not done as everywhere. */
export interface TableOverrides<R> {
  /** The columns as they are read. */
  readonly columns?: readonly string[]
  /** Writes rows. */
  readonly put?: (rows: readonly R[]) => void
  /** Removes what follows from the rows with these keys, or refers to them. */
  readonly beforeRemoval?: (keys: readonly RowKey[]) => void
}

/** A table of a file as it is copied: rows are read by key, and written one by one in a transaction of all. */
export function createCopyTable<R>(
  database: Database,
  file: string,
  { name, columns, keyLength, values, read }: SqlTable<R>,
  overrides: TableOverrides<R> = {},
): WritableTable<R> {
  const keys = columns.slice(0, keyLength)
  const placeholders = (from: readonly string[]) => from.map((_, index) => `?${index + 1}`)
  const selected = `SELECT ${overrides.columns ?? columns} FROM ${name}`
  const selectFirst = database.statement(`${selected} ORDER BY ${keys} LIMIT ?1 + 0`)
  const selectNext = database.statement(
    `${selected} WHERE (${keys}) > (${placeholders(keys)}) ORDER BY ${keys} LIMIT ?${keyLength + 1} + 0`,
  )
  const upsertRow = database.statement(`
    INSERT INTO ${name} (${columns}) VALUES (${placeholders(columns)}) ON CONFLICT (${keys})
    DO UPDATE SET ${columns.slice(keyLength).map((column) => `${column} = excluded.${column}`)}`)
  const deleteRow = database.statement(`DELETE FROM ${name} WHERE (${keys}) = (${placeholders(keys)})`)
  const putRows = overrides.put ?? ((rows: readonly R[]) => {
    for (const row of rows) upsertRow.run(...values(row))
  })

  return {
    read: (after, limit) =>
      (after === undefined ? selectFirst.all(limit) : selectNext.all(...after, limit)).map((row) =>
        read(row)
      ),

    write(rows, surplus) {
      try {
        database.transaction(() => {
          putRows(rows)
          overrides.beforeRemoval?.(surplus)
          for (const key of surplus) deleteRow.run(...key)
        })
      } catch (error) {
        throw errorMessage(error).includes('FOREIGN KEY') ? danglingReferenceError(file, error) : error
      }
    },
  }
}
