/** Written from the route table by test/client/write-wire.ts. */

/** What went wrong (RFC 9457). Decide by `code`; show `detail` to developers. */
export interface Problem {
  /** Names the code. */
  readonly type: string
  /** The same for every problem of one code. */
  readonly title: string
  /** The status of the answer. */
  readonly status: number
  /** What went wrong. Codes are never renamed. */
  readonly code:
    | 'malformed_request'
    | 'ambiguous_credentials'
    | 'invalid_parameter'
    | 'invalid_cursor'
    | 'partner_missing'
    | 'unknown_version'
    | 'key_missing'
    | 'key_invalid'
    | 'key_revoked'
    | 'key_expired'
    | 'key_disabled'
    | 'partner_mismatch'
    | 'partner_suspended'
    | 'scope_missing'
    | 'module_inactive'
    | 'address_not_allowed'
    | 'browser_refused'
    | 'route_not_found'
    | 'profile_not_found'
    | 'banner_not_found'
    | 'method_not_allowed'
    | 'not_acceptable'
    | 'request_timeout'
    | 'idempotency_conflict'
    | 'body_too_large'
    | 'uri_too_long'
    | 'unsupported_media_type'
    | 'invalid_body'
    | 'idempotency_mismatch'
    | 'rate_limited'
    | 'headers_too_large'
    | 'internal'
    | 'store_unavailable'
  /** What went wrong this time. */
  readonly detail: string
  /** Where: the path. */
  readonly instance: string
  /** The same as `X-Request-Id`. */
  readonly request_id: string
  /** The scope that is missing. */
  readonly required_scope?:
    | 'read:partner-widget'
    | 'read:profiles'
    | 'read:banner'
    | 'read:countries'
    | 'read:industries'
    | 'read:plans'
    | 'create:partner-signups'
    | 'read:partner-reports'
    | undefined
  /** The module to activate. */
  readonly required_module?:
    | 'widget'
    | 'profiles'
    | 'banner'
    | 'countries'
    | 'industries'
    | 'pricing'
    | 'signup'
    | 'reporting'
    | undefined
  /** Everything that is wrong with parameters or body, at once. */
  readonly errors?:
    | readonly ({
      /** Name of the parameter or field. */
      readonly parameter?: string | undefined
      /** Place in the body (RFC 6901). */
      readonly pointer?: string | undefined
      /** What is wrong with it. */
      readonly detail: string
    })[]
    | undefined
}
