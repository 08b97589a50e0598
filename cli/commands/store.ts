import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import type { TableReport } from '../../adapters/stores/copy/compare.ts'
import { type CopyOptions, type CopyReport, copyStore, planCopy } from '../../adapters/stores/copy/copy.ts'
import {
  type CopySource,
  type CopyTarget,
  readSourceState,
} from '../../adapters/stores/copy/source-and-target.ts'
import { action, warnAboutPasswords } from '../command.ts'
import { CliError, usageError } from '../errors.ts'
import { type Invocation, parseStoreUrl, type StoreAddress } from '../invocation.ts'
import { printNote, printResult, withProgress } from '../output/print.ts'
import { formatTable, joinList, pluralize } from '../output/text.ts'
import { openSqliteFile, silenceSqliteWarning } from '../store.ts'

interface CopyStoreOptions {
  readonly from: string
  readonly to: string
  readonly dryRun?: boolean
}

/** `store copy`. */
export function define(store: Command): void {
  store.command('copy')
    .description('Copy all of a store to another place, and check that both are the same')
    .requiredOption('--from <url>', 'The store to copy; it is only read')
    .requiredOption('--to <url>', 'Where to: no store is there yet, or one that was never used')
    .option('--dry-run', 'Write nothing, say what would be copied')
    .addHelpText(
      'after',
      `
Everything goes along: partners, keys, content, signups, counts, the audit log, and the settings by which keys and
cursors stay valid. Until all is there and the same, nobody may use the new store. The same command, given again, goes on
where a copy was broken off, and brings what was changed since, for as long as the new store was not used: to stand still
for seconds only, copy while the service runs, stop it, copy again, and serve the new store.

Examples:
  $ partner-api store copy --from sqlite:partner-api.db --to postgres://partner_api@db.internal/partner_api --dry-run
  $ partner-api store copy --from postgres://partner_api@db.internal/partner_api --to sqlite:partner-api.db`,
    )
    .action(action((invocation, options: CopyStoreOptions) => {
      if (!invocation.json) warnAboutPasswords([options.from, options.to])
      return options.dryRun ? plan(invocation, options) : copy(invocation, options)
    }))
}

async function copy(invocation: Invocation, { from, to }: CopyStoreOptions): Promise<void> {
  const source = await openSource(from)
  try {
    const target = await openTarget(to)
    try {
      const report = await withCopyProgress((options) => copyStore(source, target, options))
      if (!report.isFinished) throw copyIncompleteError(source, target, report)
      const tables = report.tables.map(tableJson)
      await printResult(invocation, { tables, copied: true, dry_run: false }, formatTables(report.tables))
      printNote(
        `Copied, and the same on both sides. Keys and cursors are valid in ${target.location} from now on; ` +
          `${source.location} is as it was.`,
      )
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

async function plan(invocation: Invocation, { from, to }: CopyStoreOptions): Promise<void> {
  const source = await openSource(from)
  try {
    const target = await inspectTarget(to)
    try {
      const plans = await withCopyProgress((options) => planCopy(source, target, options))
      const tables = plans.map(({ table, rows, toWrite, toRemove }) => ({
        table,
        rows,
        to_write: toWrite,
        to_remove: toRemove,
      }))
      await printResult(
        invocation,
        { tables, copied: false, dry_run: true },
        formatTable(
          ['table', 'rows', 'to write', 'to remove'],
          plans.map(({ table, rows, toWrite, toRemove }) => [
            table,
            ...[rows, toWrite, toRemove].map((count) => count.toLocaleString('en')),
          ]),
        ),
      )
      printNote('Nothing was written.')
    } finally {
      await target?.close()
    }
  } finally {
    await source.close()
  }
}

/** Runs a part of a copy and says how far it is. */
function withCopyProgress<T>(work: (options: CopyOptions) => Promise<T>): Promise<T> {
  return withProgress((report) =>
    work({
      now: Date.now(),
      progress: (doing, table, rows) => report(`${doing} ${table}: ${pluralize(rows, 'row')}`),
    })
  )
}

function copyIncompleteError(source: CopySource, target: CopyTarget, report: CopyReport): CliError {
  const different = report.tables.filter(({ same }) => !same)
  const differences = different.map(({ table, differsAt }) => `${table} (first at ${differsAt})`)
  const difference = differences.length === 0 ? '' : ` There is a difference in ${joinList(differences)}.`
  const reason = report.sourceChanged
    ? `The source ${source.location} was changed while it was copied. Stop what serves or changes it and give the same ` +
      'command again, which brings what is missing.'
    : `The copy in ${target.location} is not the same as its source ${source.location}, though that was not changed. Give the ` +
      'same command again, which brings what is missing.'
  return new CliError(
    1,
    report.sourceChanged ? 'source_changed' : 'copy_differs',
    `${reason}${difference} Until then, nobody may use ${target.location}.`,
    {
      members: { tables: report.tables.map(tableJson), copied: false },
      lines: formatTables(report.tables).trimEnd().split('\n'),
    },
  )
}

function tableJson({ table, rows, checksum, same, differsAt }: TableReport): Record<string, unknown> {
  return { table, rows, checksum, same, ...(!same && { differs_at: differsAt }) }
}

function formatTables(tables: readonly TableReport[]): string {
  return formatTable(
    ['table', 'rows', 'checksum', 'same'],
    tables.map(({ table, rows, checksum, same }) => [
      table,
      rows.toLocaleString('en'),
      // Enough for an eye to compare; --json has all of it.
      checksum.slice(0, 16),
      same ? 'yes' : 'no',
    ]),
  )
}

type DurableAddress = Exclude<StoreAddress, { readonly kind: 'memory' }>

/**
 * Opens a store to copy from.
 *
 * @throws {CliError} `store_missing` when there is no file.
 * @throws {StoreError} when it cannot be copied: before anything is made for the copy.
 */
export async function openSource(url: string): Promise<CopySource> {
  const address = requireDurable(url)
  if (isMissingFile(address)) {
    throw new CliError(3, 'store_missing', `There is no store at ${address.file}: nothing was copied.`)
  }
  const source = await openReadOnly(address)
  try {
    await readSourceState(source)
    return source
  } catch (error) {
    await source.close()
    throw error
  }
}

/** Opens a store to copy into. It is made, or changed, when the copy begins and not before. */
export async function openTarget(url: string): Promise<CopyTarget> {
  const address = requireDurable(url)
  if (address.kind === 'postgres') {
    const { openPostgresTarget } = await loadPostgres()
    return openPostgresTarget(address.url)
  }
  const { openSqliteTarget } = await loadSqlite()
  return await openSqliteFile(address.file, () => openSqliteTarget(address.file))
}

/** Opens a store that might be copied into, to read only. @returns `undefined` where there is no file. */
export async function inspectTarget(url: string): Promise<CopySource | undefined> {
  const address = requireDurable(url)
  return isMissingFile(address) ? undefined : await openReadOnly(address)
}

/** Only the code of the store's kind is loaded. */
async function openReadOnly(address: DurableAddress): Promise<CopySource> {
  if (address.kind === 'postgres') {
    const { openPostgresSource } = await loadPostgres()
    return openPostgresSource(address.url)
  }
  const { openSqliteSource } = await loadSqlite()
  return await openSqliteFile(address.file, () => openSqliteSource(address.file))
}

function loadPostgres(): Promise<typeof import('../../adapters/stores/postgres/copy.ts')> {
  return import('../../adapters/stores/postgres/copy.ts')
}

function loadSqlite(): Promise<typeof import('../../adapters/stores/sqlite/copy.ts')> {
  silenceSqliteWarning()
  return import('../../adapters/stores/sqlite/copy.ts')
}

function requireDurable(url: string): DurableAddress {
  const address = parseStoreUrl(url)
  if (address.kind !== 'memory') return address
  throw usageError('A memory: store ends with its process: it can neither be copied nor copied into.')
}

function isMissingFile(
  address: DurableAddress,
): address is Extract<DurableAddress, { readonly kind: 'sqlite' }> {
  return address.kind === 'sqlite' && !existsSync(address.file)
}
