/** Reports on a terminal. */
import type { ReportSummary } from '../../core/wire.ts'
import { bars, columns, sparkline, widen } from '../output/chart.ts'
import {
  createTableFormatter,
  cutToWidth,
  displayWidth,
  formatDetails,
  type TableStyle,
} from '../output/text.ts'
import {
  ALL,
  cellsOf,
  type Daily,
  formatCount,
  headingsOf,
  type PartnerReport,
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
    const addRows = createTableFormatter([by, ...headingsOf(series)], withNumbers(style))
    // Numbers end the lines, so all of them are equally wide.
    const [heading, ...lines] = addRows(rows.map((row) => [row.name, ...cellsOf(series, row)])).trim().split(
      '\n',
    )
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
    const label = `${name.padEnd(8)} ${formatCount(Math.max(...values), 'compact').padStart(4)}`
    return lines.map((line, index) => `${index === 0 ? label : ' '.repeat(label.length)} │ ${line}`.trimEnd())
  })
  const dates = ' '.repeat(legendWidth) + from + (space > 0 ? ' '.repeat(space) + to : '')
  const heading = `BY ${unit.toUpperCase()}${unit === 'week' ? ', FROM MONDAY' : ''}`
  return [[style.styleHeading(heading), ...rows, cutToWidth(dates, width), ''].join('\n')]
}

/** Formats chunks of a table with all partners, and the requests of each by day, week or month in small. */
export function createPartnerTable(style: TableStyle): (reports: readonly PartnerReport[]) => string {
  const most = style.width < 80 ? 13 : 31
  let addRows: ReturnType<typeof createTableFormatter> | undefined
  return (reports) => {
    const small = reports.map(({ daily }) => toSpans(daily, most))
    addRows ??= createTableFormatter(
      ['partner', ...headingsOf(ALL), `by ${small[0]!.unit}`],
      withNumbers(style),
    )
    return addRows(reports.map(({ partner, daily }, index) => {
      const trend = sparkline(small[index]!.spans.map(({ requests }) => requests))
      return [partner, ...cellsOf(ALL, sumCounts(daily)), trend]
    }))
  }
}

/** That of a terminal, and a usual one for a file or a pipe. */
function widthOf({ width }: TableStyle): number {
  return width === Infinity ? 80 : width
}

function withNumbers(style: TableStyle): TableStyle {
  return { width: style.width, styleHeading: (text) => style.styleHeading(text), numbers: headingsOf(ALL) }
}
