import * as v from 'valibot'
import type { ServiceNames } from '../../core/http/headers.ts'
import { PROBLEM_ACTIONS } from '../../core/http/problem-actions.ts'
import type { ProblemCode } from '../../core/http/problem.ts'
import { hasValidChecksum } from '../../core/keys/format.ts'
import { parseInstant } from '../../core/lib/time.ts'
import { verificationSchema } from '../../core/schemas/responses.ts'
import { API_VERSION } from '../../core/model.ts'
import type { Verification } from '../../core/wire.ts'
import { CliError } from '../errors.ts'
import { excerpt, pluralize, printable } from '../output/text.ts'
import { type DeploymentResponse, displayName, MAX_NAME_LENGTH, notThisServiceError } from './deployment.ts'

/** What is read of a problem. A member of another type counts as absent. */
const problemSchema = v.object({
  code: v.string(),
  title: v.string(),
  detail: v.fallback(v.optional(v.string()), undefined),
  request_id: v.fallback(v.optional(v.string()), undefined),
})

interface VerificationRequest {
  readonly key: string
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
    const verification = parseVerification(response.json)
    if (verification !== undefined) return requireSameSubject(verification, request)
    const version = header(request.names.versionHeader)
    if (version !== undefined) throw otherReleaseError(url, version)
    const form = response.page ?? 'not in the form of a verify-key response'
    throw notFoundError(url, request, `the response is ${form}`)
  }
  const problem = readProblem(response)
  if (problem === undefined) throw unexpectedResponseError(response, request)
  const { code, title, detail = title, request_id } = problem
  if (code === 'route_not_found' || code === 'method_not_allowed') {
    throw notFoundError(url, request, 'it has no verify-key there')
  }
  const action = hintFor(code, request, response)
  const [command, ...args] = operatorCommand(code, request) ?? []
  // The default of `serve --log`.
  const isLogged = status === 401 || status === 403 || status >= 500
  const label = isLogged ? "Request ID, for the operator's log" : 'Request ID'
  const members: Record<string, unknown> = { detail }
  if (action !== '') members['action'] = action
  if (command !== undefined) members['remedy'] = { command, args }
  if (request_id) members['request_id'] = excerpt(request_id, MAX_NAME_LENGTH)
  const requestLine = request_id ? `${label}: ${displayName(request_id)}` : ''
  const message = `${printable(detail)} (${displayName(code)})`
  throw new CliError(status >= 500 ? 3 : 1, excerpt(code, MAX_NAME_LENGTH), message, {
    members,
    lines: [action, requestLine].filter((line) => line !== ''),
  })
}

/** Names the base path and the name of the service that `url` was made of. */
function notFoundError(url: string, { names }: VerificationRequest, reason: string): CliError {
  const { origin, pathname } = new URL(url)
  const basePath = pathname.slice(0, -verifyKeyPath(names).length) || '/'
  const [before] = `${basePath}/`.split(`/${names.name}/`)
  if (before !== `${basePath}/`) {
    const base = displayName(`${origin}${before}`)
    return notThisServiceError(url, reason, `--url ends before the name of the service: pass --url ${base}.`)
  }
  const tried = `The base path in --url is ${displayName(basePath)}, and the service name ${names.name}`
  return notThisServiceError(url, reason, `${tried}: check --url and --service-name.`)
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
export function findErrors(
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
export function isAddition(issue: v.BaseIssue<unknown>): boolean {
  return issue.type === 'strict_object' && issue.expected === 'never'
}

function isUnknownName(issue: v.BaseIssue<unknown>): boolean {
  return issue.type === 'picklist' && typeof issue.input === 'string'
}

/** A cache or gateway may return a response to another request. */
function requireSameSubject(verification: Verification, { keyId, partner }: VerificationRequest) {
  if (verification.partner.slug === partner && (keyId === undefined || verification.key.id === keyId)) {
    return verification
  }
  const owner = displayName(verification.partner.slug)
  const actual = `key ${displayName(verification.key.id)} of partner ${owner}`
  const expected = `${keyId === undefined ? 'a key' : `key ${keyId}`} of partner ${partner}`
  const mixUp = `The response is about ${actual}, but the request was about ${expected}.`
  const cause = 'A cache or gateway in front of the service mixes up responses.'
  throw new CliError(1, 'other_subject', `${mixUp} ${cause}`)
}

function otherReleaseError(url: string, version: string): CliError {
  const versions = `version ${displayName(version)}, and this program has ${API_VERSION}`
  const form = 'its response is not in the form of a verify-key response'
  const detail = `${url} is a partner-api service of another release (${versions}): ${form}.`
  return new CliError(3, 'other_release', `${detail} Use the program of that release.`)
}

function unexpectedResponseError(response: DeploymentResponse, request: VerificationRequest): CliError {
  const { url, status, header, json, page } = response
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
  const other = json === undefined ? 'no problem document' : 'JSON of another API'
  return notFoundError(url, request, `it answered with status ${status} and ${page ?? other}`)
}

function hintFor(code: string, request: VerificationRequest, { header }: DeploymentResponse): string {
  if (code === 'rate_limited' || code === 'store_unavailable' || code === 'overloaded') {
    return formatRetryTime(header)
  }
  if (code !== 'key_invalid') return nextStep(code, request)
  return hasValidChecksum(request.key)
    ? 'Its checksum is correct, so the key is complete, but it belongs to another deployment.'
    : 'Its checksum is wrong: the key is mistyped or incomplete, or not a key at all.'
}

function readProblem({ json }: DeploymentResponse) {
  const { output, success } = v.safeParse(problemSchema, json)
  return success ? output : undefined
}

export function problemCode(response: DeploymentResponse): string | undefined {
  return response.header('content-type') === 'application/problem+json'
    ? readProblem(response)?.code
    : undefined
}

type Subject = { keyId: string | undefined; partner: string; scope?: string | null; module?: string }

function operatorCommand(code: string, { keyId = 'KEY', partner, scope, module }: Subject) {
  const another = ['keys issue', partner, '--name', 'NAME']
  const commands: Readonly<Partial<Record<ProblemCode, readonly string[]>>> = {
    key_revoked: another,
    key_expired: another,
    key_disabled: ['keys enable', keyId],
    partner_suspended: ['partners resume', partner],
    scope_missing: ['scopes grant', keyId, `${scope}`],
    module_inactive: ['modules activate', partner, `${module}`],
    address_not_allowed: ['keys show', keyId],
  }
  return Object.hasOwn(commands, code) ? commands[code as ProblemCode] : undefined
}

/** What to do about a problem, with the operator's command; empty for an unknown one. */
export function nextStep(code: string, subject: Subject): string {
  if (!Object.hasOwn(PROBLEM_ACTIONS, code)) return ''
  const action = PROBLEM_ACTIONS[code as ProblemCode]
    .replace('in `required_scope`', () => subject.scope ?? '')
    .replace('in `required_module`', () => subject.module ?? '')
    .replaceAll('`', '')
  const command = operatorCommand(code, subject)?.join(' ')
  return printable(command ? `${action} The operator's command: partner-api ${command}` : action)
}

/** When `Retry-After`, in seconds or as a date, allows the next request. */
export function formatRetryTime(header: (name: string) => string | undefined): string {
  const seconds = header('retry-after') ?? ''
  if (!/^\d{1,9}$/.test(seconds)) {
    return `Try again ${seconds === '' ? 'later' : `at ${displayName(seconds)}`}.`
  }
  const at = new Date(Date.now() + Number(seconds) * 1_000).toISOString().slice(0, 19).replace('T', ' ')
  return `Try again in ${pluralize(Number(seconds), 'second')}, at ${at} UTC.`
}

/** The address that a redirect of `path` below an address leads to, when it keeps the path. */
export function movedTo({ status, url, header }: DeploymentResponse, path: string): URL | undefined {
  const target = status >= 300 && status < 400 ? URL.parse(header('location') ?? '', url) : null
  if (!target?.pathname.endsWith(path)) return undefined
  // An address without a host, such as data:, has the origin null.
  return URL.parse(target.origin + target.pathname.slice(0, -path.length)) ?? undefined
}

/** @param path Of the request, below the address of the deployment. */
export function redirectError(response: DeploymentResponse, path: string): CliError {
  const { url, header } = response
  const location = header('location') ?? 'nowhere'
  const base = new URL(url.slice(0, -path.length))
  const moved = movedTo(response, path)
  const bare = ({ host, pathname }: URL) => host.replace(/^www\./, '') + pathname.replace(/\/$/, '')
  let step = 'If that is the right deployment, pass its address as --url.'
  if (URL.parse(location, url)?.href === `${url}/`) {
    step = 'Ask the operator to have the server in front of the service leave its paths as they are.'
  }
  if (moved?.protocol === 'https:' && bare(moved) === bare(base)) {
    step = `Pass --url ${displayName(moved.href.replace(/\/$/, ''))}.`
  }
  const reason = 'verify does not follow redirects, which would send the key there.'
  return new CliError(3, 'redirected', `${url} redirects to ${displayName(location)}. ${reason} ${step}`)
}
