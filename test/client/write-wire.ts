/**
 * Writes the types of the wire for the client, from the document that is made of the route table.
 * `node test/client/write-wire.ts` writes them anew; a test compares.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import process from 'node:process'
import { createDocument } from '../../core/openapi/document.ts'
import { ROUTES } from '../../core/routes/table.ts'

/** The little of JSON Schema that the document uses. */
interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly default?: unknown
}

interface Parameter {
  readonly $ref?: string
  readonly name: string
  readonly description?: string
  readonly schema: Schema
}

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Which schemas stand in which file. */
const files: Readonly<Record<string, readonly string[]>> = {
  verification: ['Verification', 'Key'],
  content: ['ProfileCard', 'Profile', 'Page', 'Banner', 'Country', 'Industry', 'Plan', 'Money'],
  reporting: ['ReportSummary', 'Activity'],
  signup: ['SignupReceipt'],
  problem: ['Problem'],
}

/** The files as they are to be, by their paths. */
export function makeWire(): Readonly<Record<string, string>> {
  const document = createDocument(ROUTES) as unknown as Document
  const { schemas } = document.components
  const left = Object.keys(schemas).filter((name) =>
    name !== 'Health' && name !== 'CountryCode' && !Object.values(files).flat().includes(name)
  )
  if (left.length > 0) throw new Error(`${left} belong into a file.`)
  const parts: Record<string, readonly string[]> = { questions: questions(document) }
  for (const [file, names] of Object.entries(files)) {
    parts[file] = names.map((name) => declared(name, schemas[name]!))
  }
  const widget = dataOf(operation(document.paths, 'widget'))
  parts['content'] = [
    ...parts['content']!,
    declared('Widget', { ...widget, description: 'Enough to draw one.' }),
  ]
  return Object.fromEntries(
    Object.entries(parts).map(([file, part]) => [
      `adapters/client/wire/${file}.ts`,
      formatted([`/** Written from the route table by test/client/write-wire.ts. */`, ...part].join('\n\n')),
    ]),
  )
}

function questions({ paths }: Document): string[] {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => [`${method.toUpperCase()} ${path}`, one] as const)
  )
  return all.flatMap(([endpoint, one]) => {
    const name = one.operationId[0]!.toUpperCase() + one.operationId.slice(1)
    const own = (one.parameters ?? []).filter(({ $ref }) => $ref === undefined)
    const query: Schema = {
      type: 'object',
      description: `What \`${endpoint}\` may be asked.`,
      properties: Object.fromEntries(
        own.map(({ name, description, schema }) => [name, { ...schema, ...described(description, schema) }]),
      ),
    }
    const body = one.requestBody?.content['application/json']?.schema
    return [
      ...(own.length === 0 ? [] : [declared(`${name}Query`, query)]),
      ...(one.operationId !== 'signUp' || body === undefined ? [] : [declared('SignupForm', formOf(body))]),
    ]
  })
}

/** The partner is the client's. */
function formOf(body: Schema): Schema {
  const { partner: _, ...properties } = body.properties ?? {}
  return {
    ...body,
    properties,
    required: (body.required ?? []).filter((name) => name !== 'partner'),
    description: 'What somebody who signs up has filled in.',
  }
}

function operation(paths: Document['paths'], id: string): Operation {
  const found = Object.values(paths).flatMap((methods) => Object.values(methods))
    .find(({ operationId }) => operationId === id)
  if (found === undefined) throw new Error(`The document has no operation ${id}.`)
  return found
}

function dataOf({ responses }: Operation): Schema {
  return responses['200']!.content!['application/json']!.schema.properties!['data']!
}

function declared(name: string, schema: Schema): string {
  const text = typeOf(schema)
  const docs = comment(schema.description ?? '')
  return text.startsWith('{') && schema.oneOf === undefined && schema.anyOf === undefined
    ? `${docs}export interface ${name} ${text}`
    : `${docs}export type ${name} = ${text}`
}

function typeOf(schema: Schema): string {
  const { $ref, enum: values, const: only, oneOf, anyOf, type, items, properties } = schema
  // A union of 250 codes would help nobody.
  if ($ref?.endsWith('/CountryCode')) return 'string'
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf('/') + 1)
  if (only !== undefined) return JSON.stringify(only)
  const nullable = Array.isArray(type) && type.includes('null')
  if (values !== undefined) {
    return values.map((value) => value === null ? 'null' : `'${value}'`).join(' | ') +
      (nullable && !values.includes(null) ? ' | null' : '')
  }
  const either = oneOf ?? anyOf
  if (either !== undefined) return [...new Set(either.flatMap((one) => typeOf(one).split(' | ')))].join(' | ')
  const one = Array.isArray(type) ? type.find((name) => name !== 'null') : type
  const text = one === 'array'
    ? listOf(typeOf(items ?? {}))
    : one === 'object'
    ? properties === undefined ? recordOf(schema) : membersOf(schema)
    : one === 'integer' || one === 'number'
    ? 'number'
    : one ?? 'unknown'
  return nullable ? `${text} | null` : text
}

function listOf(type: string): string {
  return /^[\w.]+$/.test(type) ? `readonly ${type}[]` : `readonly (${type})[]`
}

function recordOf({ additionalProperties }: Schema): string {
  const values = typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown'
  return `Readonly<Record<string, ${values}>>`
}

function membersOf({ properties = {}, required = [] }: Schema): string {
  const members = Object.entries(properties).map(([name, schema]) => {
    const optional = !required.includes(name)
    const codes = [schema, ...schema.anyOf ?? []].some(({ $ref }) => $ref?.endsWith('/CountryCode'))
    const fallback = codes ? 'ISO 3166-1 alpha-2, or `XK`.' : `Its ${name.replaceAll('_', ' ')}.`
    return `${comment(schema.description ?? fallback)}readonly ${name}${optional ? '?' : ''}: ${
      typeOf(schema)
    }${optional ? ' | undefined' : ''}`
  })
  return `{\n${members.join('\n')}\n}`
}

function comment(text: string): string {
  return text === '' ? '' : `/** ${text.replaceAll('*/', '* /')} */\n`
}

/** A sentence, and what it is bound to. */
function described(description: string | undefined, schema: Schema): { description?: string } {
  if (description === undefined) return {}
  const { minimum, maximum, minLength, maxLength, maxItems, default: usual } = schema
  const bounds = [
    ...(minimum === undefined ? [] : [`${minimum}–${maximum}`]),
    ...(minLength === undefined ? [] : [`${minLength}–${maxLength} characters`]),
    ...(maxItems === undefined ? [] : [`up to ${maxItems}`]),
    ...(usual === undefined ? [] : [`default \`${usual}\``]),
  ]
  return { description: `${[description.replace(/\.$/, ''), ...bounds].join(', ')}.` }
}

function formatted(text: string): string {
  const { stdout, stderr, status } = spawnSync('deno', ['fmt', '--ext', 'ts', '-'], {
    cwd: root,
    input: `${text}\n`,
    encoding: 'utf8',
    env: { ...process.env, PATH: `${root}test/node_modules/.bin:${process.env['PATH']}` },
  })
  if (status !== 0) throw new Error(stderr)
  return stdout
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  mkdirSync(`${root}adapters/client/wire`, { recursive: true })
  for (const [file, text] of Object.entries(makeWire())) writeFileSync(root + file, text)
}
