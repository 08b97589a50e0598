import { type JsonBody, type JsonObject, pointer } from '../http/body.ts'
import type { HttpRequest } from '../http/message.ts'
import { type InputError, Problem } from '../http/problem.ts'
import { KEY_IN_URL, type Query, valueError } from '../http/query.ts'
import { containsKey, redactKeys } from '../http/redact.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import type { Grant } from '../policy/decide.ts'
import { MAX_VALUES } from '../schemas/input-schemas.ts'
import { checkValue, type Inputs, LOSSY_NUMBER, type Parameter } from '../schemas/check-input.ts'
import { readIdempotencyKey } from '../signups/idempotency.ts'
import { IDEMPOTENCY_HEADER } from '../http/headers.ts'
import type { HandlerContext, HandlerInput, KeyedRoute, PathValues } from './route.ts'

interface RawInput {
  readonly route: KeyedRoute
  readonly request: HttpRequest
  /** The path's parameters, still percent-encoded. */
  readonly params: PathValues
  readonly query: Query
  readonly body: JsonObject | undefined
  readonly lossyNumbers: JsonBody['lossyNumbers']
}

/**
 * Validates the parameters of a request and, if they are valid, its body (step 12).
 *
 * @throws {Problem} `invalid_parameter` or `invalid_body`, with every failure.
 */
export function readInput(
  { route, request, params: encodedParams, query: rawQuery, body: rawBody = {}, lossyNumbers }: RawInput,
  grant: Grant,
  context: HandlerContext,
  client: () => string | undefined,
): MaybePromise<HandlerInput> {
  const errors: InputError[] = []
  const params: Record<string, string> = {}
  for (const name in encodedParams) {
    params[name] = decodeURIComponent(encodedParams[name]!)
    if (containsKey(params[name])) errors.push({ parameter: name, detail: KEY_IN_URL })
  }
  const field = route.takesIdempotencyKey ? request.header(IDEMPOTENCY_HEADER.toLowerCase()) : undefined
  let idempotencyKey: string | undefined
  if (field !== undefined) {
    const read = readIdempotencyKey(field, request.isRepeated?.(IDEMPOTENCY_HEADER.toLowerCase()))
    if ('key' in read) idempotencyKey = read.key
    else errors.push({ parameter: IDEMPOTENCY_HEADER, detail: read.detail })
  }
  const query = readParameters(rawQuery, route.parameters, route.method === 'GET', errors)
  // The body of a request with a wrong parameter is not read.
  if (errors.length > 0 && route.body !== undefined) throw new Problem('invalid_parameter', { errors })
  const body = route.body === undefined ? {} : readMembers(rawBody, route.body, errors)
  for (const place of lossyNumbers.map((path) => pointer(path.map((step) => redactKeys(String(step)))))) {
    const isReported = errors.some((error) => 'pointer' in error && error.pointer === place)
    if (!isReported) errors.push({ pointer: place, detail: LOSSY_NUMBER })
  }
  const input = { query, rawQuery, idempotencyKey, params, client, body, rawBody }
  return andThen(route.check?.(input, errors, grant, context), (checked) => {
    if (errors.length === 0) return { ...input, checked }
    throw new Problem(route.body === undefined ? 'invalid_parameter' : 'invalid_body', { errors })
  })
}

/**
 * Reads the parameters that a route declares, and only those.
 *
 * @param errors Receives every failure: unknown, repeated, malformed or out of range.
 */
export function readParameters(
  query: Query,
  declared: Inputs<Parameter>,
  allowsPartner: boolean,
  errors: InputError[],
): Record<string, unknown> {
  const input: Record<string, unknown> = {}
  for (const name of query.values.keys()) {
    if (!Object.hasOwn(declared, name) && !(name === 'partner' && allowsPartner)) {
      errors.push({ parameter: redactKeys(name), detail: 'is not a parameter of this endpoint' })
    }
  }
  for (const name in declared) {
    const parameter = declared[name]!
    const { isList, isRequired, absent, valueOf } = parameter
    const texts = query.values.get(name)
    const fail = (detail: string) => void errors.push({ parameter: name, detail })
    if (texts === undefined) {
      if (isRequired) fail('is required')
      else input[name] = checkValue(parameter, absent, fail)
      continue
    }
    const error = valueError(query, name, texts, isList ? MAX_VALUES : 1)
    if (error !== undefined) {
      fail(error)
      continue
    }
    const values = texts.map(valueOf)
    const lossy = values.filter((value) => value === undefined)
    for (const _ of lossy) fail(LOSSY_NUMBER)
    if (lossy.length === 0) input[name] = checkValue(parameter, isList ? values : values[0], fail)
  }
  return input
}

/** @param errors Receives every failure, those of undeclared members first. */
export function readMembers(
  body: JsonObject,
  declared: Inputs,
  errors: InputError[],
): Record<string, unknown> {
  const input: Record<string, unknown> = {}
  const failAt = (detail: string, path: readonly string[]) =>
    void errors.push({ pointer: pointer(path.map(redactKeys)), detail })
  for (const name of Object.keys(body)) {
    if (!Object.hasOwn(declared, name)) failAt('is not a member of this body', [name])
  }
  for (const name in declared) {
    const member = declared[name]!
    const value = body[name]
    if (value === undefined && member.isRequired) failAt('is required', [name])
    else input[name] = checkValue(member, value, (detail, path) => failAt(detail, [name, ...path]))
  }
  return input
}
