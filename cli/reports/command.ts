import { lstat, readFile, rename, rm, writeFile } from 'node:fs/promises'
import process from 'node:process'
import { findPartner } from '../../core/admin/apply.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'
import { readQuotaUse } from '../../core/limits/partner-quotas.ts'
import type { PartnerDay } from '../../core/ports/reports.ts'
import { readPartners, type Store } from '../../core/ports/store.ts'
import { daysIn, isCalendarDay, type Period, resolvePeriod } from '../../core/reports/period.ts'
import { toWireSummary } from '../../core/reports/summary.ts'
import type { CliCommand, Invocation } from '../command.ts'
import { CliError, usageError } from '../errors.ts'
import { describeFileError } from '../files.ts'
import { optionParser, serviceNameOption } from '../options.ts'
import type { Output } from '../output/print.ts'
import { formatQuotas, printable } from '../output/text.ts'
import {
  ALL,
  cellsOf,
  emptyDays,
  headingsOf,
  type PartnerReport,
  sumCounts,
  toReport,
  toSpans,
  withTotal,
} from './counts.ts'
import { formatReport, sparkline } from './text.ts'
import { readEndpoints, timeOf } from '../store/open.ts'

interface ReportOptions {
  readonly from?: string
  readonly to?: string
  readonly csv?: true
  readonly html?: string
  readonly serviceName: string
}

const parseDay = (text: string) => isCalendarDay(text) ? text : undefined
const dayOption = optionParser('It must be a date, YYYY-MM-DD.', parseDay)
/** Partners that are read at once: each has a row for every day. */
const partnersPerPage = 100

export function define(reports: CliCommand): void {
  reports
    .argument('[partner]', "A partner's slug (default: all partners side by side)")
    .option('--from <date>', 'First day, in UTC (default: 29 days before the last)', dayOption)
    .option('--to <date>', 'Last day, in UTC (default: today); a period has at most 366 days', dayOption)
    .option('--csv', 'Print CSV: partner, day, requests, errors and signups')
    .option('--html <file>', 'Write a page with charts to a new file, or replace an earlier report')
    .option('--service-name <name>', 'Name of the service in paths', serviceNameOption, 'service')
    .read(report)
    .details(`
Counts requests and signups with live keys. An error is a response with status 400 or above. Servers write their counts
within seconds. The page has no scripts and loads nothing, so it can be sent to others.`)
    .examples(
      'partner-api reports',
      'partner-api reports acme --from 2026-10-01 --to 2026-10-31',
      'partner-api reports --csv > reports.csv',
      'partner-api reports acme --html acme.html',
    )
}

async function report(
  store: Store,
  { output }: Invocation,
  slug: string | undefined,
  { from, to, csv, html, serviceName }: ReportOptions,
): Promise<void> {
  if (csv && output.json) throw usageError('--csv and --json contradict each other.')
  const now = timeOf(store)
  const period = resolvePeriod(from, to, now, '--to')
  if (typeof period === 'string') throw usageError(`--from ${period}.`)
  if (slug === undefined) {
    const all = readReports(store, period)
    if (csv) return await writeCsv(output, all)
    if (html !== undefined) {
      return await savePage(output, html, ({ pageOfAll }) => pageOfAll(period, now, all))
    }
    const rows = output.json ? all : withTotal(all)
    const most = output.width < 80 ? 13 : 31
    const headings = ['partner', ...headingsOf(ALL), `by ${toSpans(emptyDays(period), most).unit}`]
    const { last } = await output.table(rows, (row) => row, headings, ({ partner, daily }) => {
      const trend = sparkline(toSpans(daily, most).spans.map(({ requests }) => requests))
      return [partner, ...cellsOf(ALL, sumCounts(daily)), trend]
    })
    if (last === undefined) {
      output.note(
        `There are no partners yet. To create one: ${output.command('partners create SLUG --name NAME')}`,
      )
    }
    return
  }
  const partner = await findPartner(store, slug)
  const { name } = partner
  const summary = await summarise(store, slug, period, serviceName)
  if (csv) return await writeCsv(output, [{ partner: slug, ...summary }])
  if (html !== undefined) {
    return await savePage(output, html, ({ pageOfOne }) => pageOfOne(now, name, summary))
  }
  const quotas = await readQuotaUse(store, partner, now)
  const text = formatReport(`${name} (${slug})`, formatQuotas(quotas), summary, output)
  await output.print({ data: { ...summary, quotas }, text })
}

async function summarise(store: Store, slug: string, { from, to }: Period, serviceName: string) {
  const { endpoints } = await readEndpoints(store, serviceName)
  return toWireSummary({ from, to }, await store.summarise(slug, from, to), endpoints)
}

/** Partners by slug, also those without counts; removed ones only with counts. */
async function* readReports(store: Store, period: Period): AsyncGenerator<PartnerReport> {
  const days = daysIn(period)
  const counted = readCounts(store, period)
  let next = await counted.next()
  for await (const { slug, name, state } of readPartners(store)) {
    // A partner in between was created after the page of partners was read.
    while (!next.done && next.value[0] < slug) next = await counted.next()
    const rows = !next.done && next.value[0] === slug ? next.value[1] : []
    if (state === 'removed' && rows.length === 0) continue
    const byDay = new Map(rows.map((row) => [row.day, row]))
    const daily = days.map((date) => {
      const { requests = 0, errors = 0, signups = 0 } = byDay.get(date) ?? {}
      return { date, signups, requests, errors }
    })
    yield toReport(slug, name, daily)
  }
}

/** The rows of each partner that has any, by slug. */
async function* readCounts(store: Store, { from, to }: Period) {
  let after: string | undefined
  for (;;) {
    const rows: readonly PartnerDay[] = await store.summarisePartners(from, to, after, partnersPerPage)
    const byPartner = Map.groupBy(rows, ({ partner }) => partner)
    yield* byPartner
    if (byPartner.size < partnersPerPage) return
    after = rows.at(-1)!.partner
  }
}

type CsvRows = Pick<PartnerReport, 'partner' | 'daily'>

async function writeCsv(output: Output, reports: AsyncIterable<CsvRows> | Iterable<CsvRows>): Promise<void> {
  await output.write('partner,day,requests,errors,signups\r\n')
  for await (const { partner, daily } of reports) {
    const lines = daily.map(({ date, requests, errors, signups }) =>
      `${csvCell(partner)},${date},${requests},${errors},${signups}\r\n`
    )
    await output.write(lines.join(''))
  }
}

/** A spreadsheet would calculate text that begins with one of these characters. */
function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Replaces an earlier report atomically, so that a reader never gets half of a page. */
async function savePage(
  output: Output,
  file: string,
  draw: (pages: typeof import('./html.ts')) => MaybePromise<string>,
): Promise<void> {
  const pages = await import('./html.ts')
  const draft = `${file}.${process.pid}.tmp`
  try {
    const stats = await lstat(file).catch(() => undefined)
    if (stats && !(stats.isFile() && (await readFile(file)).includes(pages.GENERATOR))) {
      throw new CliError(1, 'file_exists', `${file} exists and is no report. Choose another name.`)
    }
    await writeFile(draft, await draw(pages), { flag: 'wx' })
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {})
    if (error instanceof CliError || (error as NodeJS.ErrnoException).syscall === undefined) throw error
    throw new CliError(1, 'file_not_created', `${file} can't be written: ${describeFileError(error)}.`)
  }
  await output.print({ data: { file }, text: `Wrote ${printable(file)}\n` })
}
