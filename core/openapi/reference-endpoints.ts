/** The endpoints on the reference page. */
import { PROBLEMS } from '../http/problem.ts'
import type { OpenApiDocument } from './document.ts'
import {
  boundsOf,
  codeBlock,
  curl,
  type Inset,
  type Markup,
  markup,
  prettyJson,
  prose,
  table,
  typeOf,
} from './html.ts'
import type {
  DocumentSettings,
  JsonSchema,
  OperationObject,
  ParameterObject,
  Reference,
  ResponseObject,
} from './model.ts'

/** Lets long member names wrap after a dot. */
const BREAK: Markup = markup`.<wbr>`
const REQUIRED: Markup = markup`<span class="need">required</span>`

interface EndpointEntry {
  readonly path: string
  readonly method: string
  readonly operation: OperationObject
}

/** Every operation, in the order of the document. */
export function entriesOf({ paths }: OpenApiDocument): readonly EndpointEntry[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation }))
  )
}

/** All endpoints, grouped by tag. */
export function endpointGroups(described: OpenApiDocument, settings: DocumentSettings): readonly Markup[] {
  const entries = entriesOf(described)
  return described.tags.map(({ name, description }) => {
    const tagged = entries.filter(({ operation }) => operation.tags[0] === name)
    return markup`
      <div class="group">
      <p class="eyebrow"><strong>${name}</strong> · ${description}</p>
      ${tagged.map((entry) => endpoint(entry, described, settings))}</div>
    `
  })
}

function endpoint(place: EndpointEntry, described: OpenApiDocument, settings: DocumentSettings): Markup {
  const { path, method, operation } = place
  const { operationId: id, summary, description } = operation
  return markup`
    <section class="op" id="${id}" aria-labelledby="${id}-title">
    <h3 id="${id}-title">${summary}</h3>
    <p class="line"><span class="method ${method.toLowerCase()}">${method}</span> <code>${path}</code></p>
    <p>${prose(description)}</p>
    ${parameters(operation, described)}${body(operation)}
    <h4>Request</h4>
    ${codeBlock(`${id}-curl`, 'Shell', `the command for ${summary}`, request(place, described, settings))}
    ${response(operation, described)}${problems(operation)}</section>
  `
}

function resolve<T>(value: T | Reference, among: Readonly<Record<string, T>>): T {
  const name = typeof value === 'object' && value !== null && '$ref' in value
    ? value.$ref.split('/').at(-1)
    : undefined
  return name === undefined ? value as T : among[name] as T
}

function parametersOf(
  operation: OperationObject,
  { components }: OpenApiDocument,
): readonly ParameterObject[] {
  return operation.parameters.map((one) => resolve(one, components.parameters))
}

function parameters(operation: OperationObject, described: OpenApiDocument): Markup | undefined {
  const own = parametersOf(operation, described).filter(({ name, in: place }) =>
    place !== 'header' || name.startsWith('Idempotency')
  )
  if (own.length === 0) return undefined
  const rows = own.map(({ name, in: place, required, description, schema }) => ({
    name: markup`<code>${name}</code><small>${place}${required ? [' · ', REQUIRED] : undefined}</small>`,
    about: meaning(description, schema, true),
  }))
  return markup`<h4>Parameters</h4>
${table(`Parameters of ${operation.summary}`, ['Name', 'Meaning'], rows)}`
}

/** A description, and the type and range of the value. @param repeats Whether a list is a repeatable parameter. */
function meaning(description: string | undefined, schema: JsonSchema, repeats = false): Markup {
  const one = schema.items ?? schema
  const parts: Inset[] = [
    repeats && schema.items !== undefined ? `${typeOf(one)}, repeatable` : typeOf(schema),
    ...(one.enum === undefined ? [] : [markup`one of ${codeList(one.enum)}`]),
    ...boundsOf(one),
    ...(schema.items === undefined ? [] : boundsOf(schema)),
    ...(schema.default === undefined ? [] : [markup`default <code>${String(schema.default)}</code>`]),
  ]
  const limits = parts.map((part, index) => index === 0 ? part : [' · ', part])
  return markup`${prose(description ?? '')}<small>${limits}</small>`
}

function codeList(values: readonly unknown[]): readonly Inset[] {
  return values.filter((value) => value !== null).map((value, index) =>
    markup`${index === 0 ? '' : ', '}<code>${String(value)}</code>`
  )
}

function body({ requestBody, summary }: OperationObject): Markup | undefined {
  const schema = requestBody?.content['application/json']?.schema
  if (schema === undefined) return undefined
  const required = new Set(schema.required)
  const rows = Object.entries(schema.properties ?? {}).map(([name, member]) => ({
    name: markup`<code>${name}</code>${required.has(name) ? markup`<small>${REQUIRED}</small>` : undefined}`,
    about: meaning(member.description, member),
  }))
  return markup`<h4>Body</h4>
${table(`Body of ${summary}`, ['Member', 'Meaning'], rows)}`
}

function request(
  { path, method, operation }: EndpointEntry,
  described: OpenApiDocument,
  { names }: DocumentSettings,
): readonly Inset[] {
  const all = parametersOf(operation, described)
  const query = all
    .filter(({ in: place, required, name }) => place === 'query' && (required || exampleParameters.has(name)))
    .map(({ name, example }) => `${name}=${encodeURIComponent(String([example].flat()[0]))}`)
  const exampleOf = (_: string, name: string) => String(all.find((one) => one.name === name)?.example)
  const target = path.replace(/\{(\w+)\}/g, exampleOf)
  const media = operation.requestBody?.content['application/json']
  return curl({
    keyHeader: operation.security.length === 0 ? undefined : names.keyHeader,
    method,
    target: query.length === 0 ? target : `${target}?${query.join('&')}`,
    headers: all.some(({ name }) => name === 'Idempotency-Key')
      ? ['Idempotency-Key: signup-$(date +%s)']
      : [],
    ...(media !== undefined && { body: media.example }),
  })
}

/** Optional parameters that make an example more useful. */
const exampleParameters = new Set(['q', 'limit', 'in_use'])

function response(
  { operationId, summary, responses }: OperationObject,
  { components }: OpenApiDocument,
): Markup {
  const [[status, success] = ['', {}]] = Object.entries(responses)
  const { content = {} } = success as Partial<ResponseObject>
  const [[type, media] = ['', undefined]] = Object.entries(content)
  const example = media?.example
  const shown = typeof example === 'string' ? example : prettyJson(example)
  const rows = media === undefined ? [] : membersOf(media.schema, components.schemas)
  const what = `a response to ${summary}`
  const members = rows.length === 0 ? undefined : markup`
    <details><summary>Members of the response<span class="unseen"> to ${summary}</span></summary>
    ${table(`Members of ${what}`, ['Member', 'Meaning'], rows)}</details>
  `
  return markup`<h4>Response</h4>
${codeBlock(`${operationId}-answer`, `${status} · ${type}`, what, shown)}
${members}`
}

function membersOf(
  schema: JsonSchema,
  among: Readonly<Record<string, JsonSchema>>,
  prefix = '',
): { readonly name: Inset; readonly about: Inset }[] {
  const resolved = resolve(schema, among)
  if (resolved.items !== undefined) return membersOf(resolved.items, among, `${prefix}[]`)
  const option = resolved.anyOf?.[0] ?? resolved.oneOf?.[0]
  if (option !== undefined) return membersOf(option, among, prefix)
  return Object.entries(resolved.properties ?? {}).flatMap(([name, member]) => {
    const place = prefix === '' ? name : `${prefix}.${name}`
    const inner = membersOf(member, among, place)
    const { description } = resolve(member, among)
    const row = {
      name: markup`<code>${place.split('.').map((part, index) => index === 0 ? part : [BREAK, part])}</code>`,
      about: meaning(description, member),
    }
    return description === undefined && inner.length > 0 ? inner : [row, ...inner]
  })
}

function problems(operation: OperationObject): Markup {
  const codes = operation['x-problems'].map((code) =>
    markup`
      <li><a href="#${code}"><b>${PROBLEMS[code].status}</b> ${code}</a></li>
    `
  )
  return markup`
    <details><summary>Problems<span class="unseen"> of ${operation.summary}</span> (${codes.length})</summary>
    <ul class="codes">
    ${codes}</ul></details>
  `
}
