/** `store backup`, `store restore` and `store reconcile`. */
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import process from 'node:process'
import type { ReplacedStore, Restoration } from '../../adapters/stores/sql/restore.ts'
import type { SqlDatabase } from '../../adapters/stores/sql/database.ts'
import type { CopiedStore } from '../../adapters/stores/sqlite/backup.ts'
import type { AuditContext } from '../../core/ports/changes.ts'
import { type Action, type Invocation, warnAboutPasswords } from '../command.ts'
import { CliError, toCliError, usageError } from '../errors.ts'
import { describeFileError, endBySignal, interrupts } from '../files.ts'
import type { Output } from '../output/print.ts'
import { formatRecord, printable, shellQuote } from '../output/text.ts'
import { confirm } from '../prompt.ts'
import { describeStore, openSqliteFile, partialName, requireFile } from './open.ts'
import { currentUser, holdsPassword, parseDurableUrl } from './url.ts'

const loadBackup = () => import('../../adapters/stores/sqlite/backup.ts')
const loadRestoration = () => import('./restoration.ts')

export async function backUp(
  invocation: Invocation,
  file: string,
  { force }: { force?: boolean },
): Promise<void> {
  const dump = `--schema=partner_api --format=custom --file=${shellQuote(file)}`
  const store = await requireSqlite(invocation, 'backed up with the tools of PostgreSQL', (database) => [
    `(umask 077; pg_dump --dbname=${database()} ${dump})`,
  ])
  requireFile(store)
  const isThere = existsSync(file)
  const target = endOfLinks(file)
  const parts = ['', '-wal', '-shm', '-journal', '-servers'].map((end) => realpathSync(store) + end)
  if (parts.includes(target)) throw usageError(`${file} is the store itself.`)
  // A device is not to be replaced by a file.
  if (isThere && !statSync(target).isFile()) throw usageError(`${file} is not a file.`)
  if (isThere && !force) throw new CliError(1, 'file_exists', `To replace ${file}, pass --force.`)
  const { putInPlace } = await loadBackup()
  await withCopy(invocation.output, store, target, { isTrusted: true, migrates: false }, (copy, contents) => {
    putInPlace(copy, target)
    return invocation.output.print({ data: { file, ...contents }, text: formatContents(contents) })
  })
}

/** How a restore treats what the replaced store refuses. */
interface RestoreOptions {
  /** Whether what it refuses is accepted again, as in the backup. */
  readonly asBackedUp?: boolean
  /** Whether `asBackedUp` needs no confirmation. */
  readonly yes?: boolean
  /** Whether to restore where what it refuses cannot be known. */
  readonly force?: boolean
}

export async function restore(
  invocation: Invocation,
  file: string,
  options: RestoreOptions & { readonly replace?: boolean; readonly dryRun?: boolean },
): Promise<void> {
  const { output, operator: { actor } } = invocation
  const { replace, dryRun = false, force = false } = options
  const path = await requireSqlite(
    invocation,
    'restored with the tools of PostgreSQL, and then with store reconcile',
    (database, owner) => [
      // The account of the store may not create databases.
      `createdb --maintenance-db=${database('postgres', 'postgres')} --owner=${owner} partner_api_restored`,
      `pg_restore --dbname=${database('partner_api_restored')} --single-transaction ${shellQuote(file)}`,
    ],
  )
  if (!existsSync(file)) throw new CliError(3, 'store_missing', `There is no backup at ${file}.`)
  const isThere = existsSync(path)
  const store = endOfLinks(path)
  if (realpathSync(file) === store) throw usageError(`${file} is the store itself.`)
  if (isThere && !replace && !dryRun) {
    const advice = 'To keep it under another name, pass --replace; --dry-run shows what that does.'
    throw new CliError(1, 'store_exists', `There is a store at ${store}. ${advice}`)
  }
  if (!dryRun) await confirmAsBackedUp(invocation, options)
  const { openCopy, openForReplacement } = await loadBackup()
  const { printRestoration } = await loadRestoration()
  const target = openForReplacement(store, { isThere, lock: !dryRun })
  try {
    await withCopy(output, file, store, { isTrusted: force, migrates: true }, async (copy, contents) => {
      const restored = openCopy(copy)
      const context = { actor, at: Date.now() }
      const replacing = { ...target, location: store, mayBeSwapped: false }
      const found = await secure(restored.sql, replacing, options, context)
        .finally(restored.close)
      const kept = `${store}.replaced-${new Date().toISOString().replaceAll(':', '-')}`
      if (!dryRun) target.replaceBy(copy, kept)
      const replaced = isThere && !dryRun ? kept : null
      await printRestoration(output, found, target.sql, {
        data: { file, ...contents, replaced, dry_run: dryRun },
        text: formatContents(contents),
        note: dryRun ? 'Dry run: nothing was changed.' : `Restored ${store}.`,
        dryRun,
        replacedUrl: isThere ? `sqlite:${replaced ?? store}` : undefined,
      })
    })
  } finally {
    target.close()
  }
}

export const reconcile: Action<[RestoreOptions & { readonly replaced: string }]> = async (
  invocation,
  { replaced: url, ...options },
) => {
  const { output, operator: { actor }, storeUrl } = invocation
  warnAboutPasswords(output, [url])
  const location = await describeStore(invocation)
  const replacedLocation = await describeStore({ ...invocation, storeUrl: url })
  const sameStoreError = () => usageError(`--store and --replaced are the same store: ${location}.`)
  if (location === replacedLocation) throw sameStoreError()
  const urls = [storeUrl, url].map((each) => parseDurableUrl(each, 'A memory: store is not restored.'))
  if (urls.some(({ kind }) => kind === 'sqlite')) {
    throw usageError('store reconcile is for PostgreSQL: for SQLite, store restore does the same.')
  }
  await confirmAsBackedUp(invocation, options)
  const { printRestoration } = await loadRestoration()
  const { assertNotServed, openRestored } = await import('../../adapters/stores/postgres/restored.ts')
  const restored = await openRestored(storeUrl)
  try {
    let failure: Error | undefined
    const replaced = await openRestored(url).catch((error: Error) => {
      failure = error
      return undefined
    })
    try {
      // One database may have several host names, and poolers.
      if (restored.identity !== undefined && restored.identity === replaced?.identity) {
        throw sameStoreError()
      }
      await assertNotServed(restored, replaced)
      const other = { sql: replaced?.sql, failure, location: replacedLocation, mayBeSwapped: true }
      const found = await secure(restored.sql, other, options, { actor, at: restored.now() })
      await printRestoration(output, found, replaced?.sql, {
        data: {},
        text: '',
        dryRun: false,
        replacedUrl: holdsPassword(url) ? 'URL' : url,
      })
    } finally {
      await replaced?.close()
    }
  } finally {
    await restored.close()
  }
}

/**
 * The file that a path leads to, also through a link to a file that is not there.
 *
 * @throws {CliError} where links lead in a circle.
 */
function endOfLinks(path: string): string {
  let end = resolve(path)
  // As many as Linux follows.
  for (let links = 0; links < 40; links++) {
    if (existsSync(end)) return realpathSync(end)
    if (!lstatSync(end, { throwIfNoEntry: false })?.isSymbolicLink()) return end
    end = resolve(realpathSync(dirname(end)), readlinkSync(end))
  }
  throw new CliError(1, 'file_not_created', `Nothing was changed: ${path} is a link that leads to itself.`)
}

async function confirmAsBackedUp({ io }: Invocation, { asBackedUp, yes }: RestoreOptions): Promise<void> {
  if (!asBackedUp || yes) return
  const consequence = 'Keys and partners that were revoked or restricted since the backup are accepted again.'
  await confirm(io, consequence, 'as-backed-up')
}

/** The replaced store of a restore. */
interface Replaced {
  /** The replaced store; `undefined` if there is none, or it cannot be read. */
  readonly sql: ReplacedStore | undefined
  /** Why it cannot be read. */
  readonly failure: Error | undefined
  readonly location: string
  /** Whether it is an argument, as is the restored one. */
  readonly mayBeSwapped: boolean
}

/**
 * Secures a restored store.
 *
 * @throws {CliError} where what the replaced store refuses cannot be known, without `force`.
 */
async function secure(
  restored: SqlDatabase,
  { sql, failure, location, mayBeSwapped }: Replaced,
  { asBackedUp = false, force = false }: RestoreOptions,
  context: AuditContext,
): Promise<Restoration> {
  const { ReplacedStoreError, secureRestored } = await import('../../adapters/stores/sql/restore.ts')
  const how = { asBackedUp, mayBeSwapped }
  let reason = failure
  if (reason === undefined) {
    try {
      return await secureRestored(restored, sql, how, context)
    } catch (error) {
      if (!(error instanceof ReplacedStoreError)) throw error
      reason = error
    }
  }
  const code = reason instanceof ReplacedStoreError ? reason.code : 'replaced_unreadable'
  const { message } = reason instanceof ReplacedStoreError ? reason : toCliError(reason)
  const sentence = message.replace(/\.$/, '')
  if (code === 'replaced_older') {
    const detail = `${sentence}: are --store and --replaced swapped?`
    throw new CliError(1, code, `Nothing was changed: the replaced store ${location} is older: ${detail}`)
  }
  if (code === 'replaced_changed') {
    const detail = `${sentence}. Stop what administers it, and start again.`
    throw new CliError(1, code, `Nothing was changed: the replaced store ${location} is in use: ${detail}`)
  }
  if (force) return await secureRestored(restored, undefined, how, context)
  const advice =
    'Nothing can be narrowed without it: to restore all the same, and accept again what was revoked or restricted since ' +
    'the backup, pass --force.'
  if (code === 'replaced_unrelated') {
    const detail =
      `Nothing was changed: the replaced store ${location} is another one: ${sentence}. ${advice}`
    throw new CliError(1, code, detail)
  }
  const detail = `Nothing was changed: the replaced store ${location} cannot be read: ${sentence}. ${advice}`
  throw new CliError(3, code, detail)
}

/** @returns The file of the store. @throws {CliError} for PostgreSQL, with the commands to run instead. */
async function requireSqlite(
  invocation: Invocation,
  done: string,
  toCommands: (connection: (database?: string, user?: string) => string, owner: string) => readonly string[],
): Promise<string> {
  const reason = 'A memory: store ends with its process: it has no backup.'
  const address = parseDurableUrl(invocation.storeUrl, reason)
  if (address.kind === 'sqlite') return address.file
  const location = await describeStore(invocation)
  const { env: environment } = invocation.io
  const { parseUrl } = await import('../../adapters/stores/postgres/url.ts')
  const account = { environment, user: currentUser(environment) }
  const { hosts, user, database, tls } = parseUrl(address.url, account)
  const host = hosts.map(({ name, isSocket }) => isSocket ? dirname(name) : name)
  const server = `host=${libpqQuote(host.join())} port=${hosts.map(({ port }) => port)}`
  const commands = toCommands(
    (name = database, account = user) =>
      shellQuote(`${server} user=${libpqQuote(account)} sslmode=${tls.mode} dbname=${libpqQuote(name)}`),
    shellQuote(user),
  )
  const detail = `The store ${location} is ${done}:`
  throw new CliError(1, 'postgres_tools', detail, { lines: commands, members: { commands } })
}

function libpqQuote(value: string): string {
  return /^[\w.,:/@-]+$/.test(value) ? value : `'${value.replace(/['\\]/g, '\\$&')}'`
}

/** Copies a store to a file beside `target`, which is removed unless `work` renames it. */
async function withCopy(
  output: Output,
  store: string,
  target: string,
  options: { readonly isTrusted: boolean; readonly migrates: boolean },
  work: (copy: string, contents: CopiedStore) => Promise<void>,
): Promise<void> {
  const { copyFile, removePartials } = await loadBackup()
  const copy = partialName(resolve(target))
  const discard = () => ['', '-journal'].forEach((end) => rmSync(copy + end, { force: true }))
  const stop = (signal: NodeJS.Signals) => {
    discard()
    endBySignal(signal)
  }
  for (const signal of interrupts) process.once(signal, stop)
  try {
    try {
      removePartials(resolve(target))
      closeSync(openSync(copy, 'wx', 0o600))
    } catch (error) {
      const reason = `a file cannot be created in ${dirname(copy)}: ${describeFileError(error)}`
      throw new CliError(1, 'file_not_created', `Nothing was changed: ${reason}.`)
    }
    const contents = await output.progress((report) => {
      const progress = (part: number) => report(`Copied ${Math.floor(part * 100)} % …`)
      return openSqliteFile(store, () => copyFile(store, copy, options, progress))
    })
    for (const warning of contents.warnings) output.note(`warning: ${printable(warning)}`)
    await work(copy, contents)
  } finally {
    discard()
    for (const signal of interrupts) process.off(signal, stop)
  }
}

function formatContents({ warnings: _, ...contents }: CopiedStore): string {
  return formatRecord(contents)
}
