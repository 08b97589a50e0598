/** Reports as text, with charts of block characters that are one column wide each. */
import type { ReportSummary } from '../../core/wire.ts'
import { cutToWidth, formatDetails, formatTable, type TableStyle } from '../output/text.ts'
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

const legendWidth = 16
const widestCell = 6
const heights = '▁▂▃▄▅▆▇█'

export function formatReport(
  name: string,
  quotas: string | undefined,
  summary: ReportSummary,
  style: TableStyle,
): string {
  const { period, daily } = summary
  const total = sumCounts(daily)
  const cells = cellsOf(ALL, total)
  const details = formatDetails([
    ['partner', name],
    ['period', `${period.from} to ${period.to}, UTC`],
    ['quotas', quotas],
    ...headingsOf(ALL).map((heading, index) => [heading, cells[index]!] as const),
  ])
  const tables = tablesOf(summary).filter(({ rows }) => rows.length > 0).map(({ by, series, rows }) =>
    formatTable([by, ...headingsOf(series)], rows.map((row) => [row.name, ...cellsOf(series, row)]), style)
  )
  const chart = total.requests + total.signups > 0 ? formatChart(daily, style) : []
  return [details, ...chart, ...tables].join('\n')
}

/**
 * A bar for each day, week or month, and the highest number of each row on its left. None if
 * the terminal is too narrow.
 */
function formatChart(daily: Daily, style: TableStyle): string[] {
  const width = style.width === Infinity ? 80 : style.width
  const { unit, spans } = toSpans(daily, width - legendWidth)
  const cell = Math.min(widestCell, Math.floor((width - legendWidth) / spans.length))
  if (cell < 1) return []
  const from = spans[0]!.from
  const to = spans.at(-1)!.to
  const space = spans.length * cell - (cell > 1 ? 1 : 0) - from.length - to.length
  const rows = ALL.map((name) => {
    const values = spans.map((span) => span[name])
    return `${name.padEnd(8)} ${formatCompact(Math.max(...values)).padStart(4)} │ ${sparkline(values, cell)}`
  })
  const dates = ' '.repeat(legendWidth) + from + (space > 0 ? ' '.repeat(space) + to : '')
  const heading = `BY ${unit.toUpperCase()}${unit === 'week' ? ', FROM MONDAY' : ''}`
  return [[style.styleHeading(heading), ...rows, cutToWidth(dates, width), ''].join('\n')]
}

/**
 * One bar for each value, as high as its share of the greatest value: `▁` for 0, and `▂` to `█`.
 * @param cell Columns of each bar; from 2, the last one is a gap.
 */
export function sparkline(values: readonly number[], cell = 1): string {
  const greatest = Math.max(...values)
  const bars = values.map((value) => {
    // A value above 0 is always visible.
    const height = heights[value > 0 ? Math.max(1, Math.round(value / greatest * 7)) : 0]!
    return cell === 1 ? height : `${height.repeat(cell - 1)} `
  })
  return bars.join('').trimEnd()
}
