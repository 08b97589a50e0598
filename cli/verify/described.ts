/** Endpoints that this program does not know, as the OpenAPI document of a deployment describes them. */
import * as v from 'valibot'
import { isObject, parseJson } from '../../core/lib/json.ts'
import { pageSchema } from '../../core/schemas/responses.ts'
import { type DeploymentResponse, NotThisServiceError } from './deployment.ts'

/** What is applied of a schema: its parts, and the values of a part. A deployment may describe and return anything. */
const maxParts = 500
/** The most alternatives: each is compared. */
const maxOptions = 20
/** The most elements of arrays that are judged. */
const maxElements = 1_000

const media = v.object({ schema: v.object({ properties: v.object({ data: v.unknown() }) }) })
const operation = v.object({
  parameters: v.array(v.looseObject({ name: v.optional(v.string()) })),
  responses: v.object({ 200: v.object({ content: v.object({ 'application/json': media }) }) }),
})

/** The schema of the response to a GET, and whether it has pages; or why it can't be called. */
export async function describeGet(document: Promise<DeploymentResponse>, path: string) {
  const source = 'the OpenAPI document of the deployment'
  const response = await document.catch((error) => {
    if (error instanceof NotThisServiceError) return error.reason
    throw error
  })
  if (typeof response === 'string') return `${source} can't be read: ${response}`
  if (response.status !== 200) return `${source} was answered with ${response.status}`
  const described = v.object({ paths: v.object({ [path]: v.object({ get: operation }) }) })
  const { success, output } = v.safeParse(described, parseJson(response.text))
  if (!success) return `${source} does not describe it`
  const { parameters, responses: { 200: { content } } } = output.paths[path]!.get
  const own = parameters.filter((one) => one['in'] === 'query' && one.name !== 'partner')
  const required = own.find((one) => one['required'])
  if (required !== undefined) return `it needs the parameter ${required.name}`
  const data = toSchema(content['application/json'].schema.properties.data)
  const isPaged = own.some((one) => one.name === 'cursor')
  const bodySchema: v.GenericSchema = isPaged
    ? v.looseObject({ data: v.pipe(v.unknown(), v.array(v.unknown()), data), page: pageSchema })
    : v.looseObject({ data })
  return { isPaged, bodySchema }
}

/** The types, members and values of a JSON Schema. Patterns, formats and references are left out: any value passes. */
function toSchema(json: unknown, parts = { left: maxParts, elements: maxElements }): v.GenericSchema {
  if (!isObject(json) || --parts.left < 0) return v.unknown()
  const { type, enum: values, anyOf, oneOf, items, prefixItems: tuple, additionalProperties: rest } = json
  const nested = (one: unknown) => toSchema(one, parts)
  if (Array.isArray(values)) return values.length > maxParts ? v.unknown() : v.picklist(values)
  const options = anyOf ?? oneOf
  if (Array.isArray(options)) return options.length > maxOptions ? v.unknown() : v.union(options.map(nested))
  const takeFirst = (elements: unknown[]): unknown[] => {
    const taken = elements.slice(0, parts.elements)
    parts.elements -= taken.length
    return taken
  }
  const required: readonly unknown[] = Array.isArray(json['required']) ? json['required'] : []
  const entries = Object.fromEntries(
    Object.entries(isObject(json['properties']) ? json['properties'] : {})
      .map(([name, one]) => [name, required.includes(name) ? nested(one) : v.optional(nested(one))]),
  )
  const types = new Map<unknown, () => v.GenericSchema>([
    ['object', () => isObject(rest) ? v.objectWithRest(entries, nested(rest)) : v.looseObject(entries)],
    [
      'array',
      () => v.pipe(v.array(v.unknown()), v.transform(takeFirst), v.array(nested(tuple ? {} : items))),
    ],
    ['string', v.string],
    ['number', v.number],
    ['integer', () => v.pipe(v.number(), v.integer())],
    ['boolean', v.boolean],
    ['null', v.null],
  ])
  const known = [...new Set([type].flat())].map((one) => types.get(one)?.() ?? v.unknown())
  return known.length === 1 ? known[0]! : v.union(known)
}
