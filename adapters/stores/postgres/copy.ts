/** A Postgres store as the source or target of a copy. */
import {
  checkStillCopyable,
  type CopyTarget,
  formatCopyMark,
  openTables,
  parseCopyMark,
  type Row,
  type StoreState,
  toProfileDraft,
  type WritableTable,
} from '../copy/source-and-target.ts'
import type { StoredRow } from '../row-format.ts'
import { randomHex } from '../schema.ts'
import { danglingReferenceError, StoreError } from '../store-error.ts'
import { COPIED_TABLES, type CopiedTable, type TableName } from '../tables.ts'
import type { Query } from './connection.ts'
import { openProfileTable } from './content-tables.ts'
import { connect, type Database } from './database.ts'
import { SqlError } from './errors.ts'
import { checkMigrated, LATEST, migrate, readSchema } from './migrate.ts'
import { columnParameters, columnType, listText, unnestColumns, upsertSql } from './sql.ts'

/** To count the signups of years or to analyze a table may take minutes. */
const timeoutMs = 600_000

/** Opens either end of a copy. Nothing is changed before `begin`. */
export function openPostgresCopy(url: string): CopyTarget {
  const database = connect(url, { timeoutMs })

  return {
    location: database.place,

    state: () =>
      withStoreErrors(database, async () => {
        const { version } = await readSchema(database.read, database.place)
        if (version === 0) return undefined
        await checkMigrated(database)
        // Older programs may serve it, but do not know everything that has to be copied.
        if (version > LATEST) throw newerSchemaError(database)
        return await readState(database.read)
      }),

    changeToken: () => withStoreErrors(database, () => readChangeToken(database.read)),

    tables: openTables((table, name) => openTable(database, table, tableOverrides[name])),

    async begin(from) {
      await withStoreErrors(database, async () => {
        await migrate(database, undefined)
        await database.transaction((query) => markCopying(query, database, from))
      })
      await database.notify()
    },

    async refreshStatistics() {
      // Without new statistics, the server plans with the old table sizes. A role that may not update them can still copy.
      for (const table of ['listing', 'tally', ...Object.values(COPIED_TABLES).map(({ name }) => name)]) {
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
  // Waits for changes in flight; later ones find the mark.
  await query('SELECT kind FROM partner_api.revision ORDER BY kind FOR UPDATE')
  if (!checkStillCopyable(await readState(query), from, place)) return
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

/** Every change moves one of these: a revision, the end of the audit log, the prefix or a sum that only grows. */
async function readChangeToken(query: Query): Promise<string> {
  const rows = await query(`
    SELECT kind, changes, mark, key_prefix, audit_sequence, audit_hash,
      (SELECT count(*)::text FROM partner_api.signup),
      (SELECT sum(last_used_at)::text FROM partner_api.partner_key),
      (SELECT sum(requests)::text FROM partner_api.usage),
      (SELECT sum(requests)::text FROM partner_api.key_usage),
      (SELECT sum(failing_since)::text FROM partner_api.webhook),
      (SELECT count(*) || '.' || sum(attempts) || '.' || sum(due_at) FROM partner_api.webhook_delivery)
    FROM partner_api.store, partner_api.revision ORDER BY kind`)
  return JSON.stringify(rows)
}

async function clearParents(query: Query, slugs: readonly string[]): Promise<void> {
  await query('UPDATE partner_api.industry SET parent_slug = NULL WHERE parent_slug = ANY ($1::text[])', [
    listText(slugs),
  ])
}

function newerSchemaError({ place }: Database): StoreError {
  return new StoreError(
    'newer_schema',
    `The store ${place} has been migrated by a newer program, and this one does not know all that is in it: copy it with ` +
      'that one.',
  )
}

interface TableOverrides {
  /** Columns that follow from the written ones, with their SQL. */
  readonly derived?: Readonly<Record<string, string>>
  /** The same for columns that end the primary key. */
  readonly keyEnd?: Readonly<Record<string, string>>
  /** Columns that are summed up over several rows of the table. */
  readonly sums?: readonly string[]
  /** Called before the rows with these keys are removed. */
  readonly beforeRemoval?: (query: Query, keys: readonly string[]) => Promise<void>
  /** Writes rows and removes those with these keys. */
  readonly change?: (query: Query, rows: readonly Row[], keys: readonly string[]) => Promise<void>
}

const tableOverrides: { readonly [Name in TableName]?: TableOverrides } = {
  industries: { beforeRemoval: clearParents },
  profiles: { change: changeProfiles },
  signups: { derived: { recency: '-created_at' } },
  signup_counts: { sums: ['signups'], keyEnd: { slot: '0' } },
  audit: { derived: { recency: '-at' } },
}

/** The listings and words of a profile are written with it. */
async function changeProfiles(query: Query, rows: readonly Row[], removed: readonly string[]): Promise<void> {
  const table = openProfileTable(query)
  const drafts = rows.map(toProfileDraft)
  await table.write(drafts, await table.find(drafts.map(({ slug }) => slug)))
  await table.remove(removed)
  await table.flush()
}

function openTable(database: Database, form: CopiedTable, overrides: TableOverrides = {}): WritableTable {
  const { firstPage, nextPage, put, erase } = statementsFor(form, overrides)

  async function change(query: Query, rows: readonly Row[], removedKeys: readonly Row[]): Promise<void> {
    const firstColumns = removedKeys.map(([key]) => String(key))
    if (overrides.change !== undefined) return await overrides.change(query, rows, firstColumns)
    if (rows.length > 0) await query(put, columnParameters(rows))
    if (removedKeys.length === 0) return
    await overrides.beforeRemoval?.(query, firstColumns)
    await query(erase, columnParameters(removedKeys))
  }

  return {
    read: (after, limit) =>
      withStoreErrors(
        database,
        () =>
          after === undefined
            ? database.read<StoredRow>(firstPage, [limit])
            : database.read<StoredRow>(nextPage, [...after, limit]),
      ),

    write: (rows, removedKeys) =>
      withStoreErrors(database, () => database.transaction((query) => change(query, rows, removedKeys))),
  }
}

const foreignKeyViolation = '23503'
/** The rows of a copy are unique: another one has written them meanwhile. */
const uniqueViolation = '23505'

function concurrentCopyError(place: string, cause: Error): StoreError {
  const detail = `Another copy into the store ${place} is under way: repeat this one when it has ended.`
  return new StoreError('refused', detail, { cause })
}

async function withStoreErrors<T>({ place }: Database, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
    if (error.code === foreignKeyViolation) throw danglingReferenceError(place, error)
    if (error.code === uniqueViolation) throw concurrentCopyError(place, error)
    throw new StoreError('unreachable', `The store ${place} cannot be copied: ${error.message}.`, {
      cause: error,
    })
  }
}

function statementsFor({ name, columns, keyLength }: CopiedTable, overrides: TableOverrides) {
  const { derived = {}, keyEnd = {}, sums = [] } = overrides
  const table = `partner_api.${name}`
  const keys = columns.slice(0, keyLength)
  const selected = columns.map((column) => sums.includes(column) ? `sum(${column})::bigint` : column)
  const position = keys.map((key, index) => `$${index + 1}::${columnType(key)}`)
  const page = (where: string, limit: number) => `
    SELECT ${selected} FROM ${table} ${where} ${sums.length > 0 ? `GROUP BY ${keys}` : ''}
    ${keyLength === 0 ? '' : `ORDER BY ${keys}`} LIMIT $${limit}`
  return {
    firstPage: page('', 1),
    nextPage: page(`WHERE (${keys}) > (${position})`, keyLength + 1),
    put: keyLength === 0
      ? `UPDATE ${table} SET (${columns}) = (SELECT * FROM ${unnestColumns(columns)})`
      : upsertSql(name, columns, {
        keys: [...keys, ...Object.keys(keyEnd)],
        derived: { ...derived, ...keyEnd },
      }),
    erase: `DELETE FROM ${table} WHERE (${keys}) IN (SELECT * FROM ${unnestColumns(keys)} AS gone)`,
  }
}
