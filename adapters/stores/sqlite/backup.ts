/** Copies of a store's file, and its replacement by one. */
import * as fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import process from 'node:process'
import { verifyAuditLog } from '../../../core/audit/verify.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import type { ReplacedStore } from '../sql/restore.ts'
import { createSharedMembers } from '../sql/store.ts'
import { lockFile, openDatabase, type SqliteDatabase } from './database.ts'
import { errorMessage, replacedMeanwhileError, searchIndexRemedy, unusableError } from './errors.ts'
import { identityOf } from './file-identity.ts'
import { createLists } from './lists.ts'
import { checkSchema, migrate, MIGRATIONS, readSchema } from './migrate.ts'
import { createRevisions } from './revisions.ts'
import { hasEnded } from './servers.ts'
import { createSqlDatabase } from './sql-database.ts'

/** What a copy of a store contains, as commands print it. */
export interface CopiedStore {
  readonly bytes: number
  /** The version of the schema. */
  readonly schema: number
  readonly partners: number
  readonly keys: number
  readonly profiles: number
  readonly signups: number
  readonly facts_revision: string
  readonly content_revision: string
  /** The head of the audit log, `SEQUENCE:HASH`. */
  readonly seal: string
  /** What is wrong with it. */
  readonly warnings: readonly string[]
}

/**
 * Copies a store, which servers may be using, to an empty file, and checks the copy.
 *
 * @param options.isTrusted Whether tables of others, and rows that contradict the audit log, are only reported.
 * @param options.migrates Whether the copy of a store with an older schema is migrated; else that is refused.
 * @returns What the copy contains, and what was wrong with it.
 * @throws {StoreError} `refused` for a damaged copy.
 */
export async function copyFile(
  store: string,
  copy: string,
  { isTrusted, migrates }: { readonly isTrusted: boolean; readonly migrates: boolean },
  progress: (part: number) => void,
): Promise<CopiedStore> {
  await copyPages(store, copy, migrates, progress)
  const database = openDatabase(copy, { create: false })
  try {
    // The copy is then one file. Opening it as a store switches back to write-ahead logging.
    database.exec('PRAGMA journal_mode = DELETE')
    const warnings = listForeign(database, copy).map((name) => `${name} is not what this program creates`)
    const check = () => {
      if (warnings.length === 0 || isTrusted) return
      const reasons = warnings.slice(0, 3).join(', ')
      throw new StoreError('refused', `The backup ${store}: ${reasons}. To restore it anyway, pass --force.`)
    }
    // Before anything is read: a view, or the expression of a check or an index, may never end.
    check()
    assertUndamaged(database, store)
    if (migrates) migrate(database, copy, undefined)
    const revisions = createRevisions(database, store)
    const sql = createSqlDatabase(database, revisions)
    const records = { ...createSharedMembers(sql), ...createLists(sql) }
    const { brokenAt, differences, head } = await verifyAuditLog(records)
    if (brokenAt !== undefined) warnings.push(`the audit log is broken at entry ${brokenAt}`)
    warnings.push(...differences.map(({ kind, id }) => `${kind} ${id} contradicts the audit log`))
    check()
    const { facts, content } = revisions.current()
    return {
      bytes: fs.statSync(copy).size,
      schema: readSchema(database, store).version,
      ...countRows(database),
      facts_revision: facts,
      content_revision: content,
      seal: `${head.sequence}:${head.hash}`,
      warnings,
    }
  } finally {
    database.close()
  }
}

async function copyPages(
  store: string,
  copy: string,
  migrates: boolean,
  progress: (part: number) => void,
): Promise<void> {
  const source = openDatabase(store, { create: false, readOnly: true })
  try {
    checkSchema(source, store, migrates && readSchema(source, store).version > 0)
    await source.copyTo(copy, progress)
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw new StoreError('unreachable', `${store} cannot be copied to ${copy}: ${errorMessage(error)}.`)
  } finally {
    source.close()
  }
}

/** @throws {StoreError} `refused` */
function assertUndamaged(copy: SqliteDatabase, store: string): void {
  const [damage] = copy.statement<[string]>('PRAGMA integrity_check(1)').get()!
  if (damage === 'ok') return
  throw new StoreError(
    'refused',
    `The store ${store} is damaged: ${damage}.`,
    searchIndexRemedy(damage!, store),
  )
}

function countRows(database: SqliteDatabase) {
  const [partners, keys, profiles, signups] = database.statement<[number, number, number, number]>(`
    SELECT (SELECT count(*) FROM partner), (SELECT count(*) FROM partner_key), (SELECT count(*) FROM profile),
      (SELECT count(*) FROM signup)`).get()!
  return { partners, keys, profiles, signups }
}

/** The tables, indexes, views and triggers that differ from those of a new store with the same schema version. */
function listForeign(database: SqliteDatabase, file: string): string[] {
  const model = openDatabase(':memory:', { create: true })
  try {
    migrate(model, ':memory:', undefined, MIGRATIONS.slice(0, readSchema(database, file).version))
    // An import renames its tables, which quotes their names; it may be under way.
    const select =
      `SELECT name, replace(replace(sql, '"', ''), '''', '') FROM sqlite_schema WHERE sql IS NOT NULL`
    const known = new Map(model.statement<[string, string]>(select).all())
    const original = (text: string) => text.replace(/\b(?:next|old)_/, '')
    return database.statement<[string, string]>(select).all()
      .filter(([name, sql]) => known.get(original(name)) !== original(sql)).map(([name]) => name)
  } finally {
    model.close()
  }
}

/** Opens a copy that is not in use. */
export function openCopy(copy: string) {
  const database = openDatabase(copy, { create: false })
  return { sql: createSqlDatabase(database, createRevisions(database, copy)), close: database.close }
}

/** Removes what killed backups and restores have left beside their target: it contains personal data. */
export function removePartials(target: string): void {
  for (const name of fs.readdirSync(dirname(target))) {
    if (!name.startsWith(`${basename(target)}.`)) continue
    const pid = Number(/\.(\d+)\.partial(?:-journal)?$/.exec(name)?.[1])
    // In a container, ids repeat.
    const isLeft = pid > 0 && (pid === process.pid || hasEnded(pid))
    if (isLeft) fs.rmSync(join(dirname(target), name), { force: true })
  }
}

const journals = ['-wal', '-shm', '-journal']

/**
 * Gives a copy, which SQLite has synced, the name of another file, and replaces that. Journals beside it, which a
 * killed process has left, are removed: SQLite would apply them to the copy.
 */
export function putInPlace(copy: string, file: string): void {
  for (const end of journals) fs.rmSync(file + end, { force: true })
  fs.renameSync(copy, file)
  // Windows cannot open folders.
  if (process.platform === 'win32') return
  const folder = fs.openSync(dirname(file), 'r')
  fs.fsyncSync(folder)
  fs.closeSync(folder)
}

/**
 * Opens a store that is to be replaced. With `lock`, no other process can open it until it is closed.
 *
 * @param options.isThere Whether there is a file to be replaced.
 * @returns `sql` to read it, or why that fails. Both are `undefined` without a file.
 * @throws {StoreError} `refused` while another process has it open, when another has replaced it in between, and
 * for the database of another program.
 */
export function openForReplacement(file: string, { isThere, lock }: { isThere: boolean; lock: boolean }) {
  const identity = isThere ? identityOf(file) : undefined
  let database: SqliteDatabase | undefined
  let sql: ReplacedStore | undefined
  let failure: StoreError | undefined
  try {
    if (isThere) {
      database = openDatabase(file, { create: false, readOnly: !lock })
      if (lock) lockFile(database, file)
      if (readSchema(database, file).version === 0) throw new Error('it is empty')
      sql = createSqlDatabase(database, createRevisions(database, file))
    }
  } catch (error) {
    database?.close()
    database = undefined
    // The store may be damaged, but not that of another program.
    if (error instanceof StoreError && error.code !== 'unreachable' && error.code !== 'damaged') throw error
    failure = error instanceof StoreError ? error : unusableError(file, 'read', error)
  }
  return {
    sql,
    failure,
    /**
     * Puts a copy in its place. The replaced file, if there is one, is then at `kept`.
     *
     * @throws {StoreError} `refused` when another process has replaced the file, or created one.
     */
    replaceBy(copy: string, kept: string): void {
      // A file that cannot be read, or was not there, is not locked.
      if (identityOf(file) !== identity) throw replacedMeanwhileError(file)
      if (database !== undefined) {
        database.exec('PRAGMA journal_mode = DELETE')
        fs.linkSync(file, kept)
      } else {
        // Its journals leave after it: without them, it would be an older store. They may be all that is left of it.
        for (const end of ['', ...journals].filter((end) => fs.existsSync(file + end))) {
          fs.renameSync(file + end, kept + end)
        }
      }
      putInPlace(copy, file)
    },
    close: () => database?.close(),
  }
}
