import type { ReportSummary } from '../../core/wire.ts'
import { bars, columns, sparkline, widen } from './chart.ts'
import { cutToWidth, displayWidth, formatDetails, formatTable, type TableStyle } from '../output/text.ts'
import {
  ALL,
  cellsOf,
  type Daily,
  formatCompact,
  headingsOf,
  sumCounts,
  tablesOf,
  toSpans,
} from './counts.ts'

/** Columns left of a chart. */
const legendWidth = 16
const chartLines = 6
const widestCell = 6
const shortestBar = 8
const longestBar = 24

/** The report of one partner: totals, a chart, and tables by endpoint, plan and country. */
export function formatReport(name: string, summary: ReportSummary, style: TableStyle): string {
  const { period, daily } = summary
  const total = sumCounts(daily)
  const cells = cellsOf(ALL, total)
  const details = formatDetails([
    ['partner', name],
    ['period', `${period.from} to ${period.to}, UTC`],
    ...headingsOf(ALL).map((heading, index) => [heading, cells[index]!] as const),
  ])
  const tables = tablesOf(summary).filter(({ rows }) => rows.length > 0).map(({ by, series, rows }) => {
    const headings = [by, ...headingsOf(series)]
    const table = formatTable(headings, rows.map((row) => [row.name, ...cellsOf(series, row)]), style)
    // Numbers end the lines, so all of them are equally wide.
    const [heading, ...lines] = table.trim().split('\n')
    const space = Math.min(longestBar, widthOf(style) - displayWidth(lines[0]!) - 2)
    const drawn = space < shortestBar ? [] : bars(rows.map((row) => row[series[0]]), space)
    return [heading, ...lines.map((line, index) => `${line}  ${drawn[index] ?? ''}`.trimEnd()), ''].join('\n')
  })
  const chart = total.requests + total.signups > 0 ? formatChart(daily, style) : []
  return [details, ...chart, ...tables].join('\n')
}

/** Bars by day, week or month, and the highest number of each row on its left. None if the terminal is too narrow. */
function formatChart(daily: Daily, style: TableStyle): string[] {
  const width = widthOf(style)
  const { unit, spans } = toSpans(daily, width - legendWidth)
  const cell = Math.min(widestCell, Math.floor((width - legendWidth) / spans.length))
  if (cell < 1) return []
  const [from, to] = [spans[0]!.from, spans.at(-1)!.to]
  const space = spans.length * cell - (cell > 1 ? 1 : 0) - from.length - to.length
  const rows = ALL.flatMap((name) => {
    const values = spans.map((span) => span[name])
    const lines = name === 'requests' ? columns(values, chartLines, cell) : [widen(sparkline(values), cell)]
    const label = `${name.padEnd(8)} ${formatCompact(Math.max(...values)).padStart(4)}`
    return lines.map((line, index) => `${index === 0 ? label : ' '.repeat(label.length)} │ ${line}`.trimEnd())
  })
  const dates = ' '.repeat(legendWidth) + from + (space > 0 ? ' '.repeat(space) + to : '')
  const heading = `BY ${unit.toUpperCase()}${unit === 'week' ? ', FROM MONDAY' : ''}`
  return [[style.styleHeading(heading), ...rows, cutToWidth(dates, width), ''].join('\n')]
}

/** That of a terminal, and a usual one for a file or a pipe. */
function widthOf({ width }: TableStyle): number {
  return width === Infinity ? 80 : width
}
