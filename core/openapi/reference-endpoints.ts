import { type ProblemCode, PROBLEMS } from '../http/problem.ts'
import { MODULE_NAMES } from '../model.ts'
import type { Problem } from '../wire.ts'
import type { OpenApiDocument } from './document.ts'
import type { JsonSchema } from '../schemas/json-schema.ts'
import type { EventGroup } from './events.ts'
import type { DocumentSettings, ExampleObject, ParameterObject, ResponseObject } from './model.ts'
import type { OperationObject } from './operation.ts'
import type {
  Block,
  DescribedField,
  FieldList,
  FieldRow,
  Inline,
  OperationLine,
  Responses,
  Section,
} from './reference-model.ts'
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
    ({ operation: { tags: [tag = ''] } }) => groupNameOf(tag),
  )
}

function groupNameOf(tag: string): string {
  const name = isContent(tag) ? 'Content' : tag.charAt(0).toUpperCase() + tag.slice(1)
  return groupNames.get(tag) ?? name
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

/** The section of an endpoint. */
export function describeEndpoint(entry: EndpointEntry, settings: DocumentSettings): Section {
  const { path, method, operation } = entry
  const { operationId: id, summary, description } = operation
  const line: OperationLine = { kind: 'operation', method, path }
  const code = sampleOf(id, settings) ?? ownSamples(entry, settings)
  const lists = [
    fieldList('Parameters', 'parameter', parameterRows(operation)),
    fieldList('Body', 'member', bodyRows(operation)),
    fieldList('Response', 'field', responseRows(operation)),
  ]
  const blocks: Block[] = [
    line,
    { kind: 'prose', lines: [description] },
    { kind: 'code', caption: line, label: summary, code, isCopied: true },
    responsesOf(entry),
    ...lists.filter(({ rows }) => rows.length > 0),
  ]
  return { id, level: 3, title: summary, blocks }
}

function fieldList(title: string, of: FieldList['of'], rows: readonly FieldRow[]): FieldList {
  return { kind: 'fields', title, of, rows }
}

function parameterRows({ parameters }: OperationObject): readonly FieldRow[] {
  const own = (parameters as readonly ParameterObject[])
    .filter(({ name, in: place }) => place !== 'header' || name.startsWith('Idempotency'))
  return own.map(({ name, in: place, required, description, schema }) => {
    const { items } = schema
    const notes = items ? [place, 'repeatable'] : [place]
    return field(name, { ...schema, ...items, description }, notes, required ? 'required' : undefined)
  })
}

function bodyRows({ requestBody }: OperationObject): readonly FieldRow[] {
  const schema = requestBody?.content['application/json']?.schema
  return schema ? members(schema, true) : []
}

function responseRows({ responses }: OperationObject): readonly FieldRow[] {
  const [success] = Object.values(responses) as readonly ResponseObject[]
  const [media] = Object.values(success?.content ?? {})
  return media ? members(media.schema) : []
}

function alternativesOf({ anyOf, oneOf }: JsonSchema): readonly JsonSchema[] {
  return (anyOf ?? oneOf ?? []).filter(({ properties }) => properties !== undefined)
}

/** The members of an object, of the rows of an array, or of each alternative. */
function members(schema: JsonSchema, isRequest = false): readonly FieldRow[] {
  const { items, properties, required = [] } = schema
  if (items !== undefined) return members(items)
  const alternatives = alternativesOf(schema)
  if (alternatives.length > 1) {
    return alternatives.map((one) => {
      const { type, status } = one.properties ?? {}
      const values = type?.enum ?? status?.enum ?? []
      return { member: type ? 'type' : 'status', values: values.map(String), members: members(one) }
    })
  }
  if (alternatives[0] !== undefined) return members(alternatives[0])
  return Object.entries(properties ?? {}).map(([name, member]) => {
    const isRequired = required.includes(name)
    // What is usual is not said.
    const unusual = isRequest ? 'required' : 'optional'
    return field(name, member, [], isRequired === isRequest ? unusual : undefined)
  })
}

function field(
  name: string,
  schema: JsonSchema,
  notes: readonly string[],
  need: DescribedField['need'],
): DescribedField {
  return {
    name,
    about: [typeOf(schema), ...notes].join(' · '),
    need,
    text: schema.description ?? '',
    limits: limitsOf(schema.items ?? schema, schema.default),
    members: members(schema),
  }
}

/** The values, the bounds and the default of a field. */
function limitsOf(schema: JsonSchema, fallback: unknown): readonly (readonly Inline[])[] {
  const { enum: values = [] } = schema
  const limits: (readonly Inline[])[] = []
  if (values.length >= 2 && values.length <= 24) {
    const named = values.filter((one) => one !== null).map((one) => ({ code: String(one) }))
    limits.push(['one of', ...named.flatMap((one) => [' ', one])])
  }
  if (values.length === 0) limits.push(...boundsOf(schema).map((bound) => [bound]))
  if (fallback !== undefined) limits.push(['default ', { code: String(fallback) }])
  return limits
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

/** The success, and every problem by status. */
function responsesOf({ path, operation }: EndpointEntry): Responses {
  const { operationId: id, summary, parameters, responses, security, 'x-problems': possible } = operation
  const [[status, { content = {} }] = ['', {}]] = Object.entries(responses) as [string, ResponseObject][]
  const [[mediaType, { example }] = ['', { example: '' }]] = Object.entries(content)
  const examples = new Map((parameters as readonly ParameterObject[]).map((one) => [one.name, one.example]))
  const instance = path.replace(/\{(\w+)\}/g, (_, name) => String(examples.get(name)))
  // What needs no key is shorter: without the problems of every endpoint.
  const hidden = security.length > 0 ? [] : [400, 500, ...rare]
  const shown = possible.filter((code) => !hidden.includes(PROBLEMS[code].status))
  const codes = new Set([...likely.filter((one) => shown.includes(one)), ...shown])
  const byStatus = Map.groupBy(codes, (code) => {
    const { status } = PROBLEMS[code]
    return rare.includes(status) ? 'Other' : String(status)
  })
  const bodyOf = (code: ProblemCode): Problem => {
    const response = responses[PROBLEMS[code].status] as ResponseObject
    const { value } = response.content!['application/problem+json']!.examples![code] as ExampleObject
    return { ...value as Problem, instance }
  }
  const problems = [...byStatus].sort(([a], [b]) => a < b ? -1 : 1)
  return {
    kind: 'responses',
    id,
    title: summary,
    mediaType,
    success: { status, body: typeof example === 'string' ? example : JSON.stringify(example, null, 2) },
    problems: problems.map(([status, codes]) => ({ status, bodies: codes.map(bodyOf) })),
  }
}

/** The section of the events with the same members, which webhooks send. */
export function describeEventGroup({ name, title, events, data }: EventGroup): Section {
  const types = events.map(({ type, text }): DescribedField => ({
    id: type,
    name: type,
    about: '',
    text,
    limits: [],
    members: [],
  }))
  const { type, example } = events[0]!
  return {
    id: `event-${name}`,
    level: 3,
    title,
    blocks: [
      {
        kind: 'code',
        caption: type,
        note: 'application/json',
        label: type,
        code: JSON.stringify(example, null, 2),
        isCopied: true,
      },
      { kind: 'fields', of: 'event', rows: types },
      fieldList('Members of data', 'member', members(data)),
    ],
  }
}
