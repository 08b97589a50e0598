import { PROBLEM_ACTIONS } from '../http/problem-actions.ts'
import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import { MODULE_NAMES } from '../model.ts'
import type { Problem } from '../wire.ts'
import type { OpenApiDocument } from './document.ts'
import type { JsonSchema } from '../schemas/inputs.ts'
import type { EventGroup } from './events.ts'
import { codeBlock, type Inset, type Markup, markup, preformatted, prose } from './html.ts'
import type { DocumentSettings, ExampleObject, ParameterObject, ResponseObject } from './model.ts'
import type { OperationObject } from './operation.ts'
import { type EndpointEntry, ownSamples, sampleOf } from './samples.ts'

/** The group of what needs no key, which is read last. */
export const SERVICE_GROUP = 'Service'

/** Groups by tag; the modules without one of their own read content. */
const groupNames: ReadonlyMap<string, string> = new Map([
  ['keys', 'Keys'],
  ['reporting', 'Reports'],
  ['signup', 'Signups'],
  ['service', SERVICE_GROUP],
])

const isContent = (tag: string) => (MODULE_NAMES as readonly string[]).includes(tag)

/** Every operation, grouped, in the order of the document, without references. */
export function groupEndpoints(described: OpenApiDocument): ReadonlyMap<string, readonly EndpointEntry[]> {
  const paths = resolve(described.paths, described)
  const entries = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation }))
  )
  return Map.groupBy(
    entries,
    ({ operation: { tags: [tag = ''] } }) =>
      groupNames.get(tag) ?? (isContent(tag) ? 'Content' : tag.charAt(0).toUpperCase() + tag.slice(1)),
  )
}

/** Replaces every reference within a value by what it refers to in a document. */
function resolve<T>(value: T, document: object, known: Map<string, unknown> = new Map()): T {
  return JSON.parse(JSON.stringify(value), (_, part) => {
    const reference = part?.$ref
    if (typeof reference !== 'string') return part
    if (!known.has(reference)) {
      const names = reference.split('/').slice(1)
      const found = names.reduce<unknown>(
        (parent, name) => (parent as Record<string, unknown>)[name],
        document,
      )
      known.set(reference, resolve(found, document, known))
    }
    return known.get(reference)
  })
}

export function methodBadge(method: string): Markup {
  return markup`<b class="method ${method.toLowerCase()}">${method}</b>`
}

/** A title that links to its section. */
export function heading(level: 2 | 3, id: string, title: string): Markup {
  const [begin, end] = [{ html: `<h${level}` }, { html: `</h${level}>` }]
  return markup`${begin}><a class="anchor" href="#${id}">${title}</a>${end}`
}

export function endpoint(entry: EndpointEntry, settings: DocumentSettings): Markup {
  const { path, method, operation } = entry
  const { operationId: id, summary, description } = operation
  const line = markup`${methodBadge(method)} <code>${path}</code>`
  const sample = sampleOf(id, settings) ?? ownSamples(entry, settings)
  return markup`
    <section class="op split" id="${id}">
      <div class="head">
        ${heading(3, id, summary)}
        <p class="line">${line}<a class="md" href="docs/${id}.md">Markdown</a></p>
        <p>${prose(description)}</p>
      </div>
      <div class="code">
        ${codeBlock({ caption: line, what: summary, code: sample })}
        ${responses(entry)}
      </div>
      <div class="text">${parameters(operation)}${body(operation)}${responseFields(operation)}</div>
    </section>
  `
}

function fieldList(title: string, kind: string, rows: readonly Markup[]): Inset {
  return rows.length > 0 && markup`<h4>${title}</h4><ul class="fields" data-kind="${kind}">${rows}</ul>`
}

function parameters({ parameters }: OperationObject): Inset {
  const own = (parameters as readonly ParameterObject[])
    .filter(({ name, in: place }) => place !== 'header' || name.startsWith('Idempotency'))
  const rows = own.map(({ name, in: place, required, description, schema }) => {
    const { items } = schema
    const notes = [place, ...(items ? ['repeatable'] : [])]
    return field(name, { ...schema, ...items, description }, notes, required ? 'required' : undefined)
  })
  return fieldList('Parameters', 'parameter', rows)
}

function body({ requestBody }: OperationObject): Inset {
  const schema = requestBody?.content['application/json']?.schema
  return schema && fieldList('Body', 'member', members(schema, true))
}

function responseFields({ responses }: OperationObject): Inset {
  const [success] = Object.values(responses) as readonly ResponseObject[]
  const [media] = Object.values(success?.content ?? {})
  return fieldList('Response', 'field', media ? members(media.schema) : [])
}

function alternativesOf({ anyOf, oneOf }: JsonSchema): readonly JsonSchema[] {
  return (anyOf ?? oneOf ?? []).filter(({ properties }) => properties !== undefined)
}

/** The members of an object, of the rows of an array, or of each alternative. */
function members(schema: JsonSchema, isRequest = false): readonly Markup[] {
  const { items, properties, required = [] } = schema
  if (items !== undefined) return members(items)
  const alternatives = alternativesOf(schema)
  if (alternatives.length > 1) {
    return alternatives.map((one) => {
      const { type, status } = one.properties ?? {}
      const values = (type?.enum ?? status?.enum ?? []).map((value) => markup` <code>${String(value)}</code>`)
      const summary = markup`If <code>${type ? 'type' : 'status'}</code> is${values}`
      return markup`<li>${nested(summary, members(one))}</li>`
    })
  }
  if (alternatives[0] !== undefined) return members(alternatives[0])
  return Object.entries(properties ?? {}).map(([name, member]) => {
    const need = required.includes(name) === isRequest ? isRequest ? 'required' : 'optional' : undefined
    return field(name, member, [], need)
  })
}

function nested(summary: Inset, rows: readonly Markup[], isOpen = false): Markup {
  return markup`<details${isOpen && markup` open`}><summary>${summary}</summary><ul>${rows}</ul></details>`
}

function field(
  name: string,
  schema: JsonSchema,
  notes: readonly string[],
  need: 'required' | 'optional' | undefined,
): Markup {
  const rows = members(schema)
  const row = schema.items ?? schema
  const kind = alternativesOf(row).length > 1 ? 'alternatives' : 'fields'
  const { enum: values = [] } = row
  const limits: Inset[] = [
    ...(values.length < 2 || values.length > 24 ? [] : [[
      'one of ',
      values.filter((one) => one !== null).map((one) => markup`<code>${String(one)}</code> `),
    ]]),
    ...values.length > 0 ? [] : boundsOf(row),
    ...(schema.default === undefined ? [] : [markup`default <code>${String(schema.default)}</code>`]),
  ]
  const separated = limits.map((one, index) => index === 0 ? one : [' · ', one])
  const about = [typeOf(schema), ...notes].join(' · ')
  const needed = need && markup` <small class="${need}">${need}</small>`
  return markup`
    <li><code>${name}</code> <small>${about}</small>${needed}
    <p>${prose(schema.description ?? '')}${limits.length > 0 && markup` <small>${separated}</small>`}</p>
    ${rows.length > 0 && nested(`${rows.length} ${kind}`, rows, name === 'data')}</li>
  `
}

function typeOf({ anyOf, oneOf, type, items, format, enum: values }: JsonSchema): string {
  const options = type === undefined ? anyOf ?? oneOf : undefined
  if (options !== undefined) return [...new Set(options.map(typeOf))].join(' or ')
  if (values?.length === 1) return JSON.stringify(values[0])
  const types = [type ?? 'object'].flat().map((type) => {
    if (type === 'array' && items) return `array of ${typeOf(items)}s`
    return type === 'string' && format !== undefined ? format : type
  })
  return types.join(' or ')
}

function boundsOf(schema: JsonSchema): readonly string[] {
  const { minimum, maximum, minLength = 0, maxLength, maxItems } = schema as Readonly<Record<string, number>>
  const bounds: string[] = []
  if (minimum !== undefined && maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER) {
    bounds.push(`${minimum}–${maximum}`)
  }
  const isFreeText = [schema.format, schema['pattern'], schema.anyOf].every((one) => one === undefined)
  if (maxLength !== undefined && maxLength > 2 && maxLength < 8192 && (isFreeText || minLength > 1)) {
    bounds.push(minLength > 0 ? `${minLength}–${maxLength} characters` : `up to ${maxLength} characters`)
  }
  if (maxItems !== undefined && maxItems < 1000) bounds.push(`at most ${maxItems}`)
  return bounds
}

/** The likeliest of their statuses. */
const likely: readonly ProblemCode[] = ['invalid_parameter', 'key_invalid', 'scope_missing', 'invalid_body']
const rare: readonly number[] = [406, 408, 413, 414, 415, 431]

/** The success, and every problem by status: tabs without a script, and one after another without a style. */
function responses({ path, operation }: EndpointEntry): Markup {
  const { operationId: id, summary, parameters, responses, security, 'x-problems': possible } = operation
  const [[success, { content = {} }] = ['', {}]] = Object.entries(responses) as [string, ResponseObject][]
  const [[type, { example }] = ['', { example: '' }]] = Object.entries(content)
  const body = typeof example === 'string' ? example : JSON.stringify(example, null, 2)
  const tab = (label: string, panel: Inset) =>
    markup`
      <input type="radio" name="${id}-status" id="${id}-${label}"${label === success && markup` checked`}>
      <label class="s${label[0]}" for="${id}-${label}">${label}</label>
      <div class="panel">${panel}</div>
    `
  const examples = new Map((parameters as readonly ParameterObject[]).map((one) => [one.name, one.example]))
  const instance = path.replace(/\{(\w+)\}/g, (_, name) => String(examples.get(name)))
  const statusOf = (code: ProblemCode): number => PROBLEMS[code].status
  // What needs no key is shorter: without the problems of every endpoint.
  const hidden = security.length > 0 ? [] : [400, 500, ...rare]
  const shown = possible.filter((code) => !hidden.includes(statusOf(code)))
  const codes = [...new Set([...likely.filter((one) => shown.includes(one)), ...shown])]
  const problems = Map.groupBy(codes, (code) => rare.includes(statusOf(code)) ? 'Other' : `${statusOf(code)}`)
  const panel = ([label, codes]: readonly [string, readonly ProblemCode[]]) => {
    const bodies = codes.map((code) => {
      const response = responses[statusOf(code)] as ResponseObject
      const { value } = response.content!['application/problem+json']!.examples![code] as ExampleObject
      return { ...value as Problem, instance }
    })
    return tab(label, [
      markup`<ul class="codes">${bodies.map(codeLink)}</ul>`,
      markup`<p>${prose(PROBLEM_ACTIONS[codes[0]!])}</p>`,
      markup`<pre><code>${JSON.stringify(bodies[0], null, 2)}</code></pre>`,
    ])
  }
  const failures = [...problems].sort(([a], [b]) => a < b ? -1 : 1).map(panel)
  const expand = markup`<button class="expand" type="button">Expand</button>`
  const copy =
    markup`<button class="copy" type="button" aria-label="Copy response to ${summary}">Copy</button>`
  return markup`
    <figure class="response">
      <figcaption><span>Response</span><small>${type}</small>${expand}${copy}</figcaption>
      <fieldset class="tabs"><legend class="unseen">Status</legend>
      ${tab(success, preformatted('', `Response to ${summary}`, body))}${failures}</fieldset>
    </figure>
  `
}

/** A code, with what does not follow from it: the page's script shows its body when it is chosen. */
function codeLink(
  { type: _, title, status: _s, code, detail, instance: _i, request_id: _r, ...others }: Problem,
  index: number,
): Markup {
  const usual = code.charAt(0).toUpperCase() + code.slice(1).replaceAll('_', ' ')
  const own = { ...title !== usual && { title }, ...detail !== PROBLEMS[code].detail && { detail } }
  const more = JSON.stringify({ ...own, ...others })
  const state = [index === 0 && markup` aria-current="true"`, more !== '{}' && markup` data-more="${more}"`]
  return markup`<li><a href="#problem-${code}"${state}>${code}</a></li>`
}

/** What webhooks send: one section for the events with the same members. */
export function eventSection({ name, title, events, data }: EventGroup): Markup {
  const rows = events.map(({ type, text }) =>
    markup`<li id="${type}"><code>${type}</code><p>${prose(text)}</p></li>`
  )
  const { type, example } = events[0]!
  const code = JSON.stringify(example, null, 2)
  return markup`
    <section class="op split" id="event-${name}">
      <div class="head">${heading(3, `event-${name}`, title)}</div>
      <div class="code">${codeBlock({ caption: type, note: 'application/json', code })}</div>
      <div class="text">
        <ul class="fields" data-kind="event">${rows}</ul>
        ${fieldList('Members of data', 'member', members(data))}
      </div>
    </section>
  `
}
