import { type BodyDef, type JsonObject, validateBody } from '../http/body.ts'
import type { HttpRequest } from '../http/message.ts'
import { type InputError, Problem } from '../http/problem.ts'
import {
  KEY_IN_URL,
  type ParameterDefs,
  type ParameterValues,
  type Query,
  readParameters,
} from '../http/query.ts'
import { containsKey } from '../http/redact.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import type { Grant } from '../policy/decide.ts'
import { readIdempotencyKey } from '../signups/idempotency.ts'
import { IDEMPOTENCY_HEADER } from '../wire.ts'
import type { HandlerContext, HandlerInput } from './context.ts'
import type { KeyedRoute } from './route.ts'

interface RawInput {
  readonly route: KeyedRoute
  readonly request: HttpRequest
  /** The path's `:slug`, still percent-encoded. */
  readonly slug: string
  readonly query: Query
  readonly body: JsonObject | undefined
}

/**
 * Validates the parameters of a request and, if they are valid, its body (step 12).
 *
 * @throws {Problem} `invalid_parameter` or `invalid_body`, with every failure.
 */
export function readInput(
  { route, request, slug: encodedSlug, query: rawQuery, body: rawBody = {} }: RawInput,
  grant: Grant,
  ports: HandlerContext,
  client: () => string | undefined,
): MaybePromise<HandlerInput<ParameterDefs, unknown>> {
  const errors: InputError[] = []
  const slug = decodeURIComponent(encodedSlug)
  if (containsKey(slug)) {
    errors.push({ parameter: 'slug', detail: KEY_IN_URL })
  }
  const field = route.takesIdempotencyKey ? request.header(IDEMPOTENCY_HEADER.toLowerCase()) : undefined
  let idempotencyKey: string | undefined
  if (field !== undefined) {
    const read = readIdempotencyKey(field, request.isRepeated?.(IDEMPOTENCY_HEADER.toLowerCase()))
    if ('key' in read) idempotencyKey = read.key
    else errors.push({ parameter: IDEMPOTENCY_HEADER, detail: read.detail })
  }
  const partnerIn = route.method === 'GET' ? 'query' : 'body'
  const check = (values: ParameterValues<ParameterDefs>) => route.checkParameters?.(values, grant.now) ?? []
  const query = readParameters(rawQuery, route.parameters, partnerIn, errors, check)
  const input = { query, idempotencyKey, slug, client }
  if (route.body === undefined) return { ...input, body: undefined, rawBody, danglingReferences: [] }
  return andThen(
    validateRawBody(route.body, route.checkReferences?.(rawBody, grant, ports) ?? [], rawBody),
    (body) => ({ ...input, ...body, rawBody }),
  )
}

/** References are reported with the errors of a body, and left to the handler of a valid one. */
function validateRawBody(
  body: BodyDef<unknown>,
  references: MaybePromise<readonly InputError[]>,
  rawBody: JsonObject,
): MaybePromise<Pick<HandlerInput<ParameterDefs, unknown>, 'body' | 'danglingReferences'>> {
  const errors = validateBody(rawBody, body)
  return andThen(references, (danglingReferences) => {
    if (errors.length === 0) return { body: body.toValue(rawBody), danglingReferences }
    throw new Problem('invalid_body', { errors: [...errors, ...danglingReferences] })
  })
}
