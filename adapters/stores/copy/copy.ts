/** `store copy`: everything that a store keeps, into an empty one. */
import { createHash } from 'node:crypto'
import { randomHex } from '../schema.ts'
import { type Query, query } from '../sql/database.ts'
import { StoreError, unfinishedCopyError } from '../store-error.ts'
import { COPIED_TABLES, TABLE_NAMES, type TableName } from '../tables.ts'
import { type CopyDatabase, readPages, type Row, writeRows } from './ends.ts'

/** A table of a copy. */
export interface TableReport {
  readonly table: TableName
  readonly rows: number
  /** SHA-256 of the rows in the order of their keys: each as a JSON array and a line feed, in UTF-8. */
  readonly sha256: string
}

/** Called page by page with the number of rows of a table that have been copied or compared. */
export type CopyProgress = (doing: 'copying' | 'comparing', table: TableName, rows: number) => unknown

/**
 * Copies one state of a store that no server uses, and compares the copy with it. From its first row until both are equal,
 * the target is marked, and refuses to be opened.
 *
 * @param openTarget Opens the target, which is closed when the copy ends.
 * @throws {StoreError} `missing` without a source, `refused` when servers use it, when it changes meanwhile, when the
 * target is not empty, and when both differ in the end.
 */
export async function copyStore(
  source: CopyDatabase,
  openTarget: () => Promise<CopyDatabase>,
  progress: CopyProgress = () => undefined,
): Promise<readonly TableReport[]> {
  if (!await source.hasStore()) {
    throw new StoreError('missing', `There is no store at ${source.location}.`)
  }
  await source.checkUnused()
  return await source.snapshot(async (read) => {
    const { id, isIncomplete } = await readState(read)
    if (isIncomplete) throw unfinishedCopyError(source.location)
    const target = await openTarget()
    try {
      await begin(target, id)
      const tables: TableReport[] = []
      for (const table of TABLE_NAMES) tables.push(await copyTable(table, read, target, progress))
      await target.refreshStatistics()
      await compare(tables, source, target, progress)
      await source.checkUnused()
      await checkUnchanged(source, read)
      await target.transaction(() => query('UPDATE partner_api.store SET is_incomplete = FALSE'))
      await target.notify()
      return tables
    } finally {
      await target.close()
    }
  })
}

async function readState(read: Query) {
  const [row] = await read<[id: string, isIncomplete: number]>(
    'SELECT id, is_incomplete FROM partner_api.store',
  )
  const [id, isIncomplete] = row!
  return { id, isIncomplete: Boolean(isIncomplete) }
}

const isEmpty = `audit_sequence = 0 AND ${
  ['audit', 'partner', 'industry', 'plan'].map((table) => `NOT EXISTS (SELECT 1 FROM partner_api.${table})`)
    .join(' AND ')
}`

/**
 * Creates the target if there is none, and marks it. It gets a new id: a program that has it open refuses to go on after
 * the copy.
 */
async function begin(target: CopyDatabase, sourceId: string): Promise<void> {
  const { location } = target
  if (await target.hasStore()) {
    const { id, isIncomplete } = await readState(target.read)
    if (isIncomplete) throw unfinishedCopyError(location)
    if (id === sourceId) {
      throw new StoreError(
        'refused',
        `${location} is the source, or a duplicate of its file: choose another place.`,
      )
    }
  }
  await target.prepare()
  await target.transaction(function* () {
    const marked = yield* query(
      `UPDATE partner_api.store SET id = $1, is_incomplete = TRUE WHERE NOT is_incomplete AND ${isEmpty} RETURNING 1`,
      [randomHex(8)],
    )
    if (marked.length > 0) return
    throw new StoreError(
      'refused',
      `The store ${location} is in use already: it holds partners, content or an audit log of its own. A store can only ` +
        'be copied into an empty one.',
    )
  })
  await target.notify()
}

async function copyTable(
  table: TableName,
  read: Query,
  target: CopyDatabase,
  progress: CopyProgress,
): Promise<TableReport> {
  const write = (rows: readonly Row[]) => target.transaction(() => writeRows(table, target, rows))
  // Industries refer to each other in any order: all are there before they get their parents.
  if (table === 'industries') {
    const parent = COPIED_TABLES.industries.columns.indexOf('parent_slug')
    for await (const rows of readPages(table, read)) await write(rows.map((row) => row.with(parent, null)))
  }
  return await digest(table, read, async (rows, count) => {
    await write(rows)
    await progress('copying', table, count)
  })
}

/** Reads a table from its first key to its last. @param page Called with each page, and the number of rows so far. */
async function digest(
  table: TableName,
  read: Query,
  page: (rows: readonly Row[], count: number) => unknown,
): Promise<TableReport> {
  const hash = createHash('sha256')
  let count = 0
  for await (const rows of readPages(table, read)) {
    for (const row of rows) hash.update(`${JSON.stringify(row)}\n`, 'utf8')
    count += rows.length
    await page(rows, count)
  }
  return { table, rows: count, sha256: hash.digest('hex') }
}

async function compare(
  tables: readonly TableReport[],
  source: CopyDatabase,
  target: CopyDatabase,
  progress: CopyProgress,
): Promise<void> {
  for (const { table, rows, sha256 } of tables) {
    const copied = await digest(table, target.read, (_, count) => progress('comparing', table, count))
    if (copied.rows === rows && copied.sha256 === sha256) continue
    throw new StoreError(
      'refused',
      `The copy in ${target.location} differs from ${source.location} in the table ${table}: ${copied.rows} rows of ` +
        `${rows}, or other values. Drop it, and start again.`,
    )
  }
}

const selectHead = 'SELECT CAST(audit_sequence AS TEXT), audit_hash FROM partner_api.store'

async function checkUnchanged(source: CopyDatabase, read: Query): Promise<void> {
  const copied = await read(selectHead)
  const current = await source.read(selectHead)
  if (String(copied) === String(current)) return
  throw new StoreError(
    'refused',
    `The store ${source.location} was changed during the copy: drop the copy, which lacks the change, and start again.`,
  )
}
