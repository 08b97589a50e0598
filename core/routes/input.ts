import { type JsonBody, type JsonObject, pointer } from '../http/body.ts'
import type { HttpRequest } from '../http/message.ts'
import { type InputError, Problem } from '../http/problem.ts'
import { KEY_IN_URL, type Query, valueError } from '../http/query.ts'
import { containsKey, redactKeys } from '../http/redact.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import type { Grant } from '../policy/decide.ts'
import type { InputDefs, InputValues } from '../schemas/inputs.ts'
import { readIdempotencyKey } from '../signups/idempotency.ts'
import { IDEMPOTENCY_HEADER } from '../model.ts'
import type { HandlerContext, HandlerInput, KeyedRoute, PathValues } from './route.ts'

/** A schema would check another number than the client sent. */
export const LOSSY_NUMBER = 'has more digits than a number keeps'

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
  ports: HandlerContext,
  client: () => string | undefined,
): MaybePromise<HandlerInput<InputDefs, InputDefs>> {
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
  errors.push(...route.checkParameters?.(query, grant.now) ?? [])
  if (errors.length > 0) throw new Problem('invalid_parameter', { errors })
  const input = { query, rawQuery, idempotencyKey, params, client, rawBody }
  if (route.body === undefined) return { ...input, body: {}, danglingReferences: [] }
  const body = readMembers(rawBody, route.body, errors)
  for (const place of lossyNumbers.map((path) => pointer(path.map((step) => redactKeys(String(step)))))) {
    const isReported = errors.some((error) => 'pointer' in error && error.pointer === place)
    if (!isReported) errors.push({ pointer: place, detail: LOSSY_NUMBER })
  }
  // References are reported with the errors of a body, and left to the handler of a valid one.
  return andThen(route.checkReferences?.(rawBody, grant, ports) ?? [], (danglingReferences) => {
    if (errors.length === 0) return { ...input, body, danglingReferences }
    throw new Problem('invalid_body', { errors: [...errors, ...danglingReferences] })
  })
}

/**
 * Reads the parameters that a route declares, and only those.
 *
 * @param errors Receives every failure: unknown, repeated, malformed or out of range.
 */
export function readParameters<P extends InputDefs>(
  query: Query,
  declared: P,
  allowsPartner: boolean,
  errors: InputError[],
): InputValues<P> {
  const input: Record<string, unknown> = {}
  for (const name of query.values.keys()) {
    if (!Object.hasOwn(declared, name) && !(name === 'partner' && allowsPartner)) {
      errors.push({ parameter: redactKeys(name), detail: 'is not a parameter of this endpoint' })
    }
  }
  for (const name in declared) {
    const { maxValues, parse, parseList, absent, isRequired } = declared[name]!
    const texts = query.values.get(name)
    const fail = (detail: string) => void errors.push({ parameter: name, detail })
    if (texts === undefined) {
      if (isRequired) fail('is required')
      else input[name] = absent?.(fail)
      continue
    }
    const error = valueError(query, name, texts, maxValues)
    if (error !== undefined) fail(error)
    else {
      const values = texts.map((text) => parse(text, fail))
      input[name] = maxValues === 1 ? values[0] : parseList ? parseList(values, fail) : values
    }
  }
  return input as InputValues<P>
}

/** @param errors Receives every failure, those of undeclared members first. */
export function readMembers<M extends InputDefs>(
  body: JsonObject,
  declared: M,
  errors: InputError[],
): InputValues<M> {
  const input: Record<string, unknown> = {}
  const failAt = (detail: string, ...path: readonly string[]) =>
    void errors.push({ pointer: pointer(path.map(redactKeys)), detail })
  for (const name of Object.keys(body)) {
    if (!Object.hasOwn(declared, name)) failAt('is not a member of this body', name)
  }
  for (const name in declared) {
    const { schema, isRequired, parse, absent } = declared[name]!
    const value = body[name]
    const fail = (detail: string, ...path: readonly string[]) => failAt(detail, name, ...path)
    if (value === undefined || value === null && !isRequired && schema.source === undefined) {
      if (isRequired) fail('is required')
      else input[name] = absent?.(fail)
    } else input[name] = parse(value, fail)
  }
  return input as InputValues<M>
}
