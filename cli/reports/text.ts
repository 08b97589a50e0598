/** Reports as text, with charts of block characters that are one column wide each. */
import type { ReportSummary } from '../../core/wire.ts'
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

const legendWidth = 16
const chartLines = 6
const widestCell = 6
const shortestBar = 8
const longestBar = 24
const heights = ' ▁▂▃▄▅▆▇█'
const widths = ' ▏▎▍▌▋▊▉█'

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

function widthOf({ width }: TableStyle): number {
  return width === Infinity ? 80 : width
}

/** One character for each value, as high as its share of the greatest value: `▁` for 0, and `▂` to `█`. */
export function sparkline(values: readonly number[]): string {
  return toSteps(values, 7).map((step) => heights[step + 1]).join('')
}

/** One horizontal bar for each value, as long as its share of the greatest value, which has `width` columns. */
export function bars(values: readonly number[], width: number): string[] {
  return toSteps(values, width * 8).map((step) => draw(step, width, widths).join('').trimEnd())
}

/**
 * The lines, from the top, of a chart with one vertical bar for each value. The greatest value has `height` lines.
 * @param cell Columns of each bar; from 2, the last one is a gap.
 */
export function columns(values: readonly number[], height: number, cell: number): string[] {
  const drawn = toSteps(values, height * 8).map((step) => draw(step, height, heights).reverse())
  return Array.from(
    { length: height },
    (_, line) => widen(drawn.map((characters) => characters[line]).join(''), cell),
  )
}

/** Widens each character of a chart to `cell` columns; from 2, the last one is a gap. */
export function widen(characters: string, cell: number): string {
  const [width, gap] = cell < 2 ? [1, ''] : [cell - 1, ' ']
  return [...characters].map((character) => character.repeat(width) + gap).join('').trimEnd()
}

/** Shares of the greatest value in steps of 1/`most`. A value above 0 has one step at least, so that it is visible. */
function toSteps(values: readonly number[], most: number): number[] {
  const greatest = values.reduce((one, other) => Math.max(one, other), 0)
  return values.map((value) => value > 0 ? Math.max(1, Math.round(value / greatest * most)) : 0)
}

/** `steps` eighths as characters: full ones, the one for the rest, and empty ones. */
function draw(steps: number, length: number, characters: string): string[] {
  return Array.from({ length }, (_, place) => characters[Math.min(8, Math.max(0, steps - place * 8))]!)
}
