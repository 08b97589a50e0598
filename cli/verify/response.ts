/** Reads the response of verify-key, and checks the responses of other endpoints against the contract. */
import * as v from 'valibot'
import type { ServiceNames } from '../../core/http/headers.ts'
import { hasValidChecksum } from '../../core/keys/format.ts'
import { parseJson } from '../../core/lib/json.ts'
import { parseInstant } from '../../core/lib/time.ts'
import { verificationSchema } from '../../core/schemas/responses.ts'
import { API_VERSION, type Verification } from '../../core/wire.ts'
import { CliError } from '../errors.ts'
import { excerpt, printable } from '../output/text.ts'
import { type DeploymentResponse, displayName, maxNameLength, notThisServiceError } from './deployment.ts'
import { redirectError } from './discovery.ts'
import { formatRetryTime, nextStep, operatorRemedy } from './next-step.ts'

/** How much is shown of a text from a deployment, in UTF-16 units. */
const maxDetailLength = 1_000
const maxExcerptLength = 160

export function shortExcerpt(text: string): string {
  return excerpt(text, maxExcerptLength)
}

/** What is read of a problem. A member of another type counts as absent. */
const problemSchema = v.object({
  code: v.string(),
  title: v.string(),
  detail: v.fallback(v.optional(v.string()), undefined),
  request_id: v.fallback(v.optional(v.string()), undefined),
})

interface VerificationRequest {
  readonly key: string
  /** `undefined` when the key is malformed. */
  readonly keyId: string | undefined
  readonly partner: string
  readonly names: ServiceNames
}

export function verifyKeyPath({ name }: ServiceNames): string {
  return `/${name}/developer/verify-key`
}

/** Reads the response of verify-key. @throws {CliError} for any but the valid one to this request. */
export function readVerification(response: DeploymentResponse, request: VerificationRequest): Verification {
  const { url, status, header } = response
  if (status >= 300 && status < 400) throw redirectError(response, verifyKeyPath(request.names))
  if (status === 200) {
    const verification = parseVerification(parseJson(response.text))
    if (verification !== undefined) return requireSameSubject(verification, request)
    const version = header(request.names.versionHeader)
    if (version !== undefined) throw otherReleaseError(url, version)
    const page = describeHtmlPage(response)
    throw notThisServiceError(url, `the response is ${page ?? 'not in the form of a verify-key response'}`)
  }
  const problem = readProblem(response)
  if (problem === undefined) throw unexpectedResponseError(response)
  const { code, title, detail = title, request_id } = problem
  if (code === 'route_not_found' || code === 'method_not_allowed') {
    throw notThisServiceError(url, 'it has no verify-key there')
  }
  const sentence = excerpt(detail, maxDetailLength)
  const action = hintFor(code, request, response)
  const remedy = operatorRemedy(code, request)
  // The default of `serve --log`.
  const isLogged = status === 401 || status === 403 || status >= 500
  const label = isLogged ? "Request ID, for the operator's log" : 'Request ID'
  throw new CliError(
    status >= 500 ? 3 : 1,
    excerpt(code, maxNameLength),
    `${printable(sentence)} (${displayName(code)})`,
    {
      members: {
        detail: sentence,
        ...(action && { action }),
        ...(remedy && { remedy }),
        ...(request_id && { request_id: excerpt(request_id, maxNameLength) }),
      },
      lines: [action, request_id ? `${label}: ${displayName(request_id)}` : ''].filter(Boolean),
    },
  )
}

/** @returns `undefined` unless the body follows the contract, perhaps that of a newer deployment. */
function parseVerification(body: unknown): Verification | undefined {
  const isError = (issue: v.BaseIssue<unknown>) => !isAddition(issue) && !isUnknownName(issue)
  if (findErrors(v.looseObject({ data: verificationSchema }), body, isError, 1).length > 0) return undefined
  const { data } = body as { readonly data: Verification }
  const { key, checked_at, stale_if_error } = data
  // The schema does not validate formats.
  const { created_at, expires_at, rotation } = key
  const instants = [created_at, expires_at, rotation?.retires_at, checked_at, stale_if_error?.since]
  return instants.every((text) => text == null || parseInstant(text) !== undefined) ? data : undefined
}

/** The first `max` errors: a body of some MiB can have millions, and each takes half a kilobyte. */
function findErrors(
  schema: v.GenericSchema,
  body: unknown,
  isError: (issue: v.BaseIssue<unknown>) => boolean,
  max: number,
): readonly v.BaseIssue<unknown>[] {
  let count = 0
  const { issues = [] } = schema['~run']({ value: body }, {
    message(issue) {
      if (isError(issue)) count++
      return issue.message
    },
    // Read after each issue.
    get abortEarly() {
      return count >= max
    },
  })
  return issues.filter(isError)
}

/** Whether the issue is an unknown member: additions do not make a new version of the wire (contract, section 1). */
function isAddition(issue: v.BaseIssue<unknown>): boolean {
  return issue.type === 'strict_object' && issue.expected === 'never'
}

/** Whether the issue is an unknown scope, module, policy or environment. */
function isUnknownName(issue: v.BaseIssue<unknown>): boolean {
  return issue.type === 'picklist' && typeof issue.input === 'string'
}

/** A cache or gateway may return a response to another request. */
function requireSameSubject(
  verification: Verification,
  { keyId, partner }: VerificationRequest,
): Verification {
  if (verification.partner.slug === partner && (keyId === undefined || verification.key.id === keyId)) {
    return verification
  }
  const owner = displayName(verification.partner.slug)
  const actual = `key ${displayName(verification.key.id)} of partner ${owner}`
  const expected = `${keyId === undefined ? 'a key' : `key ${keyId}`} of partner ${partner}`
  throw new CliError(
    1,
    'other_subject',
    `The response is about ${actual}, but the request was about ${expected}. A cache or gateway in front of the ` +
      'service mixes up responses.',
  )
}

function otherReleaseError(url: string, version: string): CliError {
  const versions = `version ${displayName(version)}, and this program has ${API_VERSION}`
  const detail =
    `${url} is a partner-api service of another release (${versions}): its response is not in the form ` +
    'of a verify-key response. Use the program of that release.'
  return new CliError(3, 'other_release', detail)
}

function unexpectedResponseError(response: DeploymentResponse): CliError {
  const { url, status, header, text } = response
  const page = describeHtmlPage(response)
  const { host } = new URL(url)
  const what = `answered ${status}${page === undefined ? '' : ` with ${page}`}`
  if (status === 502 || status === 503 || status === 504) {
    const detail =
      `The service is down behind ${host}, which ${what}. Ask the operator to start it, and try again.`
    return new CliError(3, 'service_down', detail)
  }
  if (status === 429) {
    const sentence = `A server in front of the service limits requests: ${host} ${what}.`
    return new CliError(1, 'rate_limited', `${sentence} ${formatRetryTime(header)}`)
  }
  const other = parseJson(text) === undefined ? 'no problem document' : 'JSON of another API'
  return notThisServiceError(url, `it answered with status ${status} and ${page ?? other}`)
}

/** @returns `undefined` unless the response is an HTML page. */
function describeHtmlPage({ header, text }: DeploymentResponse): string | undefined {
  if (!header('content-type')?.startsWith('text/html') && !/^\s*<(?:!doctype )?html/i.test(text)) {
    return undefined
  }
  const head = text.slice(0, 16_384)
  const titleTag = head.search(/<title[\s>]/i)
  const start = titleTag === -1 ? 0 : head.indexOf('>', titleTag) + 1
  const title = start === 0 ? '' : head.slice(start).split('<', 1).join('').trim()
  return title === '' ? 'an HTML page' : `the HTML page "${displayName(title.replace(/\s+/g, ' '))}"`
}

function hintFor(
  code: string,
  { key, keyId, partner }: VerificationRequest,
  { header }: DeploymentResponse,
): string {
  if (code === 'rate_limited' || code === 'store_unavailable' || code === 'overloaded') {
    return formatRetryTime(header)
  }
  if (code === 'key_invalid') {
    return hasValidChecksum(key)
      ? 'Its checksum is correct, so the key is complete, but it belongs to another deployment.'
      : 'Its checksum is wrong: the key is mistyped or incomplete, or not a key at all.'
  }
  return nextStep(code, { keyId, partner })
}

/** @returns `undefined` unless the response is a problem document. */
function readProblem({ text }: DeploymentResponse) {
  const { output, success } = v.safeParse(problemSchema, parseJson(text))
  return success ? output : undefined
}

/** The code of a problem, `undefined` for any other response. */
export function problemCode(response: DeploymentResponse): string | undefined {
  return response.header('content-type') === 'application/problem+json'
    ? readProblem(response)?.code
    : undefined
}

export interface Expectation {
  readonly status: 200 | 201
  readonly bodySchema: v.GenericSchema
  readonly names: ServiceNames
  readonly version: string
  /** The limit policies of the endpoint that are on. */
  readonly policies: readonly string[]
}

const maxErrors = 10

export function checkResponse(response: DeploymentResponse, expected: Expectation): string[] {
  if (response.status !== expected.status) return [describeStatus(response, expected.status)]
  return [
    ...checkHeaders(response, expected),
    ...checkCommonHeaders(response, expected),
    ...checkBody(parseJson(response.text), expected.bodySchema),
  ]
}

/** Checks the headers that a 200, a 201 and a 304 have in common. */
export function checkCommonHeaders(
  response: DeploymentResponse,
  { names, policies, status }: Expectation,
): string[] {
  const varies = status === 200 ? ['Authorization', names.keyHeader, names.versionHeader] : []
  const errors = [
    ...missingMembers(response, 'Vary', varies, (item, name) => item.toLowerCase() === name.toLowerCase()),
    ...['RateLimit-Policy', 'RateLimit'].flatMap((field) =>
      missingMembers(response, field, policies, (item, policy) => item.startsWith(`"${policy}"`))
    ),
  ]
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
  const expectedHeaders: readonly (readonly [name: string, isValid: (value: string) => boolean])[] = [
    ['Content-Type', (value) => value === 'application/json; charset=utf-8'],
    ['X-Request-Id', (value) => /^req_[0-9A-Za-z_-]+$/.test(value)],
    [names.versionHeader, (value) => value === version],
    ['X-Content-Type-Options', (value) => value === 'nosniff'],
    ['Cache-Control', (value) => value === (status === 200 ? 'private, no-cache' : 'no-store')],
    // RFC 9110 §8.8.3: a weak tag begins with W/.
    ...(status === 200 ? [['ETag', (value: string) => /^"[^"]+"$/.test(value)]] as const : []),
  ]
  return expectedHeaders.flatMap(([name, isValid]) => {
    const value = response.header(name)
    if (value === undefined) return [`it has no ${name}`]
    return isValid(value) ? [] : [`its ${name} is ${shortExcerpt(value)}`]
  })
}

function checkBody(body: unknown, schema: v.GenericSchema): string[] {
  if (body === undefined) return ['its body is not JSON']
  const errors = findErrors(schema, body, (issue) => !isAddition(issue), maxErrors + 1)
  const messages = errors.slice(0, maxErrors).map((issue) => {
    const place = shortExcerpt(v.getDotPath(issue) ?? 'the body')
    const expected = shortExcerpt(String(issue.expected ?? issue.type))
    return `${place} violates the contract: expected ${expected}, received ${shortExcerpt(issue.received)}`
  })
  return errors.length > maxErrors ? [...messages, 'and more members are wrong'] : messages
}

function describeStatus(response: DeploymentResponse, expected: number): string {
  const { status, header } = response
  const code = problemCode(response)
  const location = status >= 300 && status < 400 ? header('location') : undefined
  const page = describeHtmlPage(response)
  return [
    `it answered ${status}${code === undefined ? '' : ` ${shortExcerpt(code)}`} and not ${expected}`,
    ...(location === undefined ? [] : [`a redirect to ${shortExcerpt(location)}, which is not followed`]),
    ...(page === undefined ? [] : [`with ${page}`]),
  ].join(', ')
}
