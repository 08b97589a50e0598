/** A store in a Postgres database as it is copied. */
import type { ArchiveState, SourceArchive, TargetArchive, WritableTable } from '../copy/archive.ts'
import { SQL_TABLES } from '../copy/columns.ts'
import { copiedAs, copyOf } from '../copy/copied-as.ts'
import { createSettingsTable } from '../copy/settings-table.ts'
import type { KeptProfile, Setting } from '../copy/tables.ts'
import { countableEntries } from '../copy/unfit-row.ts'
import { randomHex } from '../settings.ts'
import { StoreError } from '../store-error.ts'
import { createTable, explaining } from './archive-table.ts'
import { connect } from './connection/connect.ts'
import { type Database, listText, type Query } from './connection/database.ts'
import { checkMigrated, migrate, migrationStatus } from './migrate.ts'
import { openShelf } from './content/shelves.ts'

/** Opens a database to copy from. Nothing is written to it. */
export function openPostgresSource(url: string): SourceArchive {
  return createArchive(url)
}

/** Opens a database to copy into, and changes nothing before the copy begins. */
export function openPostgresTarget(url: string): TargetArchive {
  return createArchive(url)
}

/** Counting the signups of years, or having a table measured, may take minutes. */
const timeoutMs = 600_000

function createArchive(url: string): TargetArchive {
  const database = connect(url, { timeoutMs })
  const { audit, industries, signups, signup_counts: counts, ...others } = SQL_TABLES

  return {
    place: database.place,

    state: () =>
      explaining(database, async () => {
        const { current, latest } = await migrationStatus(url)
        if (current === 0) return undefined
        await checkMigrated(database)
        // It may be served by older programs, but those do not know all that there is to copy.
        if (current > latest) throw tooNew(database)
        return await readState(database.read)
      }),

    changes: () => explaining(database, () => readChanges(database.read)),

    tables: {
      settings: createSettings(database),
      partners: createTable(database, others.partners),
      keys: createTable(database, others.keys),
      industries: createTable(database, industries, { beforeRemoval: orphan }),
      profiles: createProfiles(database),
      plans: createTable(database, others.plans),
      banners: createTable(database, others.banners),
      signups: createTable(database, signups, { derived: { recency: '-created_at' } }),
      idempotency_keys: createTable(database, others.idempotency_keys),
      signup_counts: createTable(database, counts, { sums: ['signups'], keyEnd: { slot: '0' } }),
      request_counts: createTable(database, others.request_counts),
      audit: countableEntries(database.place, createTable(database, audit, { derived: { recency: '-at' } })),
    },

    async begin(from) {
      await explaining(database, async () => {
        await migrate(database, undefined)
        await database.transaction((query) => mark(query, database, from))
      })
      await database.notify()
    },

    async settle() {
      // Until the server has looked at what was written, it takes tables for as large as they were. Whoever may not ask
      // for that copies all the same.
      for (const table of ['listing', 'tally', ...Object.values(SQL_TABLES).map(({ name }) => name)]) {
        await database.write(`VACUUM (ANALYZE) partner_api.${table}`).catch(() => undefined)
      }
    },

    async finish(from) {
      await database.write(
        'UPDATE partner_api.store SET copied_from = NULL, copied_as = $2 WHERE copied_from = $1',
        [from, copiedAs(from, await readChanges(database.read))],
      )
      await database.notify()
    },

    close: database.close,
  }
}

async function mark(query: Query, { place }: Database, from: string): Promise<void> {
  // Whoever is changing something is waited for, and whoever is about to finds the mark.
  await query('SELECT kind FROM partner_api.revision ORDER BY kind FOR UPDATE')
  const { copiedFrom, copyOf, isEmpty } = await readState(query)
  if (copiedFrom === from) return
  if (copiedFrom !== undefined || !isEmpty && copyOf !== from) {
    throw new StoreError('refused', `The store ${place} is not empty any more: nothing was copied.`)
  }
  await query('UPDATE partner_api.store SET id = $1, copied_from = $2, copied_as = NULL', [
    randomHex(8),
    from,
  ])
}

async function readState(query: Query): Promise<ArchiveState> {
  const [row] = await query<
    [id: string, copiedFrom: string | null, copiedAs: string | null, isUsed: boolean]
  >(`
    SELECT id, copied_from, copied_as, audit_sequence > 0 OR EXISTS (SELECT 1 FROM partner_api.audit)
      OR EXISTS (SELECT 1 FROM partner_api.partner) OR EXISTS (SELECT 1 FROM partner_api.industry)
      OR EXISTS (SELECT 1 FROM partner_api.plan)
    FROM partner_api.store`)
  const [id, copiedFrom, note, isUsed] = row!
  return {
    id,
    isEmpty: !isUsed,
    copiedFrom: copiedFrom ?? undefined,
    copyOf: note === null ? undefined : copyOf(note, await readChanges(query)),
  }
}

/** Every change moves one of these: a revision, the end of the trail, the prefix, or what is only ever added to. */
async function readChanges(query: Query): Promise<string> {
  const rows = await query(`
    SELECT kind, changes, mark, key_prefix, audit_sequence, audit_seal,
      (SELECT count(*)::text FROM partner_api.signup),
      (SELECT sum(last_used_at)::text FROM partner_api.partner_key),
      (SELECT sum(requests)::text FROM partner_api.usage)
    FROM partner_api.store, partner_api.revision ORDER BY kind`)
  return JSON.stringify(rows)
}

async function orphan(query: Query, slugs: readonly string[]): Promise<void> {
  await query('UPDATE partner_api.industry SET parent_slug = NULL WHERE parent_slug = ANY ($1::text[])', [
    listText(slugs),
  ])
}

/** Where a profile is listed, and under which words, is written with it. */
function createProfiles(database: Database): WritableTable<KeptProfile> {
  return createTable(database, SQL_TABLES.profiles, {
    async change(query, profiles, surplus) {
      const shelf = openShelf('profiles', query)
      await shelf.write(profiles)
      await shelf.remove(surplus)
      await shelf.finish()
    },
  })
}

function createSettings(database: Database): WritableTable<Setting> {
  return createSettingsTable(
    async () => {
      const [row] = await database.read<[prefix: string, secret: string, sequence: number, seal: string]>(
        'SELECT key_prefix, cursor_secret, audit_sequence, audit_seal FROM partner_api.store',
      )
      const [keyPrefix, cursorSecret, auditSequence, auditSeal] = row!
      return { keyPrefix, cursorSecret, auditSequence, auditSeal }
    },
    async ({ keyPrefix, cursorSecret, auditSequence, auditSeal }) => {
      await database.write(
        `UPDATE partner_api.store
        SET key_prefix = $1, cursor_secret = $2, audit_sequence = $3, audit_seal = $4`,
        [keyPrefix, cursorSecret, auditSequence, auditSeal],
      )
    },
  )
}

function tooNew({ place }: Database): StoreError {
  return new StoreError(
    'newer_schema',
    `The store ${place} has been migrated by a newer program, and this one does not know all that is in it: copy it with ` +
      'that one.',
  )
}
