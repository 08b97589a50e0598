/** What handlers of the host's endpoints return: JSON, and whole. */
import type { HandlerResult, Page } from '../http/message.ts'
import { Problem } from '../http/problem.ts'
import { redactKeys } from '../http/redact.ts'

/** What a handler returns: the members of the response, or a problem. */
export type EndpointResult<Data = unknown> =
  | { readonly data: Data | Readonly<Data>; readonly page?: Page }
  | Problem

/** @throws {TypeError} for what cannot be sent. @throws {Problem} that the handler has returned. */
export function toResult(result: EndpointResult, name: string): HandlerResult {
  if (result instanceof Problem) throw result
  if (/undefined|function|symbol/.test(typeof result?.data)) {
    throw new TypeError(`The handler of ${name} returned no data.`)
  }
  const { data, page, ...others } = result
  const [other] = Object.keys(others)
  if (other !== undefined) {
    throw new TypeError(
      `The handler of ${name} returned the member ${redactKeys(other)}: a result has data and page alone.`,
    )
  }
  if (page !== undefined && !isPage(page)) {
    throw new TypeError(`The handler of ${name} returned a page that is not as input.page makes it.`)
  }
  const fault = findNotJson(data, '', 0)
  if (fault !== undefined) throw new TypeError(`The handler of ${name} returned ${fault}.`)
  return page === undefined ? { data } : { data, page }
}

function isPage(page: Page | null): boolean {
  const { limit, has_more: hasMore, next_cursor: cursor } = page ?? {}
  return typeof limit === 'number' && typeof hasMore === 'boolean' &&
    (cursor === null || typeof cursor === 'string')
}

/** How deep data may be nested: circular objects are deeper than any. */
const maxDepth = 1_000

/**
 * Looks for values that JSON leaves out, or writes as `null` or as an empty object.
 *
 * @param member The name of the value, empty for the data itself.
 */
function findNotJson(given: unknown, member: string, depth: number): string | undefined {
  if (typeof given === 'string' || typeof given === 'boolean' || given === undefined || given === null) {
    return undefined
  }
  const { toJSON } = given as { readonly toJSON?: unknown }
  const value: unknown = typeof toJSON === 'function' ? toJSON.call(given, member) : given
  const kind = kindOfNotJson(value)
  if (kind !== undefined) {
    const place = member === '' ? 'data' : `the member ${redactKeys(member)} of data`
    return `${kind} as ${place}, which JSON cannot carry`
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === maxDepth) return `data that is circular or more than ${maxDepth} levels deep`
  for (const name of Object.keys(value)) {
    const fault = findNotJson((value as Readonly<Record<string, unknown>>)[name], name, depth + 1)
    if (fault !== undefined) return fault
  }
  return undefined
}

function kindOfNotJson(value: unknown): string | undefined {
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') {
    return `a ${typeof value}`
  }
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : `the number ${value}`
  if (typeof value !== 'object' || value === null) return undefined
  if (typeof (value as { readonly then?: unknown }).then === 'function') return 'a promise'
  if (value instanceof Map || value instanceof Set) return `a ${value.constructor.name}`
  return undefined
}
