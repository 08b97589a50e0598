import { createLineReader, formatContentLine, importContent } from '../../core/content/lines.ts'
import type { ContentKind, ContentRecords, ImportReport } from '../../core/ports/content.ts'
import type { Store } from '../../core/ports/store.ts'
import { type Action, changeStore, type CliCommand, type Invocation, type StoreAction } from '../command.ts'
import { CliError } from '../errors.ts'
import { importing, invalidLinesError, readContentLines } from '../files.ts'
import type { CommandResult, Output } from '../output/print.ts'
import { formatCount, formatTable, joinList, pluralize, printableJson } from '../output/text.ts'
import { isMissingStore, timeOf, withEmptyStore, withStore } from '../store/open.ts'

interface DryRunOptions {
  readonly dryRun?: boolean
}

/** Changes that a dry run prints for people. */
const maxShown = 100

export function define(content: CliCommand): void {
  content.subcommand('import <kind>', 'Create or replace content from JSON Lines, all lines or none')
    .argument('<file>', 'A file with one JSON object per line, or - for standard input')
    .option('--dry-run', 'Only show what would change')
    .waits()
    .act(importFile)
    .details(`
A line replaces the row with the same slug; importing the same lines again changes nothing. Import industries before
the profiles that refer to them, and create partners before their banners.`)
    .examples(
      'partner-api content import industries industries.jsonl',
      'partner-api content import profiles profiles.jsonl --dry-run',
      'export-profiles | partner-api content import profiles -',
    )

  content.subcommand('export <kind>', 'Print content as JSON Lines, in the format of import')
    .read(exportKind)
    .examples('partner-api content export profiles > profiles.jsonl')

  content.subcommand('remove <kind>', 'Remove content, all given rows or none')
    .argument('<slug...>', "Slugs; the slug of a banner is its partner's")
    .option('--dry-run', 'Only check what would be removed')
    .change(remove)
    .examples('partner-api content remove profiles old-mill northern-light')
}

const importFile: Action<[ContentKind, string, DryRunOptions]> = async (invocation, kind, file, options) => {
  const { dryRun = false } = options
  const isMissing = await isMissingStore(invocation)
  let lines: AsyncIterable<string> | readonly string[] = readContentLines(file, kind, invocation)
  if (dryRun || isMissing) {
    // Before the store is created: an unreadable file, or an invalid line, must not leave a new store behind.
    const read: string[] = []
    await importing(invocation.output, async () => {
      for await (const line of lines) read.push(line)
    })
    const tryImport = async (store: Store) => {
      const report = await importLines(invocation, store, kind, read, true)
      if (!dryRun) return
      const changes = await compareLines(store, kind, read)
      await invocation.output.print(dryRunResult(invocation.output, kind, report, changes))
    }
    await (isMissing ? withEmptyStore(tryImport) : withStore(invocation, {}, tryImport))
    if (dryRun) return
    lines = read
  }
  await changeStore(invocation, { create: true }, async (store) => {
    const report = await importLines(invocation, store, kind, lines, false)
    return { data: { kind, dry_run: false, ...report }, text: `${formatCounts(kind, report)}\n` }
  })
}

interface LineChange {
  readonly line: number
  readonly slug: string
  readonly change: 'created' | 'replaced'
}

function dryRunResult(
  output: Output,
  kind: ContentKind,
  report: ImportReport,
  lines: readonly LineChange[],
): CommandResult {
  const headings = ['line', kind === 'banners' ? 'partner' : 'slug', 'would be']
  const rows = lines.slice(0, maxShown).map(({ line, slug, change }) => [String(line), slug, change])
  const summary = `Nothing was written. ${formatCounts(kind, report)}.`
  const more = `… and ${pluralize(lines.length - maxShown, 'more', 'more')}. --json lists all of them.`
  return {
    data: { kind, dry_run: true, ...report, lines },
    text: lines.length === 0 ? '' : formatTable(headings, rows, output),
    notes: () => lines.length > maxShown ? [more, summary] : [summary],
  }
}

function formatCounts(kind: ContentKind, { created, replaced, unchanged }: ImportReport): string {
  return `${kind}: ${formatCount(created)} created, ${formatCount(replaced)} replaced, ` +
    `${formatCount(unchanged)} unchanged`
}

/** @throws {CliError} `invalid_content` when a line is wrong. */
async function importLines(
  invocation: Invocation,
  store: Store,
  kind: ContentKind,
  lines: readonly string[] | AsyncIterable<string>,
  dryRun: boolean,
): Promise<ImportReport> {
  const outcome = await importing(invocation.output, (report) =>
    importContent(store, kind, lines, {
      now: timeOf(store),
      actor: invocation.operator.actor,
      dryRun,
      progress: (done) => report(pluralize(done, 'line')),
    }))
  if ('errors' in outcome) {
    const needsIndustries = kind === 'profiles' &&
      outcome.errors.some(({ reason }) => reason.includes('an industry that exists'))
    const args = ['industries', 'FILE']
    const remedy = { purpose: 'Import industries first', command: 'content import', args }
    throw invalidLinesError(kind, outcome, { remedy: needsIndustries ? remedy : undefined })
  }
  return outcome
}

/** What the lines, all of them valid, would change in the store. */
async function compareLines<K extends ContentKind>(
  store: Store,
  kind: K,
  lines: readonly string[],
): Promise<LineChange[]> {
  const stored = new Map<string, string>()
  for await (const record of await store.exportContent(kind)) {
    stored.set(recordSlug(record), formatContentLine(kind, record))
  }
  const reader = createLineReader(kind)
  return lines.flatMap((text, index) => {
    const record = reader.read(text)
    if (record === undefined) return []
    const slug = recordSlug(record)
    const before = stored.get(slug)
    if (before === formatContentLine(kind, record)) return []
    return { line: index + 1, slug, change: before === undefined ? 'created' : 'replaced' }
  })
}

function recordSlug(record: ContentRecords[ContentKind]): string {
  return 'partner' in record ? record.partner : record.slug
}

const exportKind: StoreAction<[ContentKind], void> = async (store, { output }, kind) => {
  const toJson = (record: ContentRecords[ContentKind]) => JSON.parse(formatContentLine(kind, record))
  const toText = (records: readonly ContentRecords[ContentKind][]) =>
    records.map((record) => `${printableJson(formatContentLine(kind, record))}\n`).join('')
  const { last } = await output.list(await store.exportContent(kind), toJson, toText)
  if (last === undefined && !output.json) output.note(`There are no ${kind} yet.`)
}

const remove: StoreAction<[ContentKind, readonly string[], DryRunOptions]> = async (
  store,
  { operator: { actor } },
  ...given
) => {
  const [kind, names, { dryRun = false }] = given
  const slugs = [...new Set(names)]
  const { missing, used } = await store.removeContent(kind, slugs, { actor, at: timeOf(store) }, dryRun)
  const [code, reason] = missing.length > 0
    ? ['content_not_found', `there are no ${kind} ${joinList(missing)}.`]
    : ['content_in_use', `other content refers to ${joinList(used)}. Remove or change that first.`]
  if (missing.length + used.length > 0) throw new CliError(1, code, `Nothing was removed: ${reason}`)
  const text = `${kind}: ${slugs.length} ${dryRun ? 'would be removed' : 'removed'}\n`
  return { data: { kind, dry_run: dryRun, removed: slugs }, text }
}
