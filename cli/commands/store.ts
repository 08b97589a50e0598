import { existsSync } from 'node:fs'
import type { TableReport } from '../../adapters/stores/copy/compare.ts'
import { type CopyOptions, type CopyReport, copyStore, planCopy } from '../../adapters/stores/copy/copy.ts'
import {
  type CopySource,
  type CopyTarget,
  readSourceState,
} from '../../adapters/stores/copy/source-and-target.ts'
import { type CliCommand, warnAboutPasswords } from '../command.ts'
import { CliError } from '../errors.ts'
import type { Output } from '../output/print.ts'
import { formatTable, joinList, pluralize } from '../output/text.ts'
import { openSqliteFile } from '../store.ts'
import { type DurableAddress, parseDurableUrl } from '../store-url.ts'

interface CopyStoreOptions {
  readonly from: string
  readonly to: string
  readonly dryRun?: boolean
}

/** `store copy`. */
export function define(store: CliCommand): void {
  store.command('copy')
    .description('Copy a store to another location, and check that both are equal')
    .requiredOption('--from <url>', 'The store to copy, which is only read')
    .requiredOption('--to <url>', 'The new store, which must not exist or have been used')
    .option('--dry-run', 'Only show what would be copied')
    .act(async ({ output }, { from, to, dryRun }: CopyStoreOptions) => {
      warnAboutPasswords(output, [from, to])
      await withOpen(await openSource(from), async (source) => {
        if (dryRun) await withOpen(await openExisting(to), (target) => plan(output, source, target))
        else await withOpen(await openTarget(to), (target) => copy(output, source, target))
      })
    })
    .details(`
Copies partners, keys, content, signups, counts, the audit log, and the settings that keys and cursors depend on. The
new store cannot be used until the copy is complete. Repeat the command to resume an interrupted copy, or to transfer
later changes, as long as the new store has not been used. For minimal downtime, copy while the service is running,
stop it, copy again, and serve the new store.`)
    .examples(
      'partner-api store copy --from sqlite:partner-api.db --to postgres://partner_api@db.internal/partner_api --dry-run',
      'partner-api store copy --from postgres://partner_api@db.internal/partner_api --to sqlite:partner-api.db',
    )
}

async function withOpen<S extends CopySource | undefined>(
  store: S,
  work: (store: S) => Promise<void>,
): Promise<void> {
  try {
    await work(store)
  } finally {
    await store?.close()
  }
}

async function copy(output: Output, source: CopySource, target: CopyTarget): Promise<void> {
  const report = await withCopyProgress(output, (options) => copyStore(source, target, options))
  if (!report.isFinished) throw copyIncompleteError(source, target, report)
  const tables = report.tables.map(tableJson)
  await output.result({ tables, copied: true, dry_run: false }, formatTables(report.tables, output))
  output.note(
    `The copy is complete and equal to its source. Keys and cursors are now valid in ${target.location}; ` +
      `${source.location} is unchanged.`,
  )
}

async function plan(
  output: Output,
  source: CopySource,
  target: CopySource | undefined,
): Promise<void> {
  const plans = await withCopyProgress(output, (options) => planCopy(source, target, options))
  const tables = plans.map(({ table, rows, toWrite: to_write, toRemove: to_remove }) => {
    return { table, rows, to_write, to_remove }
  })
  const text = formatTable(
    ['table', 'rows', 'to write', 'to remove'],
    tables.map((row) => Object.values(row).map((cell) => cell.toLocaleString('en'))),
    output,
  )
  await output.result({ tables, copied: false, dry_run: true }, text)
  output.note('Nothing was written.')
}

function withCopyProgress<T>(output: Output, work: (options: CopyOptions) => Promise<T>): Promise<T> {
  return output.progress((report) =>
    work({
      now: Date.now(),
      progress: (doing, table, rows) => report(`${doing} ${table}: ${pluralize(rows, 'row')}`),
    })
  )
}

function copyIncompleteError(source: CopySource, target: CopyTarget, report: CopyReport): CliError {
  const different = report.tables.filter(({ differsAt }) => differsAt !== undefined)
  const differences = different.map(({ table, differsAt }) => `${table} (first at ${differsAt})`)
  const difference = differences.length === 0 ? '' : ` Tables that differ: ${joinList(differences)}.`
  const reason = report.sourceChanged
    ? `The source ${source.location} changed during the copy. Stop its servers, and repeat the command to copy the rest.`
    : `The copy in ${target.location} differs from its source ${source.location}, although that did not change. Repeat ` +
      'the command to copy the rest.'
  return new CliError(
    1,
    report.sourceChanged ? 'source_changed' : 'copy_differs',
    `${reason}${difference} Until then, ${target.location} cannot be used.`,
    {
      members: { tables: report.tables.map(tableJson), copied: false },
      lines: formatTables(report.tables).trimEnd().split('\n'),
    },
  )
}

function tableJson({ table, rows, checksum, differsAt }: TableReport): Record<string, unknown> {
  const same = differsAt === undefined
  return { table, rows, checksum, same, ...(!same && { differs_at: differsAt }) }
}

function formatTables(tables: readonly TableReport[], output?: Output): string {
  return formatTable(
    ['table', 'rows', 'checksum', 'same'],
    tables.map(({ table, rows, checksum, differsAt }) => [
      table,
      rows.toLocaleString('en'),
      // Enough to compare by eye; --json has all of it.
      checksum.slice(0, 16),
      differsAt === undefined ? 'yes' : 'no',
    ]),
    output,
  )
}

/** Opens a store to copy from. @throws {StoreError} when it cannot be copied, before anything is written. */
export async function openSource(url: string): Promise<CopySource> {
  const source = await openExisting(url)
  if (source === undefined) {
    throw new CliError(3, 'store_missing', `There is no store at ${url}: nothing was copied.`)
  }
  try {
    await readSourceState(source)
    return source
  } catch (error) {
    await source.close()
    throw error
  }
}

/** Opens a store for reading. @returns `undefined` when there is no file. */
async function openExisting(url: string): Promise<CopySource | undefined> {
  const address = parseAddress(url)
  if (address.kind === 'postgres') {
    const { openPostgresCopy } = await import('../../adapters/stores/postgres/copy.ts')
    return openPostgresCopy(address.url)
  }
  if (!existsSync(address.file)) return undefined
  const { openSqliteSource } = await import('../../adapters/stores/sqlite/copy.ts')
  return await openSqliteFile(address.file, () => openSqliteSource(address.file))
}

/** Opens a store to copy into. It is created, or changed, when the copy begins. */
export async function openTarget(url: string): Promise<CopyTarget> {
  const address = parseAddress(url)
  if (address.kind === 'postgres') {
    const { openPostgresCopy } = await import('../../adapters/stores/postgres/copy.ts')
    return openPostgresCopy(address.url)
  }
  const { openSqliteTarget } = await import('../../adapters/stores/sqlite/copy.ts')
  return await openSqliteFile(address.file, () => openSqliteTarget(address.file))
}

function parseAddress(url: string): DurableAddress {
  return parseDurableUrl(url, 'A memory: store ends with its process, so it cannot be copied or copied into.')
}
