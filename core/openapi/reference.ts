/** The reference page: the OpenAPI document for people, in one self-contained file. */
import type { StaticDocument } from '../http/message.ts'
import { PROBLEM_ACTIONS } from '../http/problem-actions.ts'
import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import type { Sha256 } from '../lib/digest.ts'
import { API_VERSION, MODULE_NAMES, MODULES } from '../model.ts'
import { fill, type OpenApiDocument, otherTurn } from './document.ts'
import { describeEvents } from './events.ts'
import texts from './guides.json' with { type: 'json' }
import {
  baseUrl,
  type CodeBlock,
  codeBlock,
  createPage,
  EXAMPLE_ORIGIN,
  type Inset,
  LANGUAGES,
  markPlaces,
  type Markup,
  markup,
  paragraphs,
  prose,
  table,
} from './html.ts'
import type { DocumentSettings } from './model.ts'
import assets from './reference-assets.json' with { type: 'json' }
import {
  endpoint,
  eventSection,
  groupEndpoints,
  heading,
  methodBadge,
  SERVICE_GROUP,
} from './reference-endpoints.ts'
import { sampleOf } from './samples.ts'

/** Other requests get the event loop between its endpoints, as between those of the document. */
export async function createReferencePage(
  described: OpenApiDocument,
  settings: DocumentSettings,
  sha256: Sha256,
): Promise<StaticDocument> {
  const { title, summary } = described.info
  const parts = await partsOf(described, settings)
  const { html, policy } = createPage(assets, {
    title,
    summary,
    icon,
    logo: settings.logo ?? icon,
    languages: Object.entries(LANGUAGES).map(([id, name], index) => [
      markup`<input type="radio" name="language" id="in-${id}"${index === 0 && markup` checked`}>`,
      markup`<label for="in-${id}">${name}</label>`,
    ]),
    contents: parts.map(({ name, items }) => contentsGroup(name, items)),
    facts: factsOf(settings).map(([name, value]) =>
      value && markup`<div><dt>${name}</dt><dd>${value}</dd></div>`
    ),
    sections: parts.map(({ section }) => section),
  }, sha256)
  const example = `${EXAMPLE_ORIGIN}</span>`
  const address = baseUrl(settings) === EXAMPLE_ORIGIN
    ? `${EXAMPLE_ORIGIN}${settings.basePath}</span>`
    : example
  return {
    text: html.replaceAll(example, address),
    headers: [
      ...policy,
      ...['Referrer-Policy', 'no-referrer'],
      ...['Link', '<docs.md>; rel="alternate"; type="text/markdown"'],
    ],
    variesBy: 'Accept',
  }
}

/** The parts of the page in their order, with their entries in the contents. */
async function partsOf(described: OpenApiDocument, settings: DocumentSettings) {
  const groups = await Array.fromAsync(groupEndpoints(described), async ([name, entries]) => ({
    name,
    items: entries.map(({ method, operation: { operationId: id, summary: title } }) => (
      { id, title, badge: methodBadge(method) }
    )),
    section: markup`
      <section class="group${name === SERVICE_GROUP ? ' quiet' : ''}" aria-label="${name}">
        <h2>${name}</h2>
        ${await Array.fromAsync(entries, (entry) => otherTurn().then(() => endpoint(entry, settings)))}
      </section>
    `,
  }))
  await otherTurn()
  const guides = guidesOf(described, settings)
  const events = describeEvents()
  const part = (name: string, from: number, to?: number) => {
    const items = guides.slice(from, to)
    return { name, items: items as readonly ContentsItem[], section: items.map(section) as Inset }
  }
  const [overview, webhooks] = [part('Overview', 0, 2), part('Webhooks', 2, 3)]
  const types = markup`<section class="group" aria-label="Event types">${events.map(eventSection)}</section>`
  const isService = ({ name }: { readonly name: string }) => name === SERVICE_GROUP
  return [
    { ...overview, items: [{ id: 'page-introduction', title: 'Introduction' }, ...overview.items] },
    ...groups.filter((one) => !isService(one)),
    {
      ...webhooks,
      items: [...webhooks.items, ...events.map(({ name, title }) => ({ id: `event-${name}`, title }))],
      section: [webhooks.section, types],
    },
    part('Guides', 3),
    ...groups.filter(isService),
  ]
}

interface Guide {
  readonly title: string
  /** Other words that people search for. */
  readonly words?: string
  readonly text: readonly string[]
  /** Text to copy, an operation with samples, or a problem. */
  readonly code: readonly (Omit<CodeBlock, 'code'> & {
    readonly code?: string
    readonly sample?: string
    readonly problem?: string
  })[]
}

/** All guides: two that are read before the endpoints, that of webhooks, and the others. */
function guidesOf(described: OpenApiDocument, settings: DocumentSettings) {
  const { examples } = described.components
  const tables = tablesOf(settings)
  return Object.entries(fill<Readonly<Record<string, Guide>>>(texts, settings)).map((
    [name, { title, words, text, code }],
  ) => ({
    ...{ id: `guide-${name}`, title, words },
    text: paragraphs(text),
    code: code.flatMap(({ sample = '', problem, code, ...block }) => {
      const shown = code ??
        (problem ? JSON.stringify(examples[problem]?.value, null, 2) : sampleOf(sample, settings))
      return shown ? [codeBlock({ ...block, code: shown, fixed: block.note !== undefined })] : []
    }),
    below: tables[name],
  }))
}

const limitTexts: Readonly<Record<string, string>> = {
  key: 'Requests with a key.',
  signup: 'Signups with a key.',
  verify: 'Verifications with a key, which count toward no other policy.',
  authfail: 'Failed authentications from an address. Keys known to be valid still work.',
}

function tablesOf({ limits }: DocumentSettings): Readonly<Record<string, Markup>> {
  const limitRows = Object.entries(limits).map(([name, { quota, windowSeconds }]) => ({
    name,
    note: quota === 0 ? 'off' : `${quota} in ${windowSeconds} s`,
    about: limitTexts[name],
  }))
  const scopeRows = MODULE_NAMES.map((module) => {
    const { scope, feature } = MODULES[module]
    return { name: scope, note: module, about: feature }
  })
  const problemRows = (Object.keys(PROBLEMS) as ProblemCode[]).map((code) => {
    const { status, detail } = PROBLEMS[code]
    return {
      id: `problem-${code}`,
      name: code,
      note: status,
      about: [detail, markup`<span>${prose(PROBLEM_ACTIONS[code])}</span>`],
    }
  })
  return {
    limits: table(['Policy and default', 'What it counts'], limitRows),
    scopes: table(['Scope and module', 'Purpose'], scopeRows),
    'problem-codes': table(['Code and status', 'Meaning, and what to do'], problemRows),
  }
}

function section({ id, title, words, text, code, below }: ReturnType<typeof guidesOf>[number]): Markup {
  return markup`
    <section class="split" id="${id}" data-words="${words}">
      <div class="head">${heading(2, id, title)}${text}</div>
      <div class="code">${code}</div>
      ${below && markup`<div class="below">${below}</div>`}
    </section>
  `
}

interface ContentsItem {
  readonly id: string
  readonly title: string
  readonly badge?: Markup
}

function contentsGroup(name: string, items: readonly ContentsItem[]): Markup {
  const links = items.map(({ id, title, badge }) => markup`<li><a href="#${id}">${title}${badge}</a></li>`)
  return markup`<strong>${name}</strong><ul>${links}</ul>`
}

const link = (url: string, text: string): Markup => markup`<a href="${url}">${text}</a>`

function factsOf(settings: DocumentSettings): readonly (readonly [string, Inset])[] {
  const { names, contact: { name, email, url } = {}, terms } = settings
  return [
    ['Base URL', markup`<code>${markPlaces(baseUrl(settings))}</code>`],
    ['Key', markup`<code>${names.keyHeader}</code>`],
    ['Version', markup`<code>${API_VERSION}</code>`],
    ['For machines', [link('openapi.json', 'OpenAPI 3.1'), ' · ', link('docs.md', 'Markdown')]],
    ['Contact', email ? link(`mailto:${email}`, name ?? email) : url && link(url, name ?? url)],
    ['Terms', terms && link(terms, terms)],
  ]
}

const drawing = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="3 3 18 18" fill="none" stroke="#0a8f72" ' +
  'stroke-width="2" stroke-linecap="round" stroke-linejoin="round"><circle cx="7.5" cy="15.5" r="3"/>' +
  '<path d="M9.5 13.5 17 6m-2.5 2.5 2 2M17 6l1.5 1.5"/></svg>'
const icon = `data:image/svg+xml,${encodeURIComponent(drawing)}`
