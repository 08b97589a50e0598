/** The reference page: the OpenAPI document for people, in one self-contained file. */
import { API_VERSION } from '../http/headers.ts'
import type { StaticDocument } from '../http/message.ts'
import type { Sha256 } from '../lib/digest.ts'
import { type Markup, markup } from './html.ts'
import type { OpenApiDocument } from './document.ts'
import type { DocumentSettings } from './model.ts'
import { REFERENCE_SCRIPT, REFERENCE_STYLE } from './reference-assets.ts'
import { endpointGroups, entriesOf } from './reference-endpoints.ts'
import { guides, type Section } from './reference-guides.ts'

export function createReferencePage(
  described: OpenApiDocument,
  settings: DocumentSettings,
  sha256: Sha256,
): StaticDocument {
  const { before, after } = guides(described, settings)
  const endpoints = { id: 'endpoints', title: 'Endpoints', content: endpointGroups(described, settings) }
  const operations = entriesOf(described).map(({ operation: { operationId, summary } }) =>
    contentsItem(operationId, summary)
  )
  const contents = markup`
    <ul>
    ${contentsItem('introduction', 'Introduction')}${before.map(({ id, title }) => contentsItem(id, title))}${
    contentsItem(endpoints.id, endpoints.title, markup`<ul>${operations}</ul>`)
  }${after.map(({ id, title }) => contentsItem(id, title))}</ul>
  `
  const page = markup`
    <!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta name="description" content="${described.info.summary}">
        <title>${described.info.title} · Reference</title>
        <link rel="icon" href="${icon}">
        <style>${{ html: REFERENCE_STYLE }}</style>
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header
          class="bar"><a href="#main">${mark}${described.info.title}</a><span class="pill">${API_VERSION}</span></header>
        <details class="brief">
          <summary>Contents</summary>
          <nav aria-label="Contents">${contents}</nav>
        </details>
        <div class="frame">
          <nav class="side" aria-label="Contents" tabindex="-1">${contents}</nav>
          <main id="main" tabindex="-1">
    ${introduction(described, settings)}${[...before, endpoints, ...after].map(section)}</main>
        </div>
        <footer>
          <p>Generated from the service’s route table. For machines: <a href="/${settings.names.name}/openapi.json">OpenAPI 3.1</a>.</p>
        </footer>
        <div id="status" class="unseen" role="status"></div>
        <script>${{ html: REFERENCE_SCRIPT }}</script>
      </body>
    </html>
  `
  const policy = [
    `default-src 'none'`,
    `style-src ${source(REFERENCE_STYLE, sha256)}`,
    `script-src ${source(REFERENCE_SCRIPT, sha256)}`,
    'img-src data:',
    `base-uri 'none'`,
    `form-action 'none'`,
    `frame-ancestors 'none'`,
  ]
  return {
    text: page.html,
    headers: ['Content-Security-Policy', policy.join('; '), 'Referrer-Policy', 'no-referrer'],
  }
}

function section({ id, title, content }: Section): Markup {
  return markup`
    <section id="${id}" aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2>
    ${content}</section>
  `
}

function contentsItem(id: string, title: string, inner?: Markup): Markup {
  return markup`
    <li><a href="#${id}">${title}</a>${inner}</li>
  `
}

/** Allows an inline style or script by its hash (CSP 3 §2.3.1). */
function source(text: string, sha256: Sha256): string {
  const bytes = (sha256(text).match(/../g) ?? []).map((digits) => parseInt(digits, 16))
  return `'sha256-${btoa(String.fromCharCode(...bytes))}'`
}

function introduction({ info }: OpenApiDocument, { names }: DocumentSettings): Markup {
  return markup`
    <section id="introduction" aria-labelledby="introduction-title">
      <h1 id="introduction-title">${info.title}</h1>
      <p
        class="lead">${info.summary} Profiles, a searchable directory, banners, countries, industries, plans, a widget, signups and reports: one key per partner, JSON over HTTP.</p>
      <ul class="cards">
        <li><strong>Base</strong><code class="origin">https://api.example.com</code></li>
        <li><strong>Key</strong><code>${names.keyHeader}</code></li>
        <li><strong>For machines</strong><a href="/${names.name}/openapi.json">openapi.json</a></li>
      </ul>
    </section>
  `
}

const drawing =
  '<path d="M9.5 13.5 17 6m-2.5 2.5 2 2M17 6l1.5 1.5" fill="none" stroke="STROKE" stroke-width="2" ' +
  'stroke-linecap="round" stroke-linejoin="round"/><circle cx="7.5" cy="15.5" r="3" fill="none" stroke="STROKE" ' +
  'stroke-width="2"/>'

const mark: Markup = {
  html: `<svg viewBox="0 0 24 24" width="26" height="26" aria-hidden="true">${
    drawing.replaceAll('STROKE', 'currentColor')
  }</svg>`,
}

const icon = `data:image/svg+xml,${
  encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24">${
      drawing.replaceAll('STROKE', '#0a8f72')
    }</svg>`,
  )
}`
