import { PROBLEM_ACTIONS } from '../http/problem-actions.ts'
import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import type { OpenApiDocument } from './document.ts'
import { codeBlock, type Inset, type Markup, markup, prose, sampleOf } from './html.ts'
import type { JsonSchema } from '../schemas/inputs.ts'
import type {
  DocumentSettings,
  OperationObject,
  ParameterObject,
  Reference,
  ResponseObject,
} from './model.ts'

interface EndpointEntry {
  readonly path: string
  readonly method: string
  readonly operation: OperationObject
}

/** Groups by tag; the modules without one of their own read content. */
const groupNames: Readonly<Record<string, string>> = {
  keys: 'Keys',
  reporting: 'Reports',
  signup: 'Signups',
  service: 'Service',
}

/** Every operation, grouped, in the order of the document. */
export function groupEndpoints({ paths }: OpenApiDocument): ReadonlyMap<string, readonly EndpointEntry[]> {
  const entries = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation }))
  )
  return Map.groupBy(entries, ({ operation: { tags: [tag = ''] } }) => groupNames[tag] ?? 'Content')
}

export function methodBadge(method: string): Markup {
  return markup`<b class="method ${method.toLowerCase()}">${method}</b>`
}

export function endpoint(
  { path, method, operation }: EndpointEntry,
  described: OpenApiDocument,
  settings: DocumentSettings,
): Markup {
  const { operationId: id, summary, description } = operation
  const line = markup`${methodBadge(method)} <code>${path}</code>`
  const sample = sampleOf(id, settings)
  return markup`
    <section class="op split" id="${id}" aria-labelledby="${id}-title">
      <div class="text">
        <h3 id="${id}-title">${summary}</h3>
        <p class="line">${line}</p>
        <p>${prose(description)}</p>
        ${parameters(operation, described)}${body(operation, described)}
        ${responseFields(operation, described)}${problems(operation)}
      </div>
      <div class="code">
        ${sample && codeBlock({ caption: line, what: summary, code: sample })}
        ${responseExample(operation)}
      </div>
    </section>
  `
}

type Schemas = Readonly<Record<string, JsonSchema>>

function resolve<T>(value: T | Reference, among: Readonly<Record<string, T>>): T {
  const isReference = typeof value === 'object' && value !== null && '$ref' in value && value.$ref
  return isReference ? among[isReference.split('/').at(-1) ?? ''] as T : value as T
}

function parameters(operation: OperationObject, { components }: OpenApiDocument): Markup | undefined {
  const own = operation.parameters.map((one) => resolve<ParameterObject>(one, components.parameters))
    .filter(({ name, in: place }) => place !== 'header' || name.startsWith('Idempotency'))
  if (own.length === 0) return undefined
  const rows = own.map(({ name, in: place, required, description, schema }) => {
    const { items } = schema
    const about = { ...schema, ...items, description }
    const notes = [place, ...(items ? ['repeatable'] : [])]
    return field(name, about, components.schemas, notes, required ? 'required' : undefined)
  })
  return markup`<h4>Parameters</h4><ul class="fields" data-kind="parameter">${rows}</ul>`
}

function body({ requestBody }: OperationObject, { components }: OpenApiDocument): Markup | undefined {
  const schema = requestBody?.content['application/json']?.schema
  return schema && markup`
    <h4>Body</h4>
    <ul class="fields" data-kind="member">${members(schema, components.schemas, true)}</ul>
  `
}

function responseFields({ responses }: OperationObject, { components }: OpenApiDocument): Markup | undefined {
  const [success] = Object.values(responses) as readonly ResponseObject[]
  const [media] = Object.values(success?.content ?? {})
  const rows = media && members(media.schema, components.schemas)
  return rows && rows.length > 0
    ? markup`<h4>Response</h4><ul class="fields" data-kind="field">${rows}</ul>`
    : undefined
}

function alternativesOf({ anyOf, oneOf }: JsonSchema, among: Schemas): readonly JsonSchema[] {
  return (anyOf ?? oneOf ?? []).map((one) => resolve<JsonSchema>(one, among))
    .filter(({ properties }) => properties !== undefined)
}

/** The members of an object, of the rows of an array, or of each alternative. */
function members(schema: JsonSchema, among: Schemas, isRequest = false): readonly Markup[] {
  const { items, properties, required = [], ...resolved } = resolve<JsonSchema>(schema, among)
  if (items !== undefined) return members(items, among)
  const alternatives = alternativesOf(resolved, among)
  if (alternatives.length > 1) {
    return alternatives.map((one) => {
      const { type, status } = one.properties ?? {}
      const values = (type?.enum ?? status?.enum ?? []).map((value) => markup` <code>${String(value)}</code>`)
      const summary = markup`If <code>${type ? 'type' : 'status'}</code> is${values}`
      return markup`<li>${nested(summary, members(one, among))}</li>`
    })
  }
  if (alternatives[0] !== undefined) return members(alternatives[0], among)
  return Object.entries(properties ?? {}).map(([name, member]) => {
    const need = required.includes(name) === isRequest ? isRequest ? 'required' : 'optional' : undefined
    return field(name, member, among, [], need)
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
  among: Schemas,
  notes: readonly string[],
  need: 'required' | 'optional' | undefined,
): Markup {
  const resolved = resolve<JsonSchema>(schema, among)
  const rows = members(schema, among)
  const row = resolve<JsonSchema>(resolved.items ?? resolved, among)
  const kind = alternativesOf(row, among).length > 1 ? 'alternatives' : 'fields'
  const { enum: values = [] } = resolved.items ?? resolved
  const limits: Inset[] = [
    ...(values.length < 2 || values.length > 24 ? [] : [[
      'one of ',
      values.filter((one) => one !== null).map((one) => markup`<code>${String(one)}</code> `),
    ]]),
    ...values.length > 0 ? [] : boundsOf(resolved.items ?? resolved),
    ...(resolved.default === undefined ? [] : [markup`default <code>${String(resolved.default)}</code>`]),
  ]
  return markup`
    <li><code>${name}</code> <small>${[typeOf(schema, among), ...notes].join(' · ')}</small>${
    need && markup` <small class="${need}">${need}</small>`
  }
    <p>${prose(resolved.description ?? '')}${
    limits.length === 0
      ? undefined
      : markup` <small>${limits.map((one, index) => index === 0 ? one : [' · ', one])}</small>`
  }</p>
    ${rows.length === 0 ? undefined : nested(`${rows.length} ${kind}`, rows, name === 'data')}</li>
  `
}

function typeOf(schema: JsonSchema, among: Schemas): string {
  const { anyOf, oneOf, type, items, ...resolved } = resolve<JsonSchema>(schema, among)
  const options = type === undefined ? anyOf ?? oneOf : undefined
  if (options !== undefined) return [...new Set(options.map((one) => typeOf(one, among)))].join(' or ')
  if (resolved.enum?.length === 1) return JSON.stringify(resolved.enum[0])
  const types = [type ?? 'object'].flat().map((type) => {
    if (type === 'array' && items) return `array of ${typeOf(items, among)}s`
    return type === 'string' && resolved.format !== undefined ? resolved.format : type
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
    <p><a href="#problems">Problems of every endpoint</a></p>
  `
}
