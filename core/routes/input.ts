import { after } from '../after.ts'
import { type JsonObject, judgeBody } from '../http/body.ts'
import type { Exchange } from '../http/exchange.ts'
import { type Parameters, readParameters } from '../http/parameters.ts'
import { type InputError, Problem } from '../http/problem.ts'
import type { Query } from '../http/query.ts'
import { holdsKey } from '../keys/format.ts'
import type { Grant } from '../policy/decide.ts'
import type { MaybePromise } from '../ports.ts'
import { IDEMPOTENCY_FIELD, readIdempotencyKey } from '../signups/idempotency-key.ts'
import type { HandlerPorts, Input, KeyedRoute } from './route.ts'

/** What a request says, not yet judged. */
export interface Said {
  readonly exchange: Exchange
  /** The path's `:slug`, still percent-encoded. */
  readonly slug: string
  readonly query: Query
  readonly body: JsonObject | undefined
  client(): string | undefined
}

/**
 * Judges what a request says (step 12): its parameters first, its body when they are right.
 *
 * @throws {Problem} `invalid_parameter` or `invalid_body`, with every failure.
 */
export function readInput(
  route: KeyedRoute,
  said: Said,
  grant: Grant,
  ports: HandlerPorts,
): MaybePromise<Input<Parameters, unknown>> {
  const errors: InputError[] = []
  const slug = decodeURIComponent(said.slug)
  if (holdsKey(slug)) {
    errors.push({ parameter: 'slug', detail: 'has the shape of a key, which never belongs into a URL' })
  }
  const field = route.takesIdempotencyKey ? said.exchange.header(IDEMPOTENCY_FIELD.toLowerCase()) : undefined
  let idempotencyKey: string | undefined
  if (field !== undefined) {
    const read = readIdempotencyKey(field, said.exchange.isRepeated?.(IDEMPOTENCY_FIELD.toLowerCase()))
    if ('key' in read) idempotencyKey = read.key
    else errors.push({ parameter: IDEMPOTENCY_FIELD, detail: read.detail })
  }
  const partnerIn = route.method === 'GET' ? 'query' : 'body'
  const query = readParameters(said.query, route.parameters, partnerIn, errors)
  const sent = said.body ?? {}
  return after(judgeSent(route, sent, grant, ports), (body) => ({
    query,
    body,
    sent,
    idempotencyKey,
    slug,
    client: said.client,
  }))
}

function judgeSent(
  route: KeyedRoute,
  sent: JsonObject,
  grant: Grant,
  ports: HandlerPorts,
): MaybePromise<unknown> {
  if (route.body === undefined) return undefined
  const { value, errors } = judgeBody(sent, route.body)
  const more: MaybePromise<readonly InputError[]> = route.refuseReferences?.(sent, grant, ports) ?? []
  return after(more, (missing) => {
    if (errors.length + missing.length === 0) return value
    throw new Problem('invalid_body', { errors: [...errors, ...missing] })
  })
}
