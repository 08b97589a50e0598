/**
 * Light and dark by `light-dark()`, so that a dark block in a light page needs no colors of its own. One column on phones;
 * contents, text and code side by side on wide screens.
 */
export const REFERENCE_STYLE = `
:root {
  color-scheme: light dark;
  --paper: light-dark(#fff, #0e1311);
  --panel: light-dark(#f5f7f6, #161d1a);
  --ink: light-dark(#18211d, #e6ede9);
  --soft: light-dark(#55625c, #9caca4);
  --line: light-dark(#e1e7e4, #27322d);
  --accent: light-dark(#0a6653, #6fd8ba);
  --tint: light-dark(#e5f3ee, #14312a);
  --post: light-dark(#8a4a06, #f2b877);
  --post-tint: light-dark(#fbefdf, #35260f);
  --name: light-dark(#294a86, #a8c5ff);
  --string: light-dark(#0a6653, #8cdcc3);
  --word: light-dark(#96400f, #f3b48b);
  --bar: 3.75rem;
  --edge: max(1.25rem, (100vw - 100rem) / 2);
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace;
}
:root:has(#theme [value=light]:checked) { color-scheme: light }
:root:has(#theme [value=dark]:checked) { color-scheme: dark }

* { box-sizing: border-box }
html { scroll-padding-top: calc(var(--bar) + 1.75rem); text-size-adjust: 100% }
body { margin: 0; background: var(--paper); color: var(--ink); font: .9375rem/1.65 var(--sans); overflow-wrap: break-word }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: .2em }
a:hover { text-decoration-thickness: 2px }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 5px }
.skip { position: absolute; left: 1rem; top: -6rem; z-index: 9; padding: .6rem 1rem; background: var(--accent); color: var(--paper) }
.skip:focus { top: 0 }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
[hidden] { display: none !important }

h1, h2, h3, h4 { line-height: 1.25; letter-spacing: -.015em; text-wrap: balance; font-weight: 650; margin: 0 0 .75rem }
h1 { font-size: clamp(2rem, 1.6rem + 2vw, 2.6rem); letter-spacing: -.03em }
h2 { font-size: 1.6rem; letter-spacing: -.022em }
h3 { font-size: 1.3rem; margin-bottom: .5rem }
h4 { font-size: .875rem; letter-spacing: 0; margin: 1.75rem 0 0; padding-bottom: .5rem; border-bottom: 1px solid var(--line) }
p { margin: 0 0 1rem; text-wrap: pretty; max-width: 68ch }
ul { margin: 0 0 1rem; padding-left: 1.25rem; max-width: 68ch }
li { margin: .3rem 0 }
small { font-size: .8125rem; color: var(--soft) }
code, pre, kbd { font-family: var(--mono); font-size: .875em; font-variant-ligatures: none }
:not(pre) > code { overflow-wrap: anywhere }
p code, td code, main li > p code { padding: .1em .3em; border-radius: 4px; background: var(--panel) }
input, select, button { font: inherit; color: inherit }
::placeholder { color: var(--soft); opacity: 1 }

.bar {
  position: sticky; top: 0; z-index: 3; display: flex; align-items: center; gap: .75rem 1rem;
  height: var(--bar); padding: 0 var(--edge); border-bottom: 1px solid var(--line); background: var(--paper);
}
.brand { display: flex; align-items: center; gap: .6rem; color: inherit; font-weight: 650; text-decoration: none }
.brand img { max-width: 9rem; height: 1.75rem; object-fit: contain }
.menu, .find, .theme select, .slug-field input {
  padding: .35rem .7rem; border: 1px solid var(--line); border-radius: 8px; background: var(--panel);
  font-size: .875rem; line-height: 1.4; color: var(--soft);
}
.menu, .find, select { cursor: pointer }
.menu:hover, .find:hover, .theme select:hover { border-color: var(--soft); color: var(--ink) }
.find { min-width: 12rem; text-align: left }
kbd { float: right; padding: 0 .4rem; border: 1px solid var(--line); border-radius: 5px; background: var(--paper) }
.langs { position: relative; display: flex; min-width: 0; margin: 0 0 0 auto; padding: .2rem; border: 0; border-radius: 9px; background: var(--panel) }
.langs label { padding: .2rem .65rem; border-radius: 7px; color: var(--soft); font-size: .8125rem; cursor: pointer; white-space: nowrap }
.langs label:hover { color: var(--ink) }
.langs input { position: absolute; opacity: 0; pointer-events: none }
.langs :checked + label { background: var(--paper); color: var(--ink); font-weight: 600; box-shadow: 0 1px 3px #0003 }
.langs :focus-visible + label { outline: 2px solid var(--accent); outline-offset: 1px }

.side { font-size: .875rem }
.side ul { list-style: none; margin: 0 0 1.25rem; padding: 0 }
.side li { margin: 0 }
.side strong { display: block; padding: 0 .7rem .3rem; font-weight: 650 }
.side a {
  display: flex; justify-content: space-between; align-items: center; gap: .5rem; padding: .24rem .7rem; border-radius: 7px;
  color: var(--soft); text-decoration: none; line-height: 1.45;
}
.side a:hover { color: var(--ink); background: var(--panel) }
.side a[aria-current] { color: var(--accent); background: var(--tint); font-weight: 600 }
.side:popover-open { width: min(20rem, 85vw); height: 100dvh; max-height: none; margin: 0; padding: 1.25rem .75rem; border: 0;
  background: var(--paper); color: inherit }
::backdrop { background: #0008 }

main { padding: 2rem 1.25rem 3rem; min-width: 0 }
main:focus { outline: 0 }
main > section, .op { padding-bottom: 3rem; margin-bottom: 3rem; border-bottom: 1px solid var(--line) }
main > section.group { padding: 0; margin: 0; border: 0 }
.group > h2 { margin-bottom: 2rem }
main > section:last-child { min-height: calc(100vh - var(--bar) - 2rem); margin: 0; border: 0 }
.lead { font-size: 1.125rem; line-height: 1.6; color: var(--soft) }
.facts { margin: 0; padding: .25rem 1.1rem; border: 1px solid var(--line); border-radius: 12px }
.facts div { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; padding: .6rem 0 }
.facts div + div { border-top: 1px solid var(--line) }
.facts dt { color: var(--soft) }
.facts dd { margin: 0; overflow-wrap: anywhere }
.slug-field { display: block; max-width: 26rem; margin: 2rem 0 0 }
.slug-field span { display: block; font-weight: 600 }
.slug-field input { width: 100%; margin: .35rem 0; color: var(--ink); font-family: var(--mono) }
[aria-invalid=true] { border-color: var(--post); outline-color: var(--post) }
.note { margin: 0 0 1.25rem; padding: .9rem 1.1rem; border-left: 3px solid var(--accent); border-radius: 0 8px 8px 0; background: var(--panel) }
.note p { margin: 0 }

.method { padding: .1rem .45rem; border-radius: 5px; background: var(--tint); color: var(--accent); font: 650 .75rem/1.5 var(--mono) }
.method.post { background: var(--post-tint); color: var(--post) }
:is(.side, figcaption) .method { margin-right: .3rem; padding: 0; background: none }
.side .method { margin: 0; font-size: .6875rem }
.line { display: flex; flex-wrap: wrap; align-items: center; gap: .3rem .6rem }
.line code { padding: 0; background: none }
.fields, .fields ul { margin: 0; padding: 0; list-style: none; max-width: none }
.fields > li, .fields ul > li { margin: 0; padding: .7rem 0; border-bottom: 1px solid var(--line) }
.fields li > code, .fields a > code { font-weight: 600; font-size: .875rem }
.fields p { margin: .1rem 0 0 }
.fields details { margin: .4rem 0 0 }
.fields details > ul { margin: .4rem 0 0; padding: 0 1rem; border: 1px solid var(--line); border-radius: 10px }
.fields li:last-child { border-bottom: 0 }
.fields + p { margin: .25rem 0 0; font-size: .875rem }
summary { width: fit-content; cursor: pointer; color: var(--accent); font-size: .8125rem; font-weight: 600 }
.required { color: var(--post); font-weight: 600 }
table { width: 100%; border-collapse: collapse; margin: 0 0 1.25rem }
th, td { padding: .65rem 1rem .65rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; font-weight: 400 }
thead th { font-size: .8125rem; font-weight: 600; color: var(--soft) }
tbody th { width: 38%; overflow-wrap: anywhere }
td small, th small { display: block }
:target > th { box-shadow: inset 3px 0 0 var(--accent); padding-left: .75rem }

.code { margin-top: 1.5rem }
.code > figure { margin: 0 0 1rem }
figure { margin: 1rem 0 0; border: 1px solid var(--line); border-radius: 12px; background: var(--panel); color: var(--ink); overflow: hidden }
.request { color-scheme: dark }
figcaption {
  display: flex; align-items: center; flex-wrap: wrap; gap: .1rem .6rem; min-height: 2.5rem; padding: .3rem 1rem;
  border-bottom: 1px solid var(--line); color: var(--soft); font-size: .8125rem;
}
figcaption small, .copy { margin-left: auto }
pre { margin: 0; padding: .9rem 1rem; max-height: 26rem; overflow: auto; font-size: .8125rem; line-height: 1.6; tab-size: 2; scrollbar-width: thin }
pre:focus-visible { outline-offset: -2px; border-radius: 0 0 12px 12px }
pre code { font-size: inherit }
.k { color: var(--name) }
.s { color: var(--string) }
.n { color: var(--word) }
.copy { padding: .1rem .5rem; border: 0; border-radius: 6px; background: none; color: var(--accent); font-weight: 600; cursor: pointer }
.copy:hover { background: var(--tint) }
LANGUAGE_RULES

.search { width: min(40rem, 92vw); margin: 8vh auto auto; padding: 0; border: 1px solid var(--line); border-radius: 14px;
  background: var(--paper); color: var(--ink); box-shadow: 0 1rem 3rem #0005 }
.search input { width: 100%; padding: 1rem 1.25rem; border: 0; border-bottom: 1px solid var(--line); background: var(--paper); font-size: 1.0625rem }
.search input:focus { outline: 0 }
.search ul { max-width: none; max-height: 55vh; margin: 0; padding: .5rem; overflow: auto; list-style: none }
.search li { display: flex; justify-content: space-between; gap: 1rem; margin: 0; padding: .5rem .75rem; border-radius: 8px; cursor: pointer }
.search li small { text-align: right }
.search [aria-selected=true] { background: var(--tint) }
.search p { max-width: none; margin: 0; padding: .6rem 1.25rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .8125rem }

footer { padding: 1.5rem 1.25rem 2.5rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .875rem }
footer p { margin: 0 }

@media (max-width: 63.99rem) {
  :root { --bar: 3.25rem }
  .bar { top: -3.25rem; display: grid; grid-template-columns: auto auto minmax(0, 1fr) auto; height: auto; padding: 0 1.25rem }
  .bar > * { min-height: 0 }
  .brand { grid-column: 1 / 4; height: 3.25rem }
  .theme { grid-column: 4 }
  .menu { grid-area: 2 / 1 }
  .find { grid-area: 2 / 2; min-width: 0 }
  .find kbd { display: none }
  .langs { grid-area: 2 / 3 / 3 / 5; justify-self: start; max-width: 100%; margin: .5rem 0; overflow-x: auto; scrollbar-width: none }
}
@media (min-width: 64rem) {
  .menu { display: none }
  .frame { display: grid; grid-template-columns: 16.5rem minmax(0, 1fr); padding: 0 calc(var(--edge) - 1.25rem) }
  .side[popover] {
    display: block; position: sticky; inset: auto; top: var(--bar); align-self: start; width: auto;
    height: calc(100vh - var(--bar)); margin: 0; padding: 2rem .9rem 2rem .55rem; border: 0; border-right: 1px solid var(--line);
    background: none; color: inherit; overflow-y: auto; scrollbar-width: thin;
  }
  .brand { width: 17.25rem }
  main { padding: 2.5rem 1.25rem 4rem 3rem }
  footer { padding-inline: var(--edge) }
}
@media (min-width: 75rem) {
  .code { margin: 0 }
  .split { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 46%); gap: 0 3.5rem }
  .below { grid-column: 1 / 3; margin-top: 1.5rem }
  .code { position: sticky; top: calc(var(--bar) + 1.75rem); align-self: start }
  .code pre { max-height: calc(50vh - 6.5rem) }
}
@media print {
  :root, .request { color-scheme: light }
  .bar, .side, .copy, .skip, footer, .slug-field { display: none !important }
  .code { position: static }
  pre { max-height: none !important; white-space: pre-wrap }
  details::details-content { content-visibility: visible; display: block }
  li, tr, figure { break-inside: avoid }
}
`
