/** `store copy`. */
import { existsSync, realpathSync } from 'node:fs'
import { type CopyDatabase, copyStore, type TableReport } from '../../adapters/stores/sql/copy.ts'
import { verifyAuditLog } from '../../core/audit/verify.ts'
import { type Invocation, warnAboutPasswords } from '../command.ts'
import { CliError, usageError } from '../errors.ts'
import type { Output } from '../output/print.ts'
import { formatCount, formatTable, pluralize, printable } from '../output/text.ts'
import { openSqliteFile, withStore } from './open.ts'
import { type DurableAddress, parseDurableUrl } from './url.ts'

interface CopyOptions {
  readonly from: string
  readonly to: string
}

export async function copy(invocation: Invocation, { from, to }: CopyOptions): Promise<void> {
  const { output } = invocation
  warnAboutPasswords(output, [from, to])
  const source = parseCopyUrl(from)
  const target = parseCopyUrl(to)
  if (source.kind === 'sqlite' && !existsSync(source.file)) {
    throw new CliError(3, 'store_missing', `There is no store at ${from}: nothing was copied.`)
  }
  if (isSameFile(source, target)) throw usageError('--from and --to are the same file.')
  const tables = await output.progress(async (report) => {
    const opened = await openCopyEnd(source, { create: false })
    try {
      return await copyStore(opened, () => openCopyEnd(target, { create: true }), (doing, table, rows) => {
        report(`${doing} ${table}: ${pluralize(rows, 'row')}`)
      })
    } finally {
      await opened.close()
    }
  })
  const warnings = await withStore({ ...invocation, storeUrl: to }, { readOnly: true }, async (store) => {
    const { brokenAt, differences } = await verifyAuditLog(store)
    const broken = brokenAt === undefined ? [] : [`the audit log is broken at entry ${brokenAt}`]
    return [...broken, ...differences.map(({ kind, id }) => `${kind} ${id} contradicts the audit log`)]
  })
  await output.print({ data: { tables, warnings }, text: formatTables(tables, output) })
  for (const warning of warnings) output.note(`warning: ${printable(warning)}, as in the source`)
  output.note(
    'The copy is complete and equal to its source, which is unchanged. Keys and cursors are valid in it.',
  )
}

function formatTables(tables: readonly TableReport[], output: Output): string {
  // Enough of a digest to compare by eye; --json has all of it.
  const rows = tables.map(({ table, rows, sha256 }) => [table, formatCount(rows), sha256.slice(0, 16)])
  return formatTable(['table', 'rows', 'sha-256'], rows, output)
}

function isSameFile(source: DurableAddress, target: DurableAddress): boolean {
  if (source.kind !== 'sqlite' || target.kind !== 'sqlite' || !existsSync(target.file)) return false
  return realpathSync(source.file) === realpathSync(target.file)
}

async function openCopyEnd(
  address: DurableAddress,
  options: { readonly create: boolean },
): Promise<CopyDatabase> {
  if (address.kind === 'postgres') {
    const { openPostgresCopy } = await import('../../adapters/stores/postgres/copy.ts')
    return openPostgresCopy(address.url)
  }
  const { openSqliteCopy } = await import('../../adapters/stores/sqlite/copy.ts')
  return await openSqliteFile(address.file, () => openSqliteCopy(address.file, options))
}

function parseCopyUrl(url: string): DurableAddress {
  return parseDurableUrl(url, 'A memory: store ends with its process, so it cannot be copied or copied into.')
}
