import { PROBLEM_ACTIONS } from '../http/problem-actions.ts'
import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import { MODULE_NAMES } from '../model.ts'
import type { OpenApiDocument } from './document.ts'
import type { JsonSchema } from '../schemas/inputs.ts'
import { codeBlock, type Inset, type Markup, markup, prose } from './html.ts'
import type { DocumentSettings, ParameterObject, ResponseObject } from './model.ts'
import type { OperationObject } from './operation.ts'
import { type EndpointEntry, ownSamples, sampleOf } from './samples.ts'

/** Groups by tag; the modules without one of their own read content. */
const groupNames: ReadonlyMap<string, string> = new Map([
  ['keys', 'Keys'],
  ['reporting', 'Reports'],
  ['signup', 'Signups'],
  ['service', 'Service'],
])

const isContent = (tag: string) => (MODULE_NAMES as readonly string[]).includes(tag)

/** Every operation, grouped, in the order of the document, without references. */
export function groupEndpoints(described: OpenApiDocument): ReadonlyMap<string, readonly EndpointEntry[]> {
  const { paths } = resolve(described, described)
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

export function endpoint(entry: EndpointEntry, settings: DocumentSettings): Markup {
  const { path, method, operation } = entry
  const { operationId: id, summary, description } = operation
  const line = markup`${methodBadge(method)} <code>${path}</code>`
  const sample = sampleOf(id, settings) ?? ownSamples(entry, settings)
  return markup`
    <section class="op split" id="${id}" aria-labelledby="${id}-title">
      <div class="text">
        <h3 id="${id}-title">${summary}</h3>
        <p class="line">${line}</p>
        <p>${prose(description)}</p>
        ${parameters(operation)}${body(operation)}
        ${responseFields(operation)}${problems(operation)}
      </div>
      <div class="code">
        ${codeBlock({ caption: line, what: summary, code: sample })}
        ${responseExample(operation)}
      </div>
    </section>
  `
}

function fieldList(title: string, kind: string, rows: readonly Markup[]): Markup | undefined {
  return rows.length === 0
    ? undefined
    : markup`<h4>${title}</h4><ul class="fields" data-kind="${kind}">${rows}</ul>`
}

function parameters({ parameters }: OperationObject): Markup | undefined {
  const own = (parameters as readonly ParameterObject[])
    .filter(({ name, in: place }) => place !== 'header' || name.startsWith('Idempotency'))
  const rows = own.map(({ name, in: place, required, description, schema }) => {
    const { items } = schema
    const notes = [place, ...(items ? ['repeatable'] : [])]
    return field(name, { ...schema, ...items, description }, notes, required ? 'required' : undefined)
  })
  return fieldList('Parameters', 'parameter', rows)
}

function body({ requestBody }: OperationObject): Markup | undefined {
  const schema = requestBody?.content['application/json']?.schema
  return schema && markup`
    <h4>Body</h4>
    <ul class="fields" data-kind="member">${members(schema, true)}</ul>
  `
}

function responseFields({ responses }: OperationObject): Markup | undefined {
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
  return markup`<details${
    isOpen ? markup` open` : undefined
  }><summary>${summary}</summary><ul>${rows}</ul></details>`
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
  return markup`
    <li><code>${name}</code> <small>${[typeOf(schema), ...notes].join(' · ')}</small>${
    need && markup` <small class="${need}">${need}</small>`
  }
    <p>${prose(schema.description ?? '')}${
    limits.length === 0
      ? undefined
      : markup` <small>${limits.map((one, index) => index === 0 ? one : [' · ', one])}</small>`
  }</p>
    ${rows.length === 0 ? undefined : nested(`${rows.length} ${kind}`, rows, name === 'data')}</li>
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

function responseExample({ summary, responses }: OperationObject): Markup | undefined {
  const [[status, success] = ['', {}]] = Object.entries(responses)
  const [[type, media] = ['', undefined]] = Object.entries((success as Partial<ResponseObject>).content ?? {})
  const example = media?.example
  return codeBlock({
    caption: 'Response',
    note: `${status} · ${type}`,
    what: `Response to ${summary}`,
    code: typeof example === 'string' ? example : JSON.stringify(example, null, 2),
    fixed: true,
  })
}

/** Problems that an endpoint does not share with all others, the rarest first. */
const particular: readonly ProblemCode[] = [
  'profile_not_found',
  'banner_not_found',
  'invalid_body',
  'idempotency_mismatch',
  'idempotency_conflict',
  'invalid_cursor',
  'scope_missing',
  'module_inactive',
]

function problems(operation: OperationObject): Markup {
  const possible = operation['x-problems']
  const own = particular.filter((code) => possible.includes(code))
  const others: readonly ProblemCode[] = own.includes('scope_missing')
    ? ['invalid_parameter']
    : ['key_invalid', 'key_revoked', 'partner_mismatch', 'partner_suspended', 'not_acceptable']
  const codes = [...own, ...others.filter((code) => possible.includes(code))].slice(0, 5)
  const rows = codes.map((code) =>
    markup`
      <li><a href="#${code}"><code>${code}</code></a> <small>${PROBLEMS[code].status}</small>
      <p>${PROBLEMS[code].detail} ${prose(PROBLEM_ACTIONS[code])}</p></li>
    `
  )
  return markup`
    <h4>Problems</h4>
    <ul class="fields">${rows}</ul>
    <p><a href="#problem-codes">Problems of every endpoint</a></p>
  `
}
