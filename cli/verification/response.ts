import * as v from 'valibot'
import type { ServiceNames } from '../../core/http/headers.ts'
import { hasValidChecksum } from '../../core/keys/format.ts'
import { parseInstant } from '../../core/lib/time.ts'
import type * as wire from '../../core/wire.ts'
import { CliError } from '../errors.ts'
import { excerpt, printable } from '../output/text.ts'
import { type DeploymentResponse, notThisServiceError } from './deployment.ts'

/** What came of one endpoint. */
export interface SmokeResult {
  readonly method: string
  readonly path: string
  readonly scope: string | null
  readonly status: number | null
  /** Milliseconds that the first answer took. */
  readonly ms: number | null
  /** `not_allowed`: the key may not use it, so it was not called. */
  readonly verdict: 'ok' | 'failed' | 'unreachable' | 'not_allowed' | 'skipped'
  /** What is wrong, why it was not called, or what is worth to know. */
  readonly reasons: readonly string[]
}

/** What a deployment sends, perhaps a newer one: it may use names that this program does not know. */
type Loose<T> = T extends string ? string
  : T extends readonly (infer Item)[] ? readonly Loose<Item>[]
  : T extends object ? { readonly [Name in keyof T]: Loose<T[Name]> }
  : T

/** What verify-key says of a key that is valid. */
export type Verification = Loose<Omit<wire.Verification, 'endpoints'>> & {
  readonly endpoints:
    readonly (Pick<SmokeResult, 'method' | 'path' | 'scope'> & { readonly allowed: boolean })[]
}

const instant = v.pipe(v.string(), v.check((text) => parseInstant(text) !== undefined))
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))

// Additions make no new version of the wire (contract, section 1), so every object may have further members.
const verificationSchema: v.GenericSchema<unknown, Verification> = v.looseObject({
  valid: v.literal(true),
  partner: v.looseObject({ slug: v.string(), name: v.string() }),
  key: v.looseObject({
    id: v.string(),
    name: v.string(),
    environment: v.string(),
    hint: v.string(),
    created_at: instant,
    expires_at: v.nullable(instant),
    rotation: v.nullish(v.looseObject({ successor_id: v.string(), retires_at: instant }), null),
  }),
  scopes: v.array(v.looseObject({ scope: v.string(), in_force: v.boolean() })),
  modules: v.array(v.looseObject({
    module: v.string(),
    active: v.boolean(),
    ready: v.boolean(),
    missing_scope: v.nullable(v.string()),
  })),
  endpoints: v.array(v.looseObject({
    method: v.string(),
    path: v.string(),
    scope: v.nullable(v.string()),
    allowed: v.boolean(),
  })),
  limits: v.array(v.looseObject({
    policy: v.string(),
    quota: count,
    window_seconds: count,
    remaining: count,
    resets_in_seconds: count,
  })),
  version: v.string(),
  checked_at: instant,
  max_staleness_ms: count,
  stale_if_error: v.optional(v.looseObject({ seconds: count, since: v.nullable(instant) })),
})

/** What a problem document has to have. */
const problemSchema: v.GenericSchema<unknown, {
  readonly code: string
  readonly title: string
  readonly detail?: string | undefined
  readonly request_id?: string | undefined
}> = v.looseObject({
  code: v.string(),
  title: v.string(),
  detail: v.optional(v.string()),
  request_id: v.optional(v.string()),
})

/** The problem that an answer is, `undefined` for any other answer. */
export function readProblem({ text }: DeploymentResponse): v.InferOutput<typeof problemSchema> | undefined {
  const result = v.safeParse(problemSchema, parseJson(text), { abortEarly: true })
  return result.success ? result.output : undefined
}

/** What was asked about. */
export interface VerificationRequest {
  readonly key: string
  /** Its public id, `undefined` for what is no key. */
  readonly keyId: string | undefined
  /** A slug. */
  readonly partner: string
}

/** How much is shown of a text that a deployment sent, in UTF-16 units. */
const maxDetailLength = 1_000
const maxNameLength = 200

/** A name that a deployment sent, on one line. */
function displayName(name: string): string {
  return printable(excerpt(name, maxNameLength))
}

/**
 * Reads the answer of verify-key.
 *
 * @throws {CliError} exit code 1 when the service refuses the key or the answer is about another one, 3 when the
 * service could not tell or something else answered.
 */
export function readVerification(response: DeploymentResponse, request: VerificationRequest): Verification {
  const { url, status } = response
  if (status >= 300 && status < 400) {
    throw new CliError(
      3,
      'redirected',
      `${url} redirects to ${displayName(response.header('location') ?? 'nowhere')}. That is not followed, ` +
        'because it would carry the key there; if it is the right deployment, give its address as --url.',
    )
  }
  const htmlPage = describeHtmlPage(response)
  if (status === 200) {
    const answer = v.safeParse(v.looseObject({ data: verificationSchema }), parseJson(response.text), {
      abortEarly: true,
    })
    if (answer.success) return requireSameSubject(answer.output.data, request)
    throw notThisServiceError(url, `it is ${htmlPage ?? 'of another form than the answer of verify-key'}`)
  }
  const answer = readProblem(response)
  if (answer === undefined) throw unexpectedResponseError(response, htmlPage)
  const { code, title, detail, request_id } = answer
  if (code === 'route_not_found' || code === 'method_not_allowed') {
    throw notThisServiceError(url, 'it has no verify-key there')
  }
  const sentence = excerpt(detail ?? title, maxDetailLength)
  // What the log has by default, see `--log` of `serve`.
  const isLogged = status === 401 || status === 403 || status >= 500
  const reference = isLogged ? "Request ID, for the operator's log" : 'Request ID'
  throw new CliError(
    status >= 500 ? 3 : 1,
    excerpt(code, maxNameLength),
    `${printable(sentence)} (${displayName(code)})`,
    {
      members: { detail: sentence, ...(request_id && { request_id: excerpt(request_id, maxNameLength) }) },
      lines: [
        hintFor(code, request.key, response),
        request_id ? `${reference}: ${displayName(request_id)}` : '',
      ]
        .filter((line) => line !== ''),
    },
  )
}

/** A cache or gateway may hand out what was answered to somebody else. */
function requireSameSubject(
  verification: Verification,
  { keyId, partner }: VerificationRequest,
): Verification {
  if (verification.partner.slug === partner && (keyId === undefined || verification.key.id === keyId)) {
    return verification
  }
  const other = `key ${displayName(verification.key.id)} of partner ${displayName(verification.partner.slug)}`
  throw new CliError(
    1,
    'other_subject',
    `The answer is about ${other}, but the question was about ${
      keyId === undefined ? 'a key' : `key ${keyId}`
    } of partner ${partner}. A cache or gateway in front of the service mixes up answers.`,
  )
}

function unexpectedResponseError(
  { url, status }: DeploymentResponse,
  htmlPage: string | undefined,
): CliError {
  if (status === 502 || status === 503 || status === 504) {
    const suffix = htmlPage === undefined ? '' : ` with ${htmlPage}`
    const { host } = new URL(url)
    return new CliError(
      3,
      'service_down',
      `The service is down behind ${host}, which answered ${status}${suffix}.`,
    )
  }
  return notThisServiceError(
    url,
    `it answered with status ${status} and ${htmlPage ?? 'no problem document'}`,
  )
}

/** Says of an HTML page that it is one, and how it is titled; `undefined` for any other answer. */
export function describeHtmlPage({ header, text }: DeploymentResponse): string | undefined {
  if (!header('content-type')?.startsWith('text/html') && !/^\s*<(?:!doctype )?html/i.test(text)) {
    return undefined
  }
  const head = text.slice(0, 16_384)
  const titleTag = head.search(/<title[\s>]/i)
  const start = titleTag === -1 ? 0 : head.indexOf('>', titleTag) + 1
  const title = start === 0 ? '' : head.slice(start).split('<', 1).join('').trim()
  return title === '' ? 'an HTML page' : `the HTML page "${displayName(title.replace(/\s+/g, ' '))}"`
}

function hintFor(code: string, key: string, response: DeploymentResponse): string {
  switch (code) {
    case 'key_invalid':
      return hasValidChecksum(key)
        ? 'Its checksum is right, so it was copied whole: it is of another deployment, or of nobody.'
        : 'Its checksum is wrong: it was mistyped, cut off, or never was a key.'
    case 'key_missing':
      return 'The key was sent: something between here and the service drops its header.'
    case 'key_revoked':
    case 'key_expired':
      return 'That is final: ask the operator for another key.'
    case 'key_disabled':
      return 'The operator can enable it again.'
    case 'partner_mismatch':
      return 'The key is right, but it belongs to another partner: check --partner.'
    case 'partner_suspended':
      return 'The operator can resume the partner.'
    case 'address_not_allowed':
      return 'The key may be used from some addresses only: run this where the integration runs.'
    case 'rate_limited':
      return `Try again in ${displayName(response.header('retry-after') ?? 'some')} seconds.`
    case 'store_unavailable':
    case 'internal':
      return 'The service is there but could not tell: try again.'
    default:
      return ''
  }
}

/** What a text says as JSON, `undefined` when it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What an answer has to be like, besides what every answer is like. */
export interface Expectation {
  readonly status: 200 | 201
  /** Schema of the body. */
  readonly bodySchema: v.GenericSchema
  readonly names: ServiceNames
  readonly version: string
  /** The limits that the request meets and that are on. */
  readonly policies: readonly string[]
}

/** How many wrong members of one body are named. */
const maxErrors = 3
const maxExcerptLength = 160

/** Says what about an answer is not as the contract has it; nothing when all is. */
export function checkResponse(response: DeploymentResponse, expected: Expectation): string[] {
  if (response.status !== expected.status) return [unexpectedStatus(response, expected.status)]
  return [
    ...checkHeaders(response, expected),
    ...checkCommonFields(response, expected),
    ...checkBody(parseJson(response.text), expected.bodySchema),
  ]
}

/** Says what is wrong with the fields that a 200, a 201 and a 304 have alike. */
export function checkCommonFields(
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
  // The service is for servers only: with this field, pages of other sites could read the answer.
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

/** The code of the problem that an answer is, `undefined` for any other answer. */
export function problemCode(response: DeploymentResponse): string | undefined {
  return response.header('content-type') === 'application/problem+json'
    ? readProblem(response)?.code
    : undefined
}

function checkHeaders(response: DeploymentResponse, { status, names, version }: Expectation): string[] {
  const expectedHeaders: readonly (readonly [name: string, isRight: (value: string) => boolean])[] = [
    ['Content-Type', (value) => value === 'application/json; charset=utf-8'],
    ['X-Request-Id', (value) => /^req_[0-9A-Za-z_-]+$/.test(value)],
    [names.versionHeader, (value) => value === version],
    ['X-Content-Type-Options', (value) => value === 'nosniff'],
    ['Cache-Control', (value) => value === (status === 200 ? 'private, no-cache' : 'no-store')],
    // RFC 9110 §8.8.3: a weak tag begins with W/.
    ...(status === 200 ? [['ETag', (value: string) => /^"[^"]+"$/.test(value)]] as const : []),
  ]
  return expectedHeaders.flatMap(([name, isRight]) => {
    const value = response.header(name)
    if (value === undefined) return [`it has no ${name}`]
    return isRight(value) ? [] : [`its ${name} is ${shortExcerpt(value)}`]
  })
}

function checkBody(body: unknown, schema: v.GenericSchema): string[] {
  if (body === undefined) return ['its body is no JSON']
  const { issues = [] } = v.safeParse(schema, body)
  const errors = issues.filter((issue) => !isAddition(issue))
  const messages = errors.slice(0, maxErrors).map((issue) =>
    `${shortExcerpt(v.getDotPath(issue) ?? 'the body')} is not as the contract has it: expected ${
      shortExcerpt(String(issue.expected ?? issue.type))
    }, received ${shortExcerpt(issue.received)}`
  )
  return errors.length > maxErrors
    ? [...messages, `and ${errors.length - maxErrors} more members are wrong`]
    : messages
}

/** Additions make no new version of the wire (contract, section 1). */
function isAddition(issue: v.BaseIssue<unknown>): boolean {
  return issue.type === 'strict_object' && issue.expected === 'never'
}

function unexpectedStatus(response: DeploymentResponse, expected: number): string {
  const code = problemCode(response)
  if (code === 'rate_limited') {
    return `its limit is spent: try again in ${
      shortExcerpt(response.header('retry-after') ?? 'some')
    } seconds`
  }
  const location = response.status >= 300 && response.status < 400 ? response.header('location') : undefined
  const codeText = code === undefined ? '' : ` ${shortExcerpt(code)}`
  const redirectText = location === undefined
    ? ''
    : `, a redirect to ${shortExcerpt(location)}, which is not followed`
  const htmlPage = describeHtmlPage(response)
  const pageText = htmlPage === undefined ? '' : `, with ${htmlPage}`
  return `it answered ${response.status}${codeText} and not ${expected}${redirectText}${pageText}`
}

/** What a deployment said, short and without anything in the shape of a key. */
export function shortExcerpt(text: string): string {
  return excerpt(text, maxExcerptLength)
}
