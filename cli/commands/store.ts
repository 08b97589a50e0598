import type { Command } from 'commander'
import type { SourceArchive, TargetArchive } from '../../adapters/stores/copy/archive.ts'
import { type CopyOptions, type CopyReport, copyStore, planCopy } from '../../adapters/stores/copy/copy.ts'
import type { TableReport } from '../../adapters/stores/copy/verify.ts'
import { lookAtTarget, openSource, openTarget } from '../archives.ts'
import { Failure } from '../failure.ts'
import { action, type Invocation, warnOfPasswords } from '../invocation.ts'
import { printNote, printResult, withProgress } from '../output/print.ts'
import { table } from '../output/table.ts'
import { counted, listed } from '../output/text.ts'

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
      if (!invocation.json) warnOfPasswords([options.from, options.to])
      return options.dryRun ? plan(invocation, options) : copy(invocation, options)
    }))
}

async function copy(invocation: Invocation, { from, to }: CopyStoreOptions): Promise<void> {
  const source = await openSource(from)
  try {
    const target = await openTarget(to)
    try {
      const report = await reporting((options) => copyStore(source, target, options))
      if (!report.isFinished) throw unfinished(source, target, report)
      const tables = report.tables.map(tableWire)
      await printResult(invocation, { tables, copied: true, dry_run: false }, tableText(report.tables))
      printNote(
        `Copied, and the same on both sides. Keys and cursors are valid in ${target.place} from now on; ` +
          `${source.place} is as it was.`,
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
    const target = await lookAtTarget(to)
    try {
      const plans = await reporting((options) => planCopy(source, target, options))
      const tables = plans.map(({ table, rows, toWrite, toRemove }) => ({
        table,
        rows,
        to_write: toWrite,
        to_remove: toRemove,
      }))
      await printResult(
        invocation,
        { tables, copied: false, dry_run: true },
        table(
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
function reporting<T>(work: (options: CopyOptions) => Promise<T>): Promise<T> {
  return withProgress((report) =>
    work({
      now: Date.now(),
      progress: (doing, table, rows) => report(`${doing} ${table}: ${counted(rows, 'row')}`),
    })
  )
}

function unfinished(source: SourceArchive, target: TargetArchive, report: CopyReport): Failure {
  const different = report.tables.filter(({ same }) => !same)
  const where = different.map(({ table, differsAt }) => `${table} (first at ${differsAt})`)
  const difference = where.length === 0 ? '' : ` There is a difference in ${listed(where)}.`
  const reason = report.sourceChanged
    ? `The source ${source.place} was changed while it was copied. Stop what serves or changes it and give the same ` +
      'command again, which brings what is missing.'
    : `The copy in ${target.place} is not the same as its source ${source.place}, though that was not changed. Give the ` +
      'same command again, which brings what is missing.'
  return new Failure(
    1,
    report.sourceChanged ? 'source_changed' : 'copy_differs',
    `${reason}${difference} Until then, nobody may use ${target.place}.`,
    {
      members: { tables: report.tables.map(tableWire), copied: false },
      lines: tableText(report.tables).trimEnd().split('\n'),
    },
  )
}

function tableWire({ table, rows, checksum, same, differsAt }: TableReport): Record<string, unknown> {
  return { table, rows, checksum, same, ...(!same && { differs_at: differsAt }) }
}

function tableText(tables: readonly TableReport[]): string {
  return table(
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
