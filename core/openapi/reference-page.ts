/** The reference as a page, in one self-contained file. */
import type { StaticDocument } from '../http/message.ts'
import { PROBLEM_ACTIONS } from '../http/problem-actions.ts'
import { PROBLEMS } from '../http/problem.ts'
import type { Sha256 } from '../lib/digest.ts'
import type { Problem } from '../wire.ts'
import { otherTurn } from './document.ts'
import { createPage, type Inset, type Markup, markup } from './html.ts'
import type { DocumentSettings } from './model.ts'
import assets from './reference-assets.json' with { type: 'json' }
import { highlight, markPlaces, paragraphs, prose } from './reference-text.ts'
import type {
  Block,
  CodeBlock,
  FieldList,
  FieldRow,
  Inline,
  OperationLine,
  ReferenceContent,
  ReferencePart,
  Responses,
  Section,
  Table,
} from './reference-model.ts'
import { type Language, LANGUAGE_NAMES, LANGUAGES } from './samples.ts'

/** Other requests get the event loop between its sections. */
export async function createReferencePage(
  reference: ReferenceContent,
  { logo = icon }: Pick<DocumentSettings, 'logo'>,
  sha256: Sha256,
): Promise<StaticDocument> {
  const { title, summary, lead, cards, facts, parts, exampleAddress } = reference
  const sections: Inset[] = []
  for (const part of parts) sections.push(await partMarkup(part, exampleAddress))
  const { html, policy } = createPage(assets, {
    title,
    summary,
    lead,
    icon,
    logo,
    languages: LANGUAGE_NAMES.map((id, index) => [
      markup`<input type="radio" name="language" id="in-${id}"${index === 0 && markup` checked`}>`,
      markup`<label for="in-${id}">${LANGUAGES[id]}</label>`,
    ]),
    contents: parts.map(contents),
    cards: cards.map(({ id, title, text }) => markup`<li><a href="#${id}"><b>${title}</b> ${text}</a></li>`),
    facts: facts.map(({ name, value }) =>
      markup`<div><dt>${name}</dt><dd>${value.map((one) => inline(one, exampleAddress))}</dd></div>`
    ),
    sections,
  }, sha256)
  const link = '<docs.md>; rel="alternate"; type="text/markdown"'
  return {
    text: html,
    headers: [...policy, 'Referrer-Policy', 'no-referrer', 'Link', link],
    variesBy: 'Accept',
  }
}

const drawing = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="3 3 18 18" fill="none" stroke="#0a8f72" ' +
  'stroke-width="2" stroke-linecap="round" stroke-linejoin="round"><circle cx="7.5" cy="15.5" r="3"/>' +
  '<path d="M9.5 13.5 17 6m-2.5 2.5 2 2M17 6l1.5 1.5"/></svg>'
const icon = `data:image/svg+xml,${encodeURIComponent(drawing)}`

/** The entries of a part in the contents. */
function contents({ name, sections, group }: ReferencePart, index: number): Markup {
  const links = [...sections, ...group?.sections ?? []].map(({ id, title, blocks }) => {
    const line = blocks.find((block) => block.kind === 'operation')
    return markup`<li><a href="#${id}">${title}${line && methodBadge(line)}</a></li>`
  })
  if (index === 0) links.unshift(markup`<li><a href="#page-introduction">Introduction</a></li>`)
  return markup`<strong>${name}</strong><ul>${links}</ul>`
}

async function partMarkup({ sections, group }: ReferencePart, address: string | undefined): Promise<Inset> {
  const alone = await sectionsMarkup(sections, address)
  if (group === undefined) return alone
  const { label, isHeading, isQuiet } = group
  return [
    alone,
    markup`
      <section class="group${isQuiet && ' quiet'}" aria-label="${label}">
        ${isHeading && markup`<h2>${label}</h2>`}
        ${await sectionsMarkup(group.sections, address)}
      </section>
    `,
  ]
}

async function sectionsMarkup(
  sections: readonly Section[],
  address: string | undefined,
): Promise<readonly Markup[]> {
  const written: Markup[] = []
  for (const section of sections) {
    await otherTurn()
    written.push(sectionMarkup(section, address))
  }
  return written
}

/** The column of the page in which a block stands. */
const tableColumns = {
  operation: 'head',
  prose: 'head',
  code: 'code',
  responses: 'code',
  fields: 'text',
  table: 'below',
} as const satisfies Readonly<Record<Block['kind'], string>>

function sectionMarkup(section: Section, address: string | undefined): Markup {
  const { id, level, title, words, blocks } = section
  const begin = { html: `<h${level}>` }
  const end = { html: `</h${level}>` }
  const heading = markup`${begin}<a class="anchor" href="#${id}">${title}</a>${end}`
  const inColumn = (name: string): readonly Inset[] =>
    blocks.filter(({ kind }) => tableColumns[kind] === name).map((one) => blockMarkup(one, section, address))
  const columns = ['code', 'text', 'below'].map((name) => {
    const content = inColumn(name)
    return content.length > 0 && markup`<div class="${name}">${content}</div>`
  })
  return markup`
    <section class="${level === 3 && 'op '}split" id="${id}"${words && markup` data-words="${words}"`}>
      <div class="head">${heading}${inColumn('head')}</div>
      ${columns}
    </section>
  `
}

function blockMarkup(block: Block, { id }: Section, address: string | undefined): Inset {
  switch (block.kind) {
    case 'operation': {
      const link = markup`<a class="md" href="docs/${id}.md">Markdown</a>`
      return markup`<p class="line">${operationLine(block)}${link}</p>`
    }
    case 'prose':
      return paragraphs(block.lines)
    case 'code':
      return codeBlock(block, address)
    case 'responses':
      return responses(block, address)
    case 'fields':
      return fieldList(block)
    case 'table':
      return table(block)
  }
}

function methodBadge({ method }: OperationLine): Markup {
  return markup`<b class="method ${method.toLowerCase()}">${method}</b>`
}

function operationLine(line: OperationLine): Markup {
  return markup`${methodBadge(line)} <code>${line.path}</code>`
}

function inline(piece: Inline, address?: string): Inset {
  if (typeof piece === 'string') return piece
  if ('href' in piece) return markup`<a href="${piece.href}">${piece.text}</a>`
  return markup`<code>${markPlaces(piece.code, address)}</code>`
}

function codeBlock({ caption, note, label, code, isCopied }: CodeBlock, address: string | undefined): Markup {
  const button = isCopied &&
    markup`<button class="copy" type="button" aria-label="Copy ${label}">Copy</button>`
  const title = typeof caption === 'string' ? caption : operationLine(caption)
  const blocks = typeof code === 'string' ? preformatted('', label, code, address) : programs(code, address)
  return markup`
    <figure${typeof code !== 'string' && markup` class="request"`}>
      <figcaption><span>${title}</span>${note && markup`<small>${note}</small>`}${button}</figcaption>
      ${blocks}
    </figure>
  `
}

function programs(code: ReadonlyMap<Language, string>, address: string | undefined): readonly Markup[] {
  const missing = LANGUAGE_NAMES.filter((one) => !code.has(one))
  return [...code].map(([language, text], index) => {
    // The first stands for languages without a sample.
    const languages = index === 0 ? [language, ...missing] : [language]
    return preformatted(`in ${languages.join(' ')}`, LANGUAGES[language], text, address)
  })
}

function preformatted(classes: string, label: string, code: string, address: string | undefined): Markup {
  const text = markup`<code>${highlight(code, address)}</code>`
  return markup`<pre class="${classes}" tabindex="0" role="group" aria-label="${label}">${text}</pre>`
}

/** The success, and every problem by status: tabs without a script, and one after another without a style. */
function responses(
  { id, title, mediaType, success, problems }: Responses,
  address: string | undefined,
): Markup {
  const tab = (status: string, panel: Inset) => {
    const place = `${id}-${status}`
    const checked = status === success.status && markup` checked`
    return markup`
      <input type="radio" name="${id}-status" id="${place}"${checked}>
      <label class="s${status.slice(0, 1)}" for="${place}">${status}</label>
      <div class="panel">${panel}</div>
    `
  }
  const failures = problems.map(({ status, bodies }) =>
    tab(status, [
      markup`<ul class="codes">${bodies.map(codeLink)}</ul>`,
      markup`<p>${prose(PROBLEM_ACTIONS[bodies[0]!.code])}</p>`,
      markup`<pre><code>${JSON.stringify(bodies[0], null, 2)}</code></pre>`,
    ])
  )
  const shown = tab(success.status, preformatted('', `Response to ${title}`, success.body, address))
  const expand = markup`<button class="expand" type="button">Expand</button>`
  const copy = markup`<button class="copy" type="button" aria-label="Copy response to ${title}">Copy</button>`
  return markup`
    <figure class="response">
      <figcaption><span>Response</span><small>${mediaType}</small>${expand}${copy}</figcaption>
      <fieldset class="tabs"><legend class="unseen">Status</legend>
      ${shown}${failures}</fieldset>
    </figure>
  `
}

/** A code, with what does not follow from it: the page's script shows its body when it is chosen. */
function codeLink(
  {
    type: _type,
    title,
    status: _status,
    code,
    detail,
    instance: _instance,
    request_id: _requestId,
    ...others
  }: Problem,
  index: number,
): Markup {
  const usualTitle = code.charAt(0).toUpperCase() + code.slice(1).replaceAll('_', ' ')
  const more = JSON.stringify({
    title: title === usualTitle ? undefined : title,
    detail: detail === PROBLEMS[code].detail ? undefined : detail,
    ...others,
  })
  const current = index === 0 && markup` aria-current="true"`
  const data = more !== '{}' && markup` data-more="${more}"`
  return markup`<li><a href="#problem-${code}"${current}${data}>${code}</a></li>`
}

function fieldList({ title, of, rows }: FieldList): Inset {
  const heading = title !== undefined && markup`<h4>${title}</h4>`
  return [heading, markup`<ul class="fields" data-kind="${of}">${rows.map(rowMarkup)}</ul>`]
}

function rowMarkup(row: FieldRow): Markup {
  if ('values' in row) {
    const values = row.values.map((value) => markup` <code>${value}</code>`)
    return markup`<li>${nested(markup`If <code>${row.member}</code> is${values}`, row.members)}</li>`
  }
  const { id, name, about, need, text, limits, members } = row
  const notes = [
    about && markup` <small>${about}</small>`,
    need && markup` <small class="${need}">${need}</small>`,
  ]
  const bounds = limits.map((limit, index) => [index > 0 && ' · ', limit.map((one) => inline(one))])
  const kind = members.some((one) => 'values' in one) ? 'alternatives' : 'fields'
  return markup`
    <li${id !== undefined && markup` id="${id}"`}><code>${name}</code>${notes}
    <p>${prose(text)}${limits.length > 0 && markup` <small>${bounds}</small>`}</p>
    ${members.length > 0 && nested(`${members.length} ${kind}`, members, name === 'data')}</li>
  `
}

function nested(summary: Inset, rows: readonly FieldRow[], isOpen = false): Markup {
  const list = markup`<ul>${rows.map(rowMarkup)}</ul>`
  return markup`<details${isOpen && markup` open`}><summary>${summary}</summary>${list}</details>`
}

function table({ heads, rows }: Table): Markup {
  const body = rows.map(({ id, name, note, text, advice }) =>
    markup`
      <tr${id !== undefined && markup` id="${id}"`}>
        <th scope="row"><code>${name}</code><small>${note}</small></th>
        <td>${text}${advice && markup`<span>${prose(advice)}</span>`}</td>
      </tr>
    `
  )
  return markup`
    <table>
      <thead><tr>${heads.map((head) => markup`<th scope="col">${head}</th>`)}</tr></thead>
      <tbody>${body}</tbody>
    </table>
  `
}
