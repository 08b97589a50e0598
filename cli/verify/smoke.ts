/** Calls the endpoints of a deployment, and checks their responses against the contract. */
import * as v from 'valibot'
import type { RequestSpec } from '../../adapters/client/transport.ts'
import type { ServiceNames } from '../../core/http/headers.ts'
import type { Page } from '../../core/http/message.ts'
import { isObject } from '../../core/lib/json.ts'
import { SLUG_PATTERN } from '../../core/content/scalars.ts'
import { MS_PER_DAY, utcDay } from '../../core/lib/time.ts'
import { type EndpointName, takesBody } from '../../core/model.ts'
import type { KeyedRoute } from '../../core/routes/route.ts'
import { compileRoutes, ROUTES } from '../../core/routes/router.ts'
import { pageSchema, RESPONSE_SCHEMAS } from '../../core/schemas/responses.ts'
import type { Verification } from '../../core/wire.ts'
import { CliError } from '../errors.ts'
import { excerpt } from '../output/text.ts'
import type { DeploymentResponse } from './deployment.ts'
import { findErrors, formatRetryTime, isAddition, problemCode } from './response.ts'

export interface SmokeResult {
  readonly method: string
  readonly path: string
  /** `null` if any key is enough. */
  readonly scope: string | null
  readonly status: number | null
  /** Milliseconds of the first response. */
  readonly ms: number | null
  /** `not_allowed`: the key may not use the endpoint, so it was not called. */
  readonly verdict: 'ok' | 'failed' | 'unreachable' | 'not_allowed' | 'skipped'
  /** Errors, the reason for skipping the endpoint, or remarks. */
  readonly reasons: readonly string[]
}

/** The result without the endpoint. */
type SmokeOutcome = Omit<SmokeResult, 'method' | 'path' | 'scope'>

type Send = (spec: RequestSpec) => Promise<DeploymentResponse>

/** What a successful response of an endpoint has. */
interface Expectation {
  readonly status: number
  readonly bodySchema: v.GenericSchema
  readonly names: ServiceNames
  readonly version: string
  /** The policies that RateLimit fields name. */
  readonly policies: readonly string[]
}

/** An endpoint that is tested. */
interface TestedEndpoint {
  readonly send: Send
  readonly verification: Verification
  readonly route: KeyedRoute
  /** The path, with `{slug}` for a parameter. */
  readonly path: string
  /** The slug of one profile of each list that was tested before. */
  readonly slugs: string[]
  readonly expected: Expectation
}

/** How much is shown of a text from a deployment, in UTF-16 units. */
const maxExcerptLength = 160
const maxErrors = 10
/** A path without characters or segments that would change the rest of a URL. */
const ownPath = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)+$/
/** Endpoints that may have no content, and the problem that they answer with then. */
const emptyCodes: Readonly<Record<string, string>> = { banner: 'banner_not_found' }

/** What every response with content has. */
const envelopeSchema = v.looseObject({ data: v.unknown(), page: v.optional(pageSchema) })

/** Calls every endpoint that the key may use. */
export async function runSmokeTests(
  sendOnce: Send,
  verification: Verification,
  names: ServiceNames,
  base: URL,
  withSignup: boolean,
  progress: (done: number, total: number) => void,
): Promise<SmokeResult[]> {
  const basePath = basePathOf(base, names, verification)
  const known = compileRoutes(ROUTES, names.name, basePath).endpoints
  const slugs: string[] = []
  const results: SmokeResult[] = []
  let isLimited = false
  const send: Send = async (spec) => {
    const response = await sendOnce({ ...spec, target: spec.target.slice(basePath.length) })
    isLimited = problemCode(response) === 'rate_limited'
    if (!isLimited) return response
    const time = formatRetryTime(response.header)
    throw new CliError(1, 'rate_limited', `its rate limit is exceeded. ${time}`)
  }
  async function test({ method, path, scope, allowed }: ListedEndpoint): Promise<SmokeOutcome> {
    if (!allowed) return skipped(`it needs the scope ${scope}, in force`, 'not_allowed')
    if (isLimited) return skipped('the rate limit was exceeded before')
    const route = ROUTES[known.findIndex((each) => each.method === method && each.path === path)]
    if (route?.access !== 'key') return await callOwn(send, verification, names, method, path)
    const endpoint = toTestedEndpoint(send, verification, names, route, path, slugs)
    return route.method === 'POST' ? await callSignup(endpoint, withSignup) : await callRead(endpoint)
  }

  // `verify-key` lists endpoints with a scope.
  const problems = known.find(({ name }) => name === 'problems')!
  const endpoints = [{ ...problems, scope: null, allowed: true }, ...verification.endpoints]
  const listed = new Map(endpoints.map((each) => [`${each.method} ${each.path}`, each]))
  for (const endpoint of listed.values()) {
    progress(results.length, listed.size)
    const outcome = await test(endpoint).catch((error: unknown) => {
      if (!(error instanceof CliError)) throw error
      return skipped(error.message, error.code === 'unreachable' ? 'unreachable' : 'failed')
    })
    const { method, path, scope } = endpoint
    results.push({ method, path, scope, ...outcome })
  }
  return results
}

/** An endpoint that verify-key lists. */
interface ListedEndpoint {
  readonly method: string
  readonly path: string
  readonly scope: string | null
  readonly allowed: boolean
}

/** The end of the deployment's URL that its paths begin with: its proxy may remove the rest. */
function basePathOf({ pathname }: URL, { name }: ServiceNames, { endpoints }: Verification): string {
  for (let start = 0; start >= 0; start = pathname.indexOf('/', start + 1)) {
    const path = pathname.slice(start)
    if (endpoints.some((endpoint) => endpoint.path.startsWith(`${path}/${name}/`))) return path
  }
  return ''
}

function toTestedEndpoint(
  send: Send,
  verification: Verification,
  names: ServiceNames,
  route: KeyedRoute,
  path: string,
  slugs: string[],
): TestedEndpoint {
  const { limits, version } = verification
  const policies = route.limits.filter((name) => limits.some(({ policy }) => policy === name))
  const bodySchema = RESPONSE_SCHEMAS[route.name as EndpointName]
  const expected = { status: route.status ?? 200, bodySchema, names, version, policies }
  return { send, verification, route, path, slugs, expected }
}

/** Calls an endpoint of the host's own. */
async function callOwn(
  send: Send,
  { partner, version }: Verification,
  names: ServiceNames,
  method: string,
  path: string,
): Promise<SmokeOutcome> {
  if (takesBody(method) || method === 'DELETE') {
    return skipped('of the endpoints that write, only signups are tested')
  }
  if (method === 'HEAD') return skipped('its responses have no body')
  if (method !== 'GET') return skipped('this program does not know it: is the deployment newer?')
  if (path.includes('{')) return skipped('its path has a parameter')
  // The request carries the key, and the path is the deployment's.
  if (!ownPath.test(path)) return skipped('its path is not one of a service')
  const response = await send({ target: `${path}?${new URLSearchParams({ partner: partner.slug })}` })
  if (problemCode(response) === 'invalid_parameter') return skipped('it needs parameters')
  const expected = { status: 200, bodySchema: envelopeSchema, names, version, policies: [] }
  return called(response, checkResponse(response, expected))
}

async function callRead(endpoint: TestedEndpoint): Promise<SmokeOutcome> {
  const { send, route, expected, slugs } = endpoint
  const [slug] = slugs
  if (endpoint.path.includes('{slug}') && slug === undefined) {
    return skipped('no list has returned a profile to request')
  }
  const path = endpoint.path.replace('{slug}', encodeURIComponent(slug ?? ''))
  const target = `${path}?${new URLSearchParams(queryFor(endpoint))}`
  const first = await send({ target })
  const emptyCode = emptyCodes[route.name]
  if (first.status === 404 && emptyCode !== undefined && problemCode(first) === emptyCode) {
    return called(first, [], [`it has no content at present (${emptyCode})`])
  }
  const errors = checkResponse(first, expected)
  // The first error may cause others.
  if (errors.length === 0) errors.push(...await checkRevalidation(endpoint, target, first))
  if (errors.length === 0 && 'cursor' in route.parameters) {
    errors.push(...await checkNextPage(endpoint, path, first))
  }
  if (errors.length === 0 && route.scope === 'read:profiles') {
    // Valid against the schema: every row has a slug.
    const { data } = first.json as { data: { slug: string } | readonly { slug: string }[] }
    const found = Array.isArray(data) ? data.map((row) => row.slug) : []
    const valid = found.find((each) => SLUG_PATTERN.test(each))
    const invalid = found.find((each) => !SLUG_PATTERN.test(each))
    if (valid !== undefined) slugs.push(valid)
    if (invalid !== undefined) errors.push(`it returns a profile whose slug is ${shortExcerpt(invalid)}`)
  }
  return called(first, errors)
}

/** Short pages, so that most lists have a second one, and only complete days, whose counts are final. */
function queryFor({ route: { parameters }, verification }: TestedEndpoint): Record<string, string> {
  const now = Date.parse(verification.checked_at)
  const day = (ago: number) => utcDay(now - ago * MS_PER_DAY)
  const query: Record<string, string> = { partner: verification.partner.slug }
  if ('cursor' in parameters) query['limit'] = '2'
  if ('from' in parameters && 'to' in parameters) {
    query['from'] = day(7)
    query['to'] = day(1)
  }
  return query
}

/** Repeats a request with `If-None-Match`. Content may change in between, but not every time. */
async function checkRevalidation(
  { send, expected }: TestedEndpoint,
  target: string,
  first: DeploymentResponse,
) {
  let knownEtag = first.header('etag') ?? ''
  for (let turn = 0; turn < 3; turn++) {
    const response = await send({ target, headers: { 'if-none-match': knownEtag } })
    const etag = response.header('etag')
    if (response.status === 304) {
      const errors = checkCommonHeaders(response, expected).map((sentence) => `on its 304, ${sentence}`)
      if (etag !== knownEtag) errors.push('its 304 has another ETag than the one it confirms')
      return response.isEmpty ? errors : [...errors, 'its 304 has a body']
    }
    if (response.status !== 200 || etag === undefined || etag === knownEtag) {
      return [`it answered If-None-Match with ${response.status} instead of 304`]
    }
    knownEtag = etag
  }
  return ['its ETag changes with every response']
}

interface PageBody {
  readonly data: readonly unknown[]
  readonly page: Page
}

/** Follows `Link` to the next page, which must not repeat rows of the first one. */
async function checkNextPage({ send, expected }: TestedEndpoint, path: string, first: DeploymentResponse) {
  // Valid against the schema.
  const { data, page } = first.json as PageBody
  const link = first.header('link')
  if (!page.has_more) {
    return page.next_cursor === null && link === undefined ? [] : ['its last page links to another one']
  }
  const [, reference] = /^<([^>]*)>; rel="next"$/.exec(link ?? '') ?? []
  if (reference === undefined) return ['it has more pages but no Link to the next one']
  const next = URL.parse(reference, new URL(path, 'http://here.invalid'))
  // The request carries the key.
  if (next?.host !== 'here.invalid' || next.pathname !== path) {
    return [`its Link points elsewhere: ${shortExcerpt(reference)}`]
  }
  if (next.searchParams.get('cursor') !== page.next_cursor) return ['its Link does not have the next_cursor']
  const second = await send({ target: `${path}${next.search}` })
  const errors = checkResponse(second, expected)
  if (errors.length > 0) return errors.map((sentence) => `on its second page, ${sentence}`)
  const identify = (row: unknown) => isObject(row) && (row['slug'] ?? row['id']) && JSON.stringify(row)
  const seen = new Set(data.map(identify).filter(Boolean))
  const repeated = (second.json as PageBody).data.some((row) => seen.has(identify(row)))
  return repeated ? ['its second page repeats a row of the first'] : []
}

async function callSignup(
  { send, verification, route, path, expected }: TestedEndpoint,
  withSignup: boolean,
): Promise<SmokeOutcome> {
  if (route.name !== 'sign-up') return skipped('of the endpoints that write, only signups are tested')
  const isTest = verification.key.environment === 'test'
  if (!withSignup) return skipped(`to make a signup, pass --with-signup${isTest ? '' : ' and a test key'}`)
  if (!isTest) return skipped('not called: --with-signup needs a test key, and this one is live', 'failed')
  const request: RequestSpec = {
    target: path,
    headers: { 'idempotency-key': `smoke-${crypto.randomUUID()}` },
    // RFC 2606 §3: a reserved domain.
    body: {
      partner: verification.partner.slug,
      email: 'smoke-test@example.com',
      name: 'Smoke Test',
      message: 'Made by partner-api verify --smoke --with-signup.',
    },
  }
  const first = await send(request)
  const firstErrors = checkResponse(first, expected)
  if (firstErrors.length > 0) return called(first, firstErrors)
  const replay = await send(request)
  const errors = checkResponse(replay, expected)
  const isSame = JSON.stringify(replay.json) === JSON.stringify(first.json)
  if (errors.length === 0 && !isSame) errors.push('its response differs')
  if (errors.length === 0 && replay.header('idempotent-replayed') !== 'true') {
    errors.push('it lacks Idempotent-Replayed: true')
  }
  const { data } = first.json as { data: { id: string } }
  const onRepetition = errors.map((sentence) => `on repetition, ${sentence}`)
  return called(first, onRepetition, [`it made ${shortExcerpt(data.id)}`])
}

function called(
  { status, ms }: DeploymentResponse,
  errors: readonly string[],
  remarks: readonly string[] = [],
): SmokeOutcome {
  const verdict = errors.length === 0 ? 'ok' : 'failed'
  return { status, ms: Math.round(ms * 10) / 10, verdict, reasons: [...errors, ...remarks] }
}

function skipped(reason: string, verdict: SmokeResult['verdict'] = 'skipped'): SmokeOutcome {
  return { status: null, ms: null, verdict, reasons: [reason] }
}

export function checkResponse(response: DeploymentResponse, expected: Expectation): string[] {
  if (response.status !== expected.status) return [describeStatus(response, expected.status)]
  return [
    ...checkHeaders(response, expected),
    ...checkCommonHeaders(response, expected),
    ...checkBody(response.json, expected.bodySchema),
  ]
}

/** Checks the headers that a 200, a 201 and a 304 have in common. */
function checkCommonHeaders(response: DeploymentResponse, { names, policies, status }: Expectation) {
  const varies = status === 200 ? ['Authorization', names.keyHeader, names.versionHeader] : []
  const isSameName = (item: string, name: string) => item.toLowerCase() === name.toLowerCase()
  const isOfPolicy = (item: string, policy: string) => item.startsWith(`"${policy}"`)
  const errors = missingMembers(response, 'Vary', varies, isSameName)
  for (const field of ['RateLimit-Policy', 'RateLimit']) {
    errors.push(...missingMembers(response, field, policies, isOfPolicy))
  }
  const origin = response.header('access-control-allow-origin')
  // The service is for servers only: this header lets pages of other sites read the response.
  if (origin !== undefined) errors.push(`it has Access-Control-Allow-Origin: ${shortExcerpt(origin)}`)
  return errors
}

function missingMembers(
  response: DeploymentResponse,
  field: string,
  members: readonly string[],
  isMember: (item: string, member: string) => boolean,
): string[] {
  const value = response.header(field)
  if (value === undefined) return members.length === 0 ? [] : [`it has no ${field}`]
  const items = value.split(',').map((item) => item.trim())
  return members.filter((member) => !items.some((item) => isMember(item, member)))
    .map((member) => `its ${field} lacks ${member}`)
}

function checkHeaders(response: DeploymentResponse, { status, names, version }: Expectation): string[] {
  const expected: Record<string, string | RegExp> = {
    'Content-Type': 'application/json; charset=utf-8',
    'X-Request-Id': /^req_[0-9A-Za-z_-]+$/,
    [names.versionHeader]: version,
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': status === 200 ? 'private, no-cache' : 'no-store',
  }
  // RFC 9110 §8.8.3: a weak tag begins with W/.
  if (status === 200) expected['ETag'] = /^"[^"]+"$/
  return Object.entries(expected).flatMap(([name, valid]) => {
    const value = response.header(name)
    if (value === undefined) return [`it has no ${name}`]
    const isValid = typeof valid === 'string' ? value === valid : valid.test(value)
    return isValid ? [] : [`its ${name} is ${shortExcerpt(value)}`]
  })
}

function checkBody(body: unknown, schema: v.GenericSchema): string[] {
  if (body === undefined) return ['its body is not JSON']
  const errors = findErrors(schema, body, (issue) => !isAddition(issue), maxErrors + 1)
  const messages = errors.slice(0, maxErrors).map((issue) => {
    const path = shortExcerpt(v.getDotPath(issue) ?? 'the body')
    const expected = shortExcerpt(String(issue.expected ?? issue.type))
    return `${path} violates the contract: expected ${expected}, received ${shortExcerpt(issue.received)}`
  })
  return errors.length > maxErrors ? [...messages, 'and more members are wrong'] : messages
}

function describeStatus(response: DeploymentResponse, expected: number): string {
  const { status, header, page } = response
  const code = problemCode(response)
  const location = status >= 300 && status < 400 ? header('location') : undefined
  const parts = [
    `it answered ${status}${code === undefined ? '' : ` ${shortExcerpt(code)}`} instead of ${expected}`,
  ]
  if (location !== undefined) parts.push(`a redirect to ${shortExcerpt(location)}, which is not followed`)
  if (page !== undefined) parts.push(`with ${page}`)
  return parts.join(', ')
}

function shortExcerpt(text: string): string {
  return excerpt(text, maxExcerptLength)
}
