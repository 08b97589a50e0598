/** The style of report pages. Paper is light, and shows those tables that are open. */
export const STYLE = `
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
