/** Requests that the OpenAPI document calls valid are accepted, but for what no schema can say. */
import fc from 'fast-check'
import t from 'tap'
import { createDocument } from '../../core/openapi/document.ts'
import type { ParameterObject } from '../../core/openapi/model.ts'
import { ROUTES } from '../../core/routes/router.ts'
import type { JsonSchema } from '../../core/schemas/json-schema.ts'
import { resolveSettings } from '../../core/settings.ts'
import { anyText } from '../support/any-text.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { resolve as resolveIn, validatorFor } from '../support/openapi-schemas.ts'
import { type PartnerService, serveStore } from '../support/partner-service.ts'

const described = await createDocument(ROUTES, resolveSettings({}))
const validate = validatorFor(described)

/** What a schema cannot say: which slugs exist, which cursor was given out, and which days make a period. */
const semantic: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  partner: fc.constant('demo'),
  plan: fc.constantFrom('starter', null),
  profile: fc.constantFrom('bare', null),
  cursor: fc.constant(undefined),
  from: fc.constant('2026-01-01'),
  to: fc.constant('2026-02-28'),
}

const resolve = <T>(value: T | { readonly $ref: string }): T => resolveIn(value, described)

/** Text of characters that Unicode assigns, controls included: patterns without `\\p` cannot tell the others. */
function assigned(constraints: fc.StringConstraints): fc.Arbitrary<string> {
  const unit = anyText({ minLength: 1, maxLength: 1 }).filter((one) => !/[\p{Cn}\p{Co}]/u.test(one))
  return fc.string({ ...constraints, unit })
}

/** Values that the schema admits: most are short, and of any characters. */
function valuesOf(schema: JsonSchema): fc.Arbitrary<unknown> {
  return drawFrom(schema).filter((value) => validate(schema, value).length === 0)
}

function drawFrom(schema: JsonSchema): fc.Arbitrary<unknown> {
  const { $ref, anyOf, type, properties, items, enum: words, pattern, format, examples } = schema
  const { minimum, maximum, minLength = 0, maxLength = 100, maxItems = 20, maxProperties = 20 } =
    schema as Record<string, number>
  if ($ref !== undefined) return drawFrom(resolve<JsonSchema>({ $ref }))
  if (words !== undefined) return fc.constantFrom(...words as unknown[])
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (anyOf !== undefined) return fc.oneof(...anyOf.map(drawFrom))
  const types = [type].flat()
  if (types.includes('null') && types.length > 1) {
    return fc.option(drawFrom({ ...schema, type: types.find((one) => one !== 'null') } as JsonSchema))
  }
  if (type === 'null') return fc.constant(null)
  if (type === 'integer') return fc.integer({ min: minimum!, max: maximum! })
  if (type === 'boolean') return fc.boolean()
  if (type === 'array') return fc.array(valuesOf(items!), { maxLength: Math.min(3, maxItems) })
  if (properties !== undefined) return bodyOf(schema)
  if (type === 'object') {
    const { propertyNames, additionalProperties } = schema as Record<string, JsonSchema>
    return fc.dictionary(
      valuesOf(propertyNames!) as fc.Arbitrary<string>,
      valuesOf(additionalProperties!),
      { maxKeys: Math.min(3, maxProperties) },
    )
  }
  const length = { minLength, maxLength: Math.min(minLength + 6, maxLength) }
  return fc.oneof(
    assigned(length),
    assigned(length),
    fc.string(length),
    assigned({ minLength, maxLength }),
    fc.constantFrom(...(examples ?? ['']) as unknown[]),
    ...(typeof pattern === 'string' ? [fc.stringMatching(new RegExp(pattern), { maxLength })] : []),
    ...(format === 'email' ? [fc.emailAddress()] : []),
    ...(format === 'date-time' ? [fc.date({ noInvalidDate: true }).map((date) => date.toISOString())] : []),
  )
}

function bodyOf({ properties = {}, required = [] }: JsonSchema): fc.Arbitrary<object> {
  const members = Object.entries(properties).map(([name, one]) => [name, semantic[name] ?? valuesOf(one)])
  return fc.record(Object.fromEntries(members), { requiredKeys: required as never[] }) as fc.Arbitrary<object>
}

function requestTo(path: string, method: 'get' | 'post') {
  const { parameters, requestBody } = described.paths[path]![method]!
  const all = parameters.map((one) => resolve<ParameterObject>(one))
  const valuesIn = (place: string) => {
    const named = all.filter((one) => one.in === place && one.name !== 'If-None-Match')
    const values = named.map(({ name, schema }) => [name, semantic[name] ?? valuesOf(schema)])
    const requiredKeys = named.filter(({ required }) => required).map(({ name }) => name)
    return fc.record(Object.fromEntries(values), { requiredKeys }) as fc.Arbitrary<Record<string, unknown>>
  }
  const body = requestBody?.content['application/json']?.schema
  return fc.record({
    path: fc.constant(path.replace('/service', '')),
    method: fc.constant(method),
    query: valuesIn('query'),
    slug: valuesIn('path'),
    headers: valuesIn('header') as fc.Arbitrary<Record<string, string>>,
    body: body === undefined ? fc.constant(undefined) : bodyOf(body),
  })
}

type AnyRequest = ReturnType<typeof requestTo> extends fc.Arbitrary<infer R> ? R : never

async function send(service: PartnerService, { path, method, query, slug, headers, body }: AnyRequest) {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, String(one)])
  )
  const target = `${path.replace('{slug}', String(slug['slug']))}?${new URLSearchParams(pairs)}`
  return method === 'get'
    ? await service.request(target, { headers })
    : await service.post(target.slice(0, -1), body, { headers })
}

t.test('fewer than 0.5 % of the requests that the document calls valid are refused', async (t) => {
  const service = await serveStore(await openMemoryStore())
  t.teardown(() => service.api.close())
  const refused: string[] = []
  let sent = 0
  for (const [path, methods] of Object.entries(described.paths)) {
    for (const method of Object.keys(methods) as ('get' | 'post')[]) {
      if (methods[method]!.security.length === 0) continue
      for (const request of fc.sample(requestTo(path, method), { numRuns: 300, seed: 7 })) {
        const { json, text } = await send(service, request)
        sent++
        if ('errors' in (json ?? {})) refused.push(`${JSON.stringify(request)}: ${text}`)
      }
    }
  }
  t.ok(refused.length / sent < 0.005, `${refused.length} of ${sent}: ${refused.slice(0, 5).join('\n')}`)
})
