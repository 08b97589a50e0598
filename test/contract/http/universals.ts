/** Section 1: requirements on every response. */
import { safeParse } from 'valibot'
import type { Endpoint } from '../../../core/routes/route.ts'
import { RESPONSE_SCHEMAS } from '../../../core/schemas/responses.ts'
import { type TestResponse, VERSION } from './service.ts'

const keyShape = /[a-z0-9]_(?:live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}/
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const documents =
  /^(?:\/[\w.~-]+)*?\/(?:[a-z0-9-]+\/(?:openapi\.json|docs(?:\/\w+)?(?:\.md)?)|\.well-known\/api-catalog)$/
const jsonType = 'application/json; charset=utf-8'

/** Violated requirements of section 1. */
export function conventionViolations(
  { status, headers, repeated, text, json }: TestResponse,
  versionField: string,
  target = '/',
): string[] {
  const found: string[] = []
  const want = (holds: boolean, sentence: string): void => void (holds || found.push(sentence))
  const requestId = headers.get('x-request-id') ?? ''

  want(/^req_[0-9A-Za-z]+$/.test(requestId), 'X-Request-Id: req_…')
  want(headers.get('x-content-type-options') === 'nosniff', 'X-Content-Type-Options: nosniff')
  want(headers.get(versionField.toLowerCase()) === VERSION, `${versionField} echoes the version`)
  for (const banner of ['server', 'x-powered-by', 'via']) want(!headers.has(banner), `no ${banner}`)
  want(![...headers.keys()].some((name) => name.startsWith('access-control-')), 'no Access-Control-*')
  want(repeated.length === 0, `no repeated field: ${repeated}`)
  // The one place of a key is the member of a new one.
  const isPage = /\/claim\/\w+$/.test(target) && headers.get('content-type') === 'text/html; charset=utf-8'
  const [, onPage] = isPage ? /<pre id="key"[^>]*>([^<]+)/.exec(text) ?? [] : []
  const newKey: unknown = onPage ?? json?.data?.key
  const shown = status === 201 && typeof newKey === 'string' ? text.replaceAll(newKey, '') : text
  const everything = [...headers].flat().join('\n') + '\n' + shown
  want(!keyShape.test(everything) && !keyShape.test(decoded(everything)), 'no text in the format of a key')
  want(!/\bat (?:\S+ \()?(?:file:|node:|\/)/.test(text), 'no stack trace')

  if (status >= 400) {
    want(headers.get('cache-control') === 'no-store', 'errors are no-store')
    want(headers.get('referrer-policy') === 'no-referrer', 'errors have Referrer-Policy: no-referrer')
    const isProblem = headers.get('content-type') === 'application/problem+json'
    want(isProblem || isPage, 'errors are application/problem+json')
    if (json !== undefined) {
      want(json.status === status, 'the problem has the status')
      want(json.request_id === requestId, 'the problem has the request id')
    }
  }
  if (status === 204 || status === 304) want(text === '', 'no body')
  // Documents of the contract have their own media types and bodies.
  if (isPage || status === 200 && documents.test(target)) return found
  if (status === 200) want(headers.get('content-type') === jsonType, jsonType)
  if (text !== '') want(json !== undefined, 'the body is JSON')
  if (json !== undefined) {
    found.push(...shapeViolations(json, ''))
    if (status === 200) want(sameMembers(json, ['data']) || sameMembers(json, ['data', 'page']), 'data, page')
  }
  return found
}

/** Violations of the route's response schema. */
export function schemaViolations(
  target: string,
  { json, text }: TestResponse,
  method: string,
  routes: readonly Endpoint[],
): string[] {
  const path = target.split('?')[0] ?? ''
  const candidates = routes.filter((route) => route.method === method && covers(route.path, path))
  // `recent` is also covered by `{slug}`: the route without a parameter counts.
  const route = candidates.find((candidate) => candidate.path === path) ?? candidates[0]
  if (route === undefined) return [`no route covers ${path}`]
  // One of the host's own has none.
  if (!Object.hasOwn(RESPONSE_SCHEMAS, route.name)) return []
  const schema = RESPONSE_SCHEMAS[route.name as keyof typeof RESPONSE_SCHEMAS]
  const result = safeParse(schema, json ?? text)
  return result.issues?.map(({ message, path }) => `${path?.map(({ key }) => key).join('.')}: ${message}`) ??
    []
}

function covers(pattern: string, path: string): boolean {
  const wanted = pattern.split('/')
  const given = path.split('/')
  return wanted.length === given.length &&
    wanted.every((segment, index) => segment === given[index] || segment.startsWith('{'))
}

/** Member names are snake_case, and `…_at` is an instant or null. */
function shapeViolations(value: unknown, place: string): string[] {
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.flatMap((item, index) => shapeViolations(item, `${place}/${index}`))
  return Object.entries(value).flatMap(([name, member]) => {
    const here = `${place}/${name}`
    const found = shapeViolations(member, here)
    if (!/^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(name)) found.push(`${here} is not snake_case`)
    if (name.endsWith('_at') && member !== null && !(typeof member === 'string' && instant.test(member))) {
      found.push(`${here} is not an RFC 3339 instant with milliseconds and Z`)
    }
    return found
  })
}

function sameMembers(value: object, names: readonly string[]): boolean {
  return Object.keys(value).join() === names.join()
}

function decoded(text: string): string {
  return text.replace(/%([0-7][0-9a-f])/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)))
}
