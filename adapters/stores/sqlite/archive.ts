/** A store in a SQLite file as it is copied. */
import type { ArchiveState, SourceArchive, TargetArchive, WritableTable } from '../copy/archive.ts'
import { SQL_TABLES } from '../copy/columns.ts'
import { copiedAs, copyOf } from '../copy/copied-as.ts'
import { createSettingsTable } from '../copy/settings-table.ts'
import type { KeptProfile, Setting } from '../copy/tables.ts'
import { countableEntries } from '../copy/unfit-row.ts'
import { READ_COLUMNS } from '../entry-rows.ts'
import { randomHex } from '../settings.ts'
import { StoreError } from '../store-error.ts'
import { createTable } from './archive-table.ts'
import { configure } from './configure.ts'
import { type Database, openDatabase } from './database.ts'
import { checkMigrated, migrate, schemaVersion } from './migrate.ts'
import { createProfileShelf } from './profile-shelf.ts'

/**
 * Opens a file to copy from, and only to read.
 *
 * @throws {StoreError} `unreachable` when there is no such file or it cannot be opened.
 */
export function openSqliteSource(file: string): SourceArchive {
  return createArchive(openDatabase(file, { create: false, readOnly: true }), file)
}

/**
 * Opens a file to copy into, and changes nothing of one that is there before the copy begins.
 *
 * @throws {StoreError} `unreachable` when it cannot be opened.
 */
export function openSqliteTarget(file: string): TargetArchive {
  return createArchive(openDatabase(file, { create: true }), file)
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

function createArchive(database: Database, file: string): TargetArchive {
  const stateRow = database.statement<StateRow>(`
    SELECT id, copied_from, copied_as, ${contents}, audit_sequence > 0 OR EXISTS (SELECT 1 FROM audit)
      OR EXISTS (SELECT 1 FROM partner) OR EXISTS (SELECT 1 FROM industry) OR EXISTS (SELECT 1 FROM plan)
    FROM store`)
  const dataVersion = database.statement<[number]>('PRAGMA data_version')
  const mark = database.statement('UPDATE store SET id = ?1, copied_from = ?2, copied_as = NULL')
  const contentsNow = database.statement<[string]>(`SELECT ${contents} FROM store`)
  const unmark = database.statement(
    'UPDATE store SET copied_from = NULL, copied_as = ?2 WHERE copied_from = ?1',
  )
  const orphan = database.statement('UPDATE industry SET parent_slug = NULL WHERE parent_slug = ?1')
  const { audit, industries, ...others } = SQL_TABLES

  function readState(): ArchiveState {
    const [id, copiedFrom, note, contents, isUsed] = stateRow.get()!
    return {
      id,
      isEmpty: isUsed === 0,
      copiedFrom: copiedFrom ?? undefined,
      copyOf: copyOf(note, contents),
    }
  }

  return {
    place: file,

    state() {
      if (schemaVersion(database, file) === 0) return undefined
      checkMigrated(database, file)
      return readState()
    },

    // It moves when another connection commits anything, and this one writes nothing to a source.
    changes: () => String(dataVersion.get()![0]),

    tables: {
      settings: createSettings(database),
      partners: createTable(database, file, others.partners),
      keys: createTable(database, file, others.keys),
      industries: createTable(database, file, industries, {
        beforeRemoval(keys) {
          for (const [slug] of keys) orphan.run(slug!)
        },
      }),
      profiles: createProfiles(database, file),
      plans: createTable(database, file, others.plans),
      banners: createTable(database, file, others.banners),
      signups: createTable(database, file, others.signups),
      idempotency_keys: createTable(database, file, others.idempotency_keys),
      signup_counts: createTable(database, file, others.signup_counts),
      request_counts: createTable(database, file, others.request_counts),
      audit: countableEntries(file, createTable(database, file, audit, { columns: READ_COLUMNS })),
    },

    async begin(from) {
      await configure(database)
      // Rows come in the order of one index and go into eight others, all over the file: a page that many of them change
      // is moved there once for 64 MiB of log, and not for every 4. That takes half the time.
      database.exec('PRAGMA wal_autocheckpoint = 16384')
      migrate(database, file, undefined)
      database.transaction(() => {
        const { copiedFrom, copyOf, isEmpty } = readState()
        if (copiedFrom === from) return
        // Somebody else was here since it was judged.
        if (copiedFrom !== undefined || !isEmpty && copyOf !== from) {
          throw new StoreError('refused', `The store ${file} is not empty any more: nothing was copied.`)
        }
        mark.run(randomHex(8), from)
      })
    },

    finish: (from) =>
      void database.transaction(() => unmark.run(from, copiedAs(from, contentsNow.get()![0]))),
    close: database.close,
  }
}

/** Where a profile is listed and which words lead to it is written with it. */
function createProfiles(database: Database, file: string): WritableTable<KeptProfile> {
  const shelf = createProfileShelf(database)
  const setUpdated = database.statement('UPDATE profile SET updated_at = ?2 WHERE slug = ?1')
  return createTable(database, file, SQL_TABLES.profiles, {
    put(rows) {
      shelf.write(rows.map(({ record }) => record), 0)
      for (const { record, updatedAt } of rows) setUpdated.run(record.slug, updatedAt)
    },
    beforeRemoval: (keys) => shelf.remove(keys.map(([slug]) => slug as string)),
  })
}

function createSettings(database: Database): WritableTable<Setting> {
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
