/** Reports as pages without scripts, which load nothing. */
import { createHash } from 'node:crypto'
import { type Inset, type Markup, markup } from '../../core/openapi/html.ts'
import type { Period } from '../../core/reports/period.ts'
import type { ReportSummary } from '../../core/wire.ts'
import { formatCount, formatTime, pluralize, printable } from '../output/text.ts'
import * as counts from './counts.ts'

/** A file with this is a report of ours. */
export const GENERATOR = '<meta name="generator" content="partner-api reports">'

/** A row of a table of counts. */
type CountsRow = counts.Counts & { readonly name: Inset }

/** Bars that stay apart on a phone. */
const mostBars = 92
const mostSmallBars = 31
const mostSmallCharts = 100

export function pageOfOne(now: number, name: string, summary: ReportSummary): string {
  const tables = counts.tablesOf(summary).map(({ by, series, rows }) => {
    const body = rows.length === 0 ? markup`<p>None in this period.</p>` : table(by, series, rows, true)
    const title = `${titleCase(series[0])} by ${by}`
    return markup`<section class="${by}"><h2>${title}</h2>${body}</section>`
  })
  return page(summary.period, now, name, [overview(summary.daily), tables])
}

export async function pageOfAll(period: Period, now: number, reports: AsyncIterable<counts.PartnerReport>) {
  const rows = []
  let all = counts.emptyDays(period)
  for await (const { partner, name, daily } of counts.withTotal(reports)) {
    all = daily
    const label = markup`<bdi>${printable(name)}</bdi>`
    const small = counts.toSpans(daily, mostSmallBars)
    rows.push({
      ...counts.sumCounts(daily),
      small,
      label,
      name: [label, markup` <small>${printable(partner)}</small>`],
    })
  }
  const ranked = rows.slice(0, -1).sort((one, other) => other.requests - one.requests)
  const charts = ranked.slice(0, mostSmallCharts).filter(({ requests }) => requests > 0)
  const which = charts.length < ranked.length
    ? `The ${pluralize(charts.length, 'partner')} with the most requests. `
    : ''
  const smallCharts = charts.map(({ label, small }) =>
    chart(3, label, ['Requests of ', label], small, counts.CALLS)
  )
  return page(period, now, 'All partners', [
    overview(all),
    markup`<section><h2>Partners</h2>${table('partner', counts.ALL, ranked, true)}</section>`,
    markup`<section><h2>Requests of each partner</h2><p>${which}Each chart has its own scale.</p>`,
    legend(counts.CALLS),
    markup`<div class="small">${smallCharts}</div></section>`,
  ])
}

function page(period: Period, now: number, subject: string, body: Inset): string {
  const hash = createHash('sha256').update(pageStyle).digest('base64')
  const policy =
    `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'none'`
  const { html } = markup`
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">
    ${{ html: GENERATOR }}
    <meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
    <title>${printable(subject)}, ${period.from} to ${period.to}</title><link rel="icon" href="data:,">
    <style>${{ html: pageStyle }}</style>
    </head>
    <body>
    <svg width="0" height="0" aria-hidden="true"><pattern id="stripes" patternUnits="userSpaceOnUse" width="400" height="4">
    ${bar('stripe', 0, 0, 400, 4)}${bar('gap', 0, 3, 400, 1)}</pattern></svg>
    <header>
    <p>Partner report</p>
    <h1><bdi>${printable(subject)}</bdi></h1>
    <p>${period.from} to ${period.to}, UTC. Created ${formatTime(now)}.</p>
    </header>
    <main>
    ${body}
    </main>
    <footer><p>Requests and signups with live keys. An error is a response with status 400 or above. Days are in UTC, and
    weeks begin on Monday.</p></footer>
    </body>
    </html>`
  return `${html}\n`
}

function overview(daily: counts.Daily): Markup {
  const cells = counts.cellsOf(counts.ALL, counts.sumCounts(daily))
  const toTotal = (name: string, index: number) =>
    markup`<div><dt>${titleCase(name)}</dt><dd>${cells[index]}</dd></div>`
  const spans = counts.toSpans(daily, mostBars)
  const charts = [counts.CALLS, ['signups'] as const].map((series) => {
    const title = `${titleCase(series[0])} by ${spans.unit}`
    return markup`<section>${chart(2, title, title, spans, series)}</section>`
  })
  return markup`<dl>${counts.headingsOf(counts.ALL).map(toTotal)}</dl>${charts}`
}

/** A chart with a vertical bar for each span, and a table of its numbers. The page explains the colours of level 3. */
function chart(
  level: 2 | 3,
  heading: Inset,
  title: Inset,
  { unit, spans }: counts.Spans,
  series: counts.Series,
) {
  const top = roundUp(Math.max(...spans.map((span) => span[series[0]!])))
  const rows = spans.map((span) => ({
    ...span,
    name: span.from === span.to ? span.from : `${span.from} to ${span.to}`,
  }))
  // Few bars are as wide as ten.
  const width = Math.min(0.8, spans.length * 0.08)
  const bars = rows.map((row, index) => {
    const label = [row.name, ...series.map((name) => `${formatCount(row[name])} ${name}`)].join(', ')
    const parts = series.map((name) => {
      const height = share(row[name], top)
      return bar(name, index + (1 - width) / 2, 100 - height, width, height)
    })
    return markup`<g><title>${label}</title>${bar('hit', index, 0, 1, 100)}${parts}</g>`
  })
  const from = spans[0]!.from
  const to = spans.at(-1)!.to
  const dates = [...new Set([from, to])].map((date) => markup`<span>${date}</span>`)
  const scale = [top, top / 2, 0].map((value) => markup`<span>${counts.formatCompact(value)}</span>`)
  const colours = level === 2 && legend(series)
  const grid = [0, 50, 100].map((y) => `M0 ${y}h${spans.length}`).join('')
  return markup`
    <figure>
    <figcaption>${{ html: `<h${level}>` }}${heading}${{ html: `</h${level}>` }}${colours}</figcaption>
    <div class="plot">
    <div class="scale" aria-hidden="true">${scale}</div>
    <svg viewBox="0 0 ${spans.length} 100" preserveAspectRatio="none" role="img"><title>${title}, ${from} to ${to}</title>
    <path class="grid" d="${grid}"/>${bars}</svg>
    <div class="dates" aria-hidden="true">${dates}</div>
    </div>
    <details><summary>Numbers by ${unit}</summary>${table(unit, series, rows)}</details>
    </figure>`
}

function legend(series: counts.Series): Inset {
  if (series.length === 1) return undefined
  const items = series.map((name) => {
    const sample = bar(name, 0, 0, 12, 12)
    return markup`<li><svg viewBox="0 0 12 12" aria-hidden="true">${sample}</svg>${titleCase(name)}</li>`
  })
  return markup`<ul class="legend">${items}</ul>`
}

function table(by: string, series: counts.Series, rows: readonly CountsRow[], hasBars = false): Markup {
  const most = Math.max(...rows.map((row) => row[series[0]!]))
  const body = rows.map((row) => {
    const bars = series.slice(0, 2).map((name) => bar(name, 0, 0, share(row[name], most), 8))
    const drawn = markup`<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">${bars}</svg>`
    const cells = counts.cellsOf(series, row).map((cell) => markup`<td>${cell}</td>`)
    return markup`<tr><th scope="row">${row.name}${hasBars ? drawn : ''}</th>${cells}</tr>`
  })
  const head = [by, ...counts.headingsOf(series)].map((name) =>
    markup`<th scope="col">${titleCase(name)}</th>`
  )
  return markup`<table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>`
}

function bar(className: string, x: number, y: number, width: number, height: number): Markup {
  const left = Number(x.toFixed(3))
  const across = Number(width.toFixed(3))
  return markup`<path class="${className}" d="M${left} ${y}h${across}v${height}h-${across}z"/>`
}

function share(count: number, most: number): number {
  return count > 0 ? Math.round(count / most * 1000) / 10 : 0
}

/** The end of a scale, of which the half is a whole number. */
function roundUp(most: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)))
  return [1, 1.2, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((end) =>
    end >= most && end % 2 === 0
  )!
}

function titleCase(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Paper is light, and shows those tables that are open. */
const pageStyle = `
:root { --page: #f1f5f9; --card: #fff; --text: #0f172a; --soft: #475569; --line: #cbd5e1;
  --requests: #2563eb; --errors: #b91c1c; --signups: #0f766e }
@media screen and (prefers-color-scheme: dark) { :root { --page: #0b1120; --card: #151e32; --text: #e2e8f0;
  --soft: #a9b6c9; --line: #3b4a63; --requests: #60a5fa; --errors: #fb7185; --signups: #2dd4bf } }
* { box-sizing: border-box; margin: 0; padding: 0 }
body { background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif }
header, main, footer { max-width: 72rem; margin: auto; padding: 1rem }
header { padding-top: 2rem }
header p, footer, section > p, dt, small, summary, thead, .plot { color: var(--soft) }
h1 { font-size: 1.75rem; line-height: 1.3; overflow-wrap: anywhere }
h2 { font-size: 1.125rem; margin-bottom: .5rem }
h3 { font-size: 1rem; overflow-wrap: anywhere }
main { display: grid; gap: 1rem; grid-template-columns: repeat(2, minmax(0, 1fr)) }
main > * { grid-column: 1 / -1; background: var(--card); border: 1px solid var(--line); border-radius: .75rem; padding: 1.25rem }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 1rem }
dd { font-size: clamp(1.25rem, 5vw, 1.75rem); font-weight: 600; line-height: 1.2 }
svg { display: block; width: 100% }
.plot { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: .25rem .5rem; margin-top: 1rem; font-size: .8125rem }
.plot svg { height: 12rem }
.scale { display: flex; flex-direction: column; justify-content: space-between; text-align: right }
.scale span { line-height: 1rem; margin: -.5rem 0 }
.dates { grid-column: 2; display: flex; justify-content: space-between; margin-top: .25rem }
.dates :only-child { margin: auto }
.legend { display: flex; gap: 1.25rem; list-style: none; margin-top: .25rem; font-size: .875rem }
.legend svg { display: inline-block; width: .875rem; height: .875rem; margin-right: .4rem; vertical-align: -.1rem }
.requests { fill: var(--requests) } .signups { fill: var(--signups) } .errors { fill: url(#stripes) }
.stripe { fill: var(--errors) } .gap { fill: var(--card) } .hit { fill: transparent } g:hover .hit { fill: var(--line) }
.grid { stroke: var(--line); vector-effect: non-scaling-stroke }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .4rem 0 .4rem .75rem; border-top: 1px solid var(--line); text-align: right; vertical-align: top }
th:first-child { padding-left: 0; text-align: left; overflow-wrap: anywhere; width: 60% }
th { font-weight: 500 } thead th { border: 0; font-size: .8125rem; vertical-align: bottom }
th svg { height: .5rem; margin-top: .25rem }
summary { cursor: pointer; font-size: .875rem; width: fit-content; margin-top: .75rem }
.small { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fill, minmax(min(16rem, 100%), 1fr)); margin-top: 1rem }
.small .plot svg { height: 4rem }
@media (max-width: 40rem) {
  section:not(.plan, .country) > table tr { display: flex; flex-wrap: wrap } section:not(.plan, .country) > table :is(th, td) { flex: 1; border-top: 0; padding-left: 0 }
  section:not(.plan, .country) > table th:first-child { flex: 0 0 100% } tbody tr { border-top: 1px solid var(--line) }
}
@media (min-width: 48rem) { .plan, .country { grid-column: auto } }
@media print {
  @page { margin: 1.5cm } :root { --page: #fff } body { font-size: 10pt; print-color-adjust: exact } dd { font-size: 1.25rem } main { display: block }
  main > * { margin-top: 1rem } header, main, footer { padding: 0; max-width: none }
  figure, tr, dl, .plan, .country { break-inside: avoid } h2, h3, thead { break-after: avoid } details:not([open]) { display: none }
}
`
