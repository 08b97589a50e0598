/** Counts of requests, errors and signups: their sums, and how people read them. */
import { countryName, isCountryCode } from '../../core/content/iso-codes.ts'
import { MS_PER_DAY, startOfDay, utcDay } from '../../core/lib/time.ts'
import { daysIn, type Period } from '../../core/reports/period.ts'
import type { ReportSummary } from '../../core/wire.ts'
import { formatCount, printable } from '../output/text.ts'

export type Daily = ReportSummary['daily']
export type Counts = Omit<Daily[number], 'date'>
/** The counts of a chart or a table. The first one sets the scale of a chart, and contains errors. */
export type Series = readonly (keyof Counts)[]
export const ALL = ['requests', 'errors', 'signups'] as const
export const CALLS = ['requests', 'errors'] as const

/** The report of one partner among others, with names of the wire. */
export interface PartnerReport {
  readonly partner: string
  readonly name: string
  readonly period: Period
  readonly requests: { readonly total: number; readonly errors: number }
  readonly signups: { readonly total: number }
  readonly daily: Daily
}

/** The days of a period, summed up by a unit. */
export interface Spans {
  readonly unit: 'day' | 'week' | 'month'
  readonly spans: readonly (Counts & { readonly from: string; readonly to: string })[]
}

/** What the days of a span have in common. Weeks begin on Monday. */
const units = {
  day: (day: string) => day,
  week: (day: string) => utcDay(startOfDay(day) - (new Date(day).getUTCDay() + 6) % 7 * MS_PER_DAY),
  month: (day: string) => day.slice(0, 7),
}

/** Sums by day, week or calendar month: the first that gives at most `most` spans, or else by month. */
export function toSpans(daily: Daily, most: number): Spans {
  const group = (unit: keyof typeof units) => Map.groupBy(daily, ({ date }) => units[unit](date))
  const unit = (['day', 'week'] as const).find((unit) => group(unit).size <= most) ?? 'month'
  const spans = [...group(unit).values()].map((days) => (
    { from: days[0]!.date, to: days.at(-1)!.date, ...sumCounts(days) }
  ))
  return { unit, spans }
}

export function sumOf<Name extends string>(rows: readonly { readonly [_ in Name]: number }[], name: Name) {
  return rows.reduce((sum, row) => sum + row[name], 0)
}

export function sumCounts(rows: readonly Counts[]): Counts {
  const [requests, errors, signups] = ALL.map((name) => sumOf(rows, name)) as [number, number, number]
  return { requests, errors, signups }
}

export function emptyDays(period: Period): Daily {
  return daysIn(period).map((date) => ({ date, ...sumCounts([]) }))
}

export function toReport(partner: string, name: string, daily: Daily): PartnerReport {
  const { requests, errors, signups } = sumCounts(daily)
  const period = { from: daily[0]!.date, to: daily.at(-1)!.date }
  return { partner, name, period, requests: { total: requests, errors }, signups: { total: signups }, daily }
}

/** Passes reports on, and after them the one on all partners. */
export async function* withTotal(reports: AsyncIterable<PartnerReport>): AsyncGenerator<PartnerReport> {
  let all: Daily = []
  for await (const report of reports) {
    yield report
    all = report.daily.map((row, day) => ({ ...row, ...sumCounts([row, ...all.slice(day, day + 1)]) }))
  }
  if (all.length > 0) yield toReport('Total', 'All partners', all)
}

export function tablesOf({ requests, signups }: ReportSummary) {
  const none = sumCounts([])
  const toRow = (name: string, counts: Partial<Counts>) => ({ ...none, ...counts, name: printable(name) })
  const endpoints = requests.by_endpoint.map((row) => toRow(`${row.method} ${row.path}`, row))
  const plans = signups.by_plan.map((row) => toRow(row.plan ?? 'none', row))
  const countries = signups.by_country.map((row) => toRow(countryLabel(row.country), row))
  return [
    { by: 'endpoint', series: CALLS, rows: endpoints },
    { by: 'plan', series: ['signups'] as const, rows: plans },
    { by: 'country', series: ['signups'] as const, rows: countries },
  ]
}

function countryLabel(code: string | null): string {
  if (code === null) return 'none'
  return isCountryCode(code) ? `${countryName(code, 'en')} (${code})` : code
}

export function headingsOf(series: Series): string[] {
  return series.flatMap((name) => name === 'errors' ? ['errors', 'error rate'] : [name])
}

export function cellsOf(series: Series, counts: Counts): string[] {
  return series.flatMap((name) => {
    const count = formatCount(counts[name])
    return name === 'errors' ? [count, errorRate(counts)] : [count]
  })
}

function errorRate({ requests, errors }: Counts): string {
  const percent = errors / requests * 100
  if (requests === 0) return '–'
  return errors > 0 && percent < 0.1 ? '<0.1%' : `${percent.toFixed(1)}%`
}

export function formatCompact(count: number): string {
  return count.toLocaleString('en', { notation: 'compact' })
}
