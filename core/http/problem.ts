/**
 * The table of problems: every code that the service answers with, its status and title.
 * `title` is short and the same for every occurrence (RFC 9457 §3.1.3).
 */
export const PROBLEMS = {
  malformed_request: { status: 400, title: 'Malformed request' },
  ambiguous_credentials: { status: 400, title: 'Ambiguous credentials' },
  invalid_parameter: { status: 400, title: 'Invalid parameter' },
  invalid_cursor: { status: 400, title: 'Invalid cursor' },
  partner_missing: { status: 400, title: 'Partner missing' },
  unknown_version: { status: 400, title: 'Unknown version' },
  key_missing: { status: 401, title: 'Key missing' },
  key_invalid: { status: 401, title: 'Key invalid' },
  key_revoked: { status: 401, title: 'Key revoked' },
  key_expired: { status: 401, title: 'Key expired' },
  key_disabled: { status: 401, title: 'Key disabled' },
  partner_mismatch: { status: 403, title: 'Partner mismatch' },
  partner_suspended: { status: 403, title: 'Partner suspended' },
  scope_missing: { status: 403, title: 'Scope missing' },
  module_inactive: { status: 403, title: 'Module inactive' },
  address_not_allowed: { status: 403, title: 'Address not allowed' },
  browser_refused: { status: 403, title: 'Browser refused' },
  route_not_found: { status: 404, title: 'Route not found' },
  profile_not_found: { status: 404, title: 'Profile not found' },
  banner_not_found: { status: 404, title: 'Banner not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  not_acceptable: { status: 406, title: 'Not acceptable' },
  request_timeout: { status: 408, title: 'Request timeout' },
  idempotency_conflict: { status: 409, title: 'Idempotency conflict' },
  body_too_large: { status: 413, title: 'Body too large' },
  uri_too_long: { status: 414, title: 'URI too long' },
  unsupported_media_type: { status: 415, title: 'Unsupported media type' },
  invalid_body: { status: 422, title: 'Invalid body' },
  idempotency_mismatch: { status: 422, title: 'Idempotency mismatch' },
  rate_limited: { status: 429, title: 'Rate limited' },
  headers_too_large: { status: 431, title: 'Headers too large' },
  internal: { status: 500, title: 'Internal error' },
  store_unavailable: { status: 503, title: 'Store unavailable' },
} as const satisfies Record<string, { status: number; title: string }>

/** A code of the table. Codes are part of the contract: one is never renamed or given another status. */
export type ProblemCode = keyof typeof PROBLEMS

/** What one parameter of a query or one member of a body did wrong. */
export type InputError =
  | { readonly parameter: string; readonly detail: string }
  | { readonly pointer: string; readonly detail: string }

/** What an occurrence adds to its code. */
export interface ProblemMembers {
  /** Said to the partner's developer; never holds a value that might be a secret. */
  readonly detail?: string
  readonly required_scope?: string
  readonly required_module?: string
  readonly errors?: readonly InputError[]
  /** Whole seconds for `Retry-After`; not a member of the body. */
  readonly retryAfterSeconds?: number
}

/** A refusal on its way to becoming an answer: the only thing that a handler throws on purpose. */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  readonly members: ProblemMembers

  constructor(code: ProblemCode, members: ProblemMembers = {}) {
    super(members.detail ?? PROBLEMS[code].title)
    this.code = code
    this.members = members
  }
}
