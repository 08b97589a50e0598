import { assertInteger, assertOptions, type OptionKinds } from '../lib/options.ts'

/** Default base of the `type` of problems. */
export const DEFAULT_PROBLEM_BASE = 'https://partner-api.example/problems'

/** Status and default detail of every problem. */
export const PROBLEMS = {
  malformed_request: { status: 400, detail: 'The request is not well-formed HTTP or not well-formed JSON.' },
  ambiguous_credentials: { status: 400, detail: 'The request carries more than one credential.' },
  invalid_parameter: { status: 400, detail: 'One or more parameters are not acceptable.' },
  invalid_cursor: { status: 400, detail: 'The cursor was altered or belongs to another list.' },
  partner_missing: { status: 400, detail: 'The request does not name a partner.' },
  unknown_version: { status: 400, detail: 'The version that the request asks for does not exist.' },
  key_missing: { status: 401, detail: 'The request carries no key.' },
  key_invalid: { status: 401, detail: 'The key is not valid.' },
  key_revoked: { status: 401, detail: 'The key has been revoked.' },
  key_expired: { status: 401, detail: 'The key has expired.' },
  key_disabled: { status: 401, detail: 'The key is disabled.' },
  partner_mismatch: { status: 403, detail: 'The key does not belong to the partner that the request names.' },
  partner_suspended: { status: 403, detail: 'The partner is suspended.' },
  scope_missing: { status: 403, detail: 'The key does not hold the scope that this endpoint needs.' },
  module_inactive: {
    status: 403,
    detail: 'The partner has not activated the module that this endpoint needs.',
  },
  self_service_disabled: { status: 403, detail: 'The partner may not do this itself.' },
  address_not_allowed: { status: 403, detail: 'The key may not be used from this address.' },
  browser_refused: {
    status: 403,
    detail: 'Keys are used from servers only, and this request comes from a browser.',
  },
  route_not_found: { status: 404, detail: 'There is no such endpoint.' },
  profile_not_found: { status: 404, detail: 'There is no such profile.' },
  banner_not_found: { status: 404, detail: 'There is no banner at this time.' },
  claim_not_found: { status: 404, detail: 'There is no such link.' },
  not_found: { status: 404, detail: 'There is nothing with this id.' },
  method_not_allowed: { status: 405, detail: 'This endpoint does not have this method.' },
  not_acceptable: {
    status: 406,
    detail: 'This endpoint answers with none of the media types that the request accepts.',
  },
  request_timeout: { status: 408, detail: 'The request did not arrive in time.' },
  idempotency_conflict: {
    status: 409,
    detail: 'The first request with this idempotency key is still being worked on.',
  },
  rotation_conflict: {
    status: 409,
    detail: 'The key has a successor that was used, or that another request has just made.',
  },
  conflict: { status: 409, detail: 'The state of what the request would change does not allow it.' },
  claim_spent: { status: 410, detail: 'This link was used or revoked, or has expired.' },
  body_too_large: { status: 413, detail: 'The body is larger than 32 KiB.' },
  uri_too_long: { status: 414, detail: 'The request target is longer than 8 KiB.' },
  unsupported_media_type: { status: 415, detail: 'The body must be application/json.' },
  invalid_body: { status: 422, detail: 'One or more members of the body are not acceptable.' },
  idempotency_mismatch: { status: 422, detail: 'This idempotency key was used with another body.' },
  rate_limited: { status: 429, detail: 'Too many requests.' },
  headers_too_large: { status: 431, detail: 'The header fields together are larger than 32 KiB.' },
  internal: { status: 500, detail: 'The service failed to answer.' },
  store_unavailable: { status: 503, detail: 'The service cannot reach its store.' },
  overloaded: { status: 503, detail: 'The service has too much to do at the moment.' },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly detail: string }>>

/** A problem code. Codes are part of the contract: they are never renamed, and keep their status. */
export type ProblemCode = keyof typeof PROBLEMS

export const PROBLEM_CODES = Object.keys(PROBLEMS) as readonly ProblemCode[]

const titleOverrides: { readonly [code in ProblemCode]?: string } = {
  uri_too_long: 'URI too long',
  internal: 'Internal error',
}

/** The title of a problem, the same for every occurrence (RFC 9457 §3.1.3). */
function problemTitle(code: ProblemCode): string {
  return titleOverrides[code] ?? code.charAt(0).toUpperCase() + code.slice(1).replaceAll('_', ' ')
}

/** What is wrong with one parameter of a query or one member of a body. */
export type InputError =
  | { readonly parameter: string; readonly detail: string }
  | { readonly pointer: string; readonly detail: string }

/** What an occurrence adds to its code. */
export interface ProblemMembers {
  /** Shown to the partner's developer; never contains a value that might be a secret. */
  readonly detail?: string
  /** The scope that the key would need. */
  readonly required_scope?: string
  /** The module that the partner would have to activate. */
  readonly required_module?: string
  /** Everything that is wrong with a query or a body. */
  readonly errors?: readonly InputError[]
  /** Whole seconds for `Retry-After`; not a member of the body. */
  readonly retryAfterSeconds?: number
  /** The methods for `Allow`; not a member of the body. */
  readonly allow?: string
}

const memberKinds: OptionKinds<ProblemMembers> = {
  detail: 'a text',
  required_scope: 'a text',
  required_module: 'a text',
  errors: 'a list',
  retryAfterSeconds: 'anything',
  allow: 'a text',
}

/** A problem on its way to becoming a response: the only error that a handler throws on purpose. */
export class Problem extends Error {
  /** Always `Problem`. */
  override readonly name: string = 'Problem'
  /** Determines status, type and title of the response. */
  readonly code: ProblemCode
  /** What this occurrence adds. */
  readonly members: ProblemMembers

  /**
   * Defaults to the `detail` of the code.
   *
   * @param cause The internal error, for the log; never sent to the client.
   * @throws {TypeError} for a code or the name of a member that does not exist.
   * @throws {RangeError} unless `retryAfterSeconds` is an integer from 0 to 2,147,483,647.
   */
  constructor(code: ProblemCode, members: ProblemMembers = {}, cause?: unknown) {
    if (!Object.hasOwn(PROBLEMS, code)) throw new TypeError(`There is no problem with the code ${code}.`)
    assertOptions('Problem', members, memberKinds)
    const { retryAfterSeconds } = members
    if (retryAfterSeconds !== undefined) {
      assertInteger('retryAfterSeconds', retryAfterSeconds, 0, 2_147_483_647)
    }
    super(members.detail ?? PROBLEMS[code].detail, { cause })
    this.code = code
    this.members = members
  }
}

/** The body of a problem response (RFC 9457). */
export function problemDocument(
  code: ProblemCode,
  { retryAfterSeconds: _retryAfterSeconds, allow: _allow, ...members }: ProblemMembers,
  base: string,
  instance: string,
  requestId: string,
) {
  const { status, detail } = PROBLEMS[code]
  return {
    type: `${base}/${code.replaceAll('_', '-')}`,
    title: problemTitle(code),
    status,
    code,
    detail,
    instance,
    request_id: requestId,
    ...members,
  }
}
