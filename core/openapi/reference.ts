/** The reference page: the document for people, in one file that asks for nothing else. */
import { API_VERSION } from '../http/headers.ts'
import type { StaticDocument } from '../http/message.ts'
import type { Sha256 } from '../lib/digest.ts'
import { type Markup, markup } from './html.ts'
import type { DocumentSettings, OpenApiDocument } from './model.ts'
import { REFERENCE_SCRIPT, REFERENCE_STYLE } from './reference-assets.ts'
import { type EndpointEntry, endpointsSection, entriesOf } from './reference-endpoints.ts'
import { authentication, limits, problems, quickStart, rules, scopes } from './reference-guides.ts'

/** Makes the page. */
export function createReferencePage(
  described: OpenApiDocument,
  settings: DocumentSettings,
  sha256: Sha256,
): StaticDocument {
  const places = entriesOf(described)
  const repeats = places.some(({ operation }) => operation['x-problems'].includes('idempotency_conflict'))
  const contents = tableOfContents(places, repeats)
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
    ${introduction(described, settings)}${quickStart(settings)}${authentication(settings)}${
    endpointsSection(
      described,
      settings,
    )
  }${scopes()}${problems(described)}${limits(settings)}${rules(settings, repeats)}</main>
        </div>
        <footer>
          <p>Made from the service’s own route table. The same for machines: <a href="/${settings.names.name}/openapi.json">OpenAPI 3.1</a>.</p>
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

/** What a policy calls an inline style or script (CSP 3 §2.3.1). */
function source(text: string, sha256: Sha256): string {
  const bytes = (sha256(text).match(/../g) ?? []).map((digits) => parseInt(digits, 16))
  return `'sha256-${btoa(String.fromCharCode(...bytes))}'`
}

function introduction({ info }: OpenApiDocument, { names }: DocumentSettings): Markup {
  return markup`
    <section id="introduction" aria-labelledby="introduction-title">
      <h1 id="introduction-title">${info.title}</h1>
      <p
        class="lead">${info.summary} Public profiles, a filtered directory, banners, countries, industries, plans, a widget, signups and reports: one key, one partner, JSON over HTTP.</p>
      <ul class="cards">
        <li><strong>Base</strong><code class="origin">https://api.example.com</code></li>
        <li><strong>Key</strong><code>${names.keyHeader}</code></li>
        <li><strong>For machines</strong><a href="/${names.name}/openapi.json">openapi.json</a></li>
      </ul>
    </section>
  `
}

function tableOfContents(places: readonly EndpointEntry[], repeats: boolean): Markup {
  const item = (id: string, title: string, inner?: Markup): Markup =>
    markup`
      <li><a href="#${id}">${title}</a>${inner}</li>
    `
  const endpoints = markup`
    <ul>
    ${places.map(({ operation }) => item(operation.operationId, operation.summary))}</ul>
  `
  return markup`
    <ul>
    ${item('introduction', 'Introduction')}${item('quick-start', 'Quick start')}${
    item(
      'authentication',
      'Authentication',
    )
  }${item('endpoints', 'Endpoints', endpoints)}${item('scopes', 'Scopes and modules')}${
    item(
      'problems',
      'Problems',
    )
  }${item('limits', 'Limits and headers')}${item('paging', 'Paging')}${
    repeats ? item('idempotency', 'Repeating a request') : undefined
  }${item('versioning', 'Versioning')}</ul>
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
