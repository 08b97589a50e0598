import { closeSync, existsSync, openSync, realpathSync, rmSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import process from 'node:process'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { formatDuration } from '../../core/admin/validate.ts'
import type { Store } from '../../core/ports/store.ts'
import { type Action, type CliCommand, type Invocation, warnAboutPasswords } from '../command.ts'
import { CliError, usageError } from '../errors.ts'
import { describeFileError, interrupts } from '../files.ts'
import type { CommandResult, Output } from '../output/print.ts'
import { formatDetails, formatRecord, printable, shellQuote } from '../output/text.ts'
import { copy } from './copy.ts'
import { describeStore, openSqliteFile, requireFile, timeOf, withStore } from './open.ts'
import { currentUser, holdsPassword, parseDurableUrl } from './url.ts'
import { printUndone, reconcile } from './undone.ts'

export function define(store: CliCommand): void {
  store
    .subcommand(
      'backup',
      'Back up a SQLite store while servers use it; for PostgreSQL, print the commands to run',
    )
    .argument('<file>', 'The backup')
    .option('--force', 'Replace an existing file')
    .act(backUp)
    .details(`
Copies one state of the store, and checks the copy and its audit log. The backup is a store itself, and only you can
read it. Keep its seal elsewhere, for audit verify --seal.`)
    .examples('partner-api store backup monday.db')

  store.subcommand(
    'copy',
    'Copy a store that no server uses to another location, and check that both are equal',
  )
    .requiredOption('--from <url>', 'The store to copy, which is not changed')
    .requiredOption('--to <url>', 'The new store, which must be missing or empty')
    .act(copy)
    .details(`
Copies partners, keys, content, signups, counts, the audit log, and the settings that keys and cursors depend on. Stop
all servers of the store first. The new store cannot be used until the copy is complete: if it is interrupted, drop the
new store, and start again.`)
    .examples(
      'partner-api store copy --from sqlite:partner-api.db --to postgres://partner_api@db.internal/partner_api',
      'partner-api store copy --from postgres://partner_api@db.internal/partner_api --to sqlite:partner-api.db',
    )

  store
    .subcommand('restore', 'Restore a SQLite store from a backup; for PostgreSQL, print the commands to run')
    .argument('<file>', 'The backup, which is not changed')
    .option('--replace', 'Replace an existing store, and keep it under another name')
    .option('--dry-run', 'Only check the backup, and show what would be undone')
    .option('--force', 'Restore even if tables are not those of a store, or audit verify fails')
    .act(restore)
    .details(`
Fails while another process has the store open. Disables webhooks, and revokes one-time links. Lists what the restore
undoes, such as revocations of keys, as commands that repeat it: run those that you want before you serve the store.`)
    .examples(
      'partner-api store restore monday.db --dry-run',
      'partner-api store restore monday.db --replace',
    )

  store.subcommand('reconcile', 'After pg_restore: disable webhooks, revoke links, list what it undid')
    .requiredOption('--replaced <url>', 'The store that was replaced, which is not changed')
    .act(reconcileWith)
    .details('Run it on the restored store, before you serve that. store restore does the same by itself.')
    .examples(
      'partner-api --store postgres://partner_api@db.internal/restored ' +
        'store reconcile --replaced postgres://partner_api@db.internal/partner_api',
    )

  store.subcommand('show', 'Show the settings of the store').read(showSettings)
    .examples('partner-api store show')
  store.subcommand('update', 'Change the settings of the store')
    .option('--max-key-lifetime <duration>', 'Longest lifetime of keys that are issued, imported or updated')
    .option('--no-max-key-lifetime', 'Remove the limit')
    .requiresChange()
    .change(async (opened, invocation, { maxKeyLifetime }: { readonly maxKeyLifetime: number | false }) => {
      const { setMaxLifetime } = createKeyAdministration(opened, invocation)
      await setMaxLifetime(maxKeyLifetime === false ? undefined : maxKeyLifetime)
      return await showSettings(opened)
    })
    .details('Existing keys do not change; doctor lists those that end later.')
    .examples('partner-api store update --max-key-lifetime 365d')
}

async function showSettings(store: Store): Promise<CommandResult> {
  const [prefix, ms] = [store.settings.keyPrefix, await store.maxKeyLifetimeMs()]
  const details = [['key prefix', prefix], ['max key lifetime', ms ? formatDuration(ms) : 'none']] as const
  return { data: { key_prefix: prefix, max_key_lifetime_ms: ms ?? null }, text: formatDetails(details) }
}

const loadBackup = () => import('../../adapters/stores/sqlite/backup.ts')

async function backUp(invocation: Invocation, file: string, { force }: { force?: boolean }): Promise<void> {
  const dump = `--schema=partner_api --format=custom --file=${shellQuote(file)}`
  const store = await requireSqlite(invocation, 'backed up with the tools of PostgreSQL', (database) => [
    `(umask 077; pg_dump --dbname=${database()} ${dump})`,
  ])
  requireFile(store)
  const isThere = existsSync(file)
  const target = isThere ? realpathSync(file) : resolve(file)
  const parts = ['', '-wal', '-shm', '-journal', '-servers'].map((end) => realpathSync(store) + end)
  if (parts.includes(target)) throw usageError(`${file} is the store itself.`)
  // A device is not to be replaced by a file.
  if (isThere && !statSync(target).isFile()) throw usageError(`${file} is not a file.`)
  if (isThere && !force) throw new CliError(1, 'file_exists', `To replace ${file}, pass --force.`)
  const { putInPlace } = await loadBackup()
  await withCopy(invocation.output, store, target, { isTrusted: true, migrates: false }, (copy, contents) => {
    putInPlace(copy, target)
    invocation.output.done = { detail: 'The backup was made.' }
    return invocation.output.result({ file, ...contents }, formatContents(contents))
  })
}

async function restore(
  invocation: Invocation,
  file: string,
  { replace, dryRun = false, force = false }: { replace?: boolean; dryRun?: boolean; force?: boolean },
): Promise<void> {
  const { output } = invocation
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
  const store = isThere ? realpathSync(path) : resolve(path)
  if (realpathSync(file) === store) throw usageError(`${file} is the store itself.`)
  if (isThere && !replace && !dryRun) {
    const advice = 'To keep it under another name, pass --replace; --dry-run shows what that undoes.'
    throw new CliError(1, 'store_exists', `There is a store at ${store}. ${advice}`)
  }
  const { openCopy, openForReplacement } = await loadBackup()
  const target = openForReplacement(store, !dryRun)
  try {
    await withCopy(output, file, store, { isTrusted: force, migrates: true }, async (copy, contents) => {
      const { records, close } = openCopy(copy)
      const found = await reconcile(invocation, records, target.records, Date.now()).finally(close)
      const kept = `${store}.replaced-${new Date().toISOString().replaceAll(':', '-')}`
      if (!dryRun) target.replaceBy(copy, kept)
      const replaced = isThere && !dryRun ? kept : null
      const data = { file, ...contents, replaced, ...found, dry_run: dryRun }
      // What a restore undoes has to be known, also when standard output cannot be written.
      await output.result(data, formatContents(contents)).finally(() => {
        output.note(dryRun ? 'Nothing was changed.' : `Restored ${store}.`)
        printUndone(output, isThere ? `sqlite:${replaced ?? store}` : undefined, found)
      })
    })
  } finally {
    target.close()
  }
}

const reconcileWith: Action<[{ readonly replaced: string }]> = async (invocation, { replaced: url }) => {
  const { output } = invocation
  warnAboutPasswords(output, [url])
  const other = { ...invocation, storeUrl: url }
  const [place, replacedPlace] = [await describeStore(invocation), await describeStore(other)]
  if (place === replacedPlace) throw usageError(`--store and --replaced are the same store: ${place}.`)
  await withStore(invocation, {}, (restored) =>
    withStore(other, { readOnly: true }, async (replaced) => {
      const found = await reconcile(invocation, restored, replaced, timeOf(restored))
      await output.result(found, '').finally(() =>
        printUndone(output, holdsPassword(url) ? 'URL' : url, found)
      )
    }))
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
  const place = await describeStore(invocation)
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
  const detail = `The store ${place} is ${done}:`
  throw new CliError(1, 'postgres_tools', detail, { lines: commands, members: { commands } })
}

function libpqQuote(value: string): string {
  return /^[\w.,:/@-]+$/.test(value) ? value : `'${value.replace(/['\\]/g, '\\$&')}'`
}

type Contents = Awaited<ReturnType<Awaited<ReturnType<typeof loadBackup>>['copyFile']>>

/** Copies a store to a file beside `target`, which is removed unless `work` renames it. */
async function withCopy(
  output: Output,
  store: string,
  target: string,
  options: { readonly isTrusted: boolean; readonly migrates: boolean },
  work: (copy: string, contents: Contents) => Promise<void>,
): Promise<void> {
  const { copyFile, removePartials } = await loadBackup()
  const copy = `${resolve(target)}.${process.pid}.partial`
  const discard = () => ['', '-journal'].forEach((end) => rmSync(copy + end, { force: true }))
  const stop = (signal: NodeJS.Signals) => {
    discard()
    process.kill(process.pid, signal)
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

function formatContents({ warnings: _, ...contents }: Contents): string {
  return formatRecord(contents)
}
