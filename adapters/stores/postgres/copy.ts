/** A store in a Postgres database as it is copied. */
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
import type { Value } from '../row-format.ts'
import { randomHex } from '../settings.ts'
import { danglingReferenceError, StoreError } from '../store-error.ts'
import { connect } from './database.ts'
import type { Database, Query } from './database.ts'
import { listText } from './sql.ts'
import { SqlError } from './errors.ts'
import { openContentTable } from './content-tables.ts'
import { checkMigrated, migrate, migrationStatus } from './migrate.ts'
import { columnParameters, columnType, unnestColumns } from './sql.ts'

/** Opens a database to copy from. Nothing is written to it. */
export function openPostgresSource(url: string): CopySource {
  return createCopyTarget(url)
}

/** Opens a database to copy into, and changes nothing before the copy begins. */
export function openPostgresTarget(url: string): CopyTarget {
  return createCopyTarget(url)
}

/** Counting the signups of years, or having a table measured, may take minutes. */
const timeoutMs = 600_000

function createCopyTarget(url: string): CopyTarget {
  const database = connect(url, { timeoutMs })
  const { audit, industries, signups, signup_counts: counts, ...others } = SQL_TABLES

  return {
    location: database.place,

    state: () =>
      withStoreErrors(database, async () => {
        const { current, latest } = await migrationStatus(url)
        if (current === 0) return undefined
        await checkMigrated(database)
        // It may be served by older programs, but those do not know all that there is to copy.
        if (current > latest) throw newerSchemaError(database)
        return await readState(database.read)
      }),

    changeToken: () => withStoreErrors(database, () => readChangeToken(database.read)),

    tables: {
      settings: createSettingsCopyTable(database),
      partners: createCopyTable(database, others.partners),
      keys: createCopyTable(database, others.keys),
      industries: createCopyTable(database, industries, { beforeRemoval: clearParents }),
      profiles: createProfileCopyTable(database),
      plans: createCopyTable(database, others.plans),
      banners: createCopyTable(database, others.banners),
      signups: createCopyTable(database, signups, { derived: { recency: '-created_at' } }),
      idempotency_keys: createCopyTable(database, others.idempotency_keys),
      signup_counts: createCopyTable(database, counts, { sums: ['signups'], keyEnd: { slot: '0' } }),
      request_counts: createCopyTable(database, others.request_counts),
      audit: withSafeIntegers(
        database.place,
        createCopyTable(database, audit, { derived: { recency: '-at' } }),
      ),
    },

    async begin(from) {
      await withStoreErrors(database, async () => {
        await migrate(database, undefined)
        await database.transaction((query) => markCopying(query, database, from))
      })
      await database.notify()
    },

    async refreshStatistics() {
      // Until the server has looked at what was written, it takes tables for as large as they were. Whoever may not ask
      // for that copies all the same.
      for (const table of ['listing', 'tally', ...Object.values(SQL_TABLES).map(({ name }) => name)]) {
        await database.write(`VACUUM (ANALYZE) partner_api.${table}`).catch(() => undefined)
      }
    },

    async finish(from) {
      await database.write(
        'UPDATE partner_api.store SET copied_from = NULL, copied_as = $2 WHERE copied_from = $1',
        [from, formatCopyMark(from, await readChangeToken(database.read))],
      )
      await database.notify()
    },

    close: database.close,
  }
}

async function markCopying(query: Query, { place }: Database, from: string): Promise<void> {
  // Whoever is changing something is waited for, and whoever is about to finds the mark.
  await query('SELECT kind FROM partner_api.revision ORDER BY kind FOR UPDATE')
  const { copyingFrom: copiedFrom, finishedCopyOf: copyOf, isEmpty } = await readState(query)
  if (copiedFrom === from) return
  if (copiedFrom !== undefined || !isEmpty && copyOf !== from) {
    throw new StoreError('refused', `The store ${place} is not empty any more: nothing was copied.`)
  }
  await query('UPDATE partner_api.store SET id = $1, copied_from = $2, copied_as = NULL', [
    randomHex(8),
    from,
  ])
}

async function readState(query: Query): Promise<StoreState> {
  const [row] = await query<
    [id: string, copiedFrom: string | null, copiedAs: string | null, isUsed: boolean]
  >(`
    SELECT id, copied_from, copied_as, audit_sequence > 0 OR EXISTS (SELECT 1 FROM partner_api.audit)
      OR EXISTS (SELECT 1 FROM partner_api.partner) OR EXISTS (SELECT 1 FROM partner_api.industry)
      OR EXISTS (SELECT 1 FROM partner_api.plan)
    FROM partner_api.store`)
  const [id, copiedFrom, mark, isUsed] = row!
  return {
    id,
    isEmpty: !isUsed,
    copyingFrom: copiedFrom ?? undefined,
    finishedCopyOf: mark === null ? undefined : parseCopyMark(mark, await readChangeToken(query)),
  }
}

/** Every change moves one of these: a revision, the end of the trail, the prefix, or what is only ever added to. */
async function readChangeToken(query: Query): Promise<string> {
  const rows = await query(`
    SELECT kind, changes, mark, key_prefix, audit_sequence, audit_seal,
      (SELECT count(*)::text FROM partner_api.signup),
      (SELECT sum(last_used_at)::text FROM partner_api.partner_key),
      (SELECT sum(requests)::text FROM partner_api.usage)
    FROM partner_api.store, partner_api.revision ORDER BY kind`)
  return JSON.stringify(rows)
}

async function clearParents(query: Query, slugs: readonly string[]): Promise<void> {
  await query('UPDATE partner_api.industry SET parent_slug = NULL WHERE parent_slug = ANY ($1::text[])', [
    listText(slugs),
  ])
}

/** Where a profile is listed, and under which words, is written with it. */
function createProfileCopyTable(database: Database): WritableTable<CopiedProfile> {
  return createCopyTable(database, SQL_TABLES.profiles, {
    async change(query, profiles, surplus) {
      const table = openContentTable('profiles', query)
      await table.write(profiles)
      await table.remove(surplus)
      await table.flush()
    },
  })
}

function createSettingsCopyTable(database: Database): WritableTable<Setting> {
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

function newerSchemaError({ place }: Database): StoreError {
  return new StoreError(
    'newer_schema',
    `The store ${place} has been migrated by a newer program, and this one does not know all that is in it: copy it with ` +
      'that one.',
  )
}

/** What of a table is not done as everywhere. */
export interface TableOverrides<R> {
  /** Columns that follow from those that are written, and how. */
  readonly derived?: Readonly<Record<string, string>>
  /** The same, of columns that end the primary key. */
  readonly keyEnd?: Readonly<Record<string, string>>
  /** Columns of which a row is the sum over several of the table. */
  readonly sums?: readonly string[]
  /** Does what has to be done before the rows with these keys, of one column each, are removed. */
  readonly beforeRemoval?: (query: Query, keys: readonly string[]) => Promise<void>
  /** Writes rows and removes those with these keys, of one column each. */
  readonly change?: (query: Query, rows: readonly R[], keys: readonly string[]) => Promise<void>
}

/** A table of a database as it is copied: rows are read by key, and written in few statements. */
export function createCopyTable<R>(
  database: Database,
  form: SqlTable<R>,
  overrides: TableOverrides<R> = {},
): WritableTable<R> {
  const { first: firstPageSql, next: nextPageSql, upsert: upsertSql, erase: deleteSql } = statementsFor(
    form,
    overrides,
  )

  async function change(query: Query, rows: readonly R[], surplus: readonly RowKey[]): Promise<void> {
    const removedKeys = surplus.map(([key]) => String(key))
    if (overrides.change !== undefined) return await overrides.change(query, rows, removedKeys)
    if (rows.length > 0) await query(upsertSql, columnParameters(rows.map(form.values)))
    if (surplus.length === 0) return
    await overrides.beforeRemoval?.(query, removedKeys)
    await query(deleteSql, columnParameters(surplus))
  }

  return {
    async read(after, limit) {
      const rows = await withStoreErrors(
        database,
        () =>
          after === undefined
            ? database.read<Value[]>(firstPageSql, [limit])
            : database.read<Value[]>(nextPageSql, [...after, limit]),
      )
      return rows.map(form.read)
    },

    write: (rows, surplus) =>
      withStoreErrors(database, () => database.transaction((query) => change(query, rows, surplus))),
  }
}

/** Passes on what the server says to a statement as what it means for a copy. */
export async function withStoreErrors<T>({ place }: Database, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
    // foreign_key_violation
    if (error.code === '23503') throw danglingReferenceError(place, error)
    throw new StoreError('unreachable', `The store ${place} cannot be copied: ${error.message}.`, {
      cause: error,
    })
  }
}

function statementsFor<R>({ name, columns, keyLength }: SqlTable<R>, overrides: TableOverrides<R>) {
  const { derived = {}, keyEnd = {}, sums = [] } = overrides
  const table = `partner_api.${name}`
  const keys = columns.slice(0, keyLength)
  const others = [...columns.slice(keyLength), ...Object.keys(derived)]
  const selected = columns.map((column) => sums.includes(column) ? `sum(${column})::bigint` : column)
  const position = keys.map((key, index) => `$${index + 1}::${columnType(key)}`)
  const page = (where: string, limit: number) => `
    SELECT ${selected} FROM ${table} ${where} ${sums.length > 0 ? `GROUP BY ${keys}` : ''}
    ORDER BY ${keys} LIMIT $${limit}`
  return {
    first: page('', 1),
    next: page(`WHERE (${keys}) > (${position})`, keyLength + 1),
    upsert: `
      INSERT INTO ${table} (${[...columns, ...Object.keys(derived), ...Object.keys(keyEnd)]})
      SELECT ${[...columns, ...Object.values(derived), ...Object.values(keyEnd)]}
      FROM ${unnestColumns(columns)} AS given (${columns})
      ON CONFLICT (${[...keys, ...Object.keys(keyEnd)]})
      DO UPDATE SET ${others.map((column) => `${column} = excluded.${column}`)}`,
    erase: `DELETE FROM ${table} WHERE (${keys}) IN (SELECT * FROM ${unnestColumns(keys)} AS gone)`,
  }
}
