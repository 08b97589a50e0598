/**
 * The tables of the contract, transcribed by hand. Nothing here imports `core`, so that the service is compared with the
 * contract rather than with itself.
 */

/** Codes of refusals, including those after authorization. */
export type Code =
  | 'uri_too_long'
  | 'route_not_found'
  | 'method_not_allowed'
  | 'unknown_version'
  | 'not_acceptable'
  | 'browser_refused'
  | 'rate_limited'
  | 'key_missing'
  | 'ambiguous_credentials'
  | 'key_invalid'
  | 'key_revoked'
  | 'key_expired'
  | 'key_disabled'
  | 'address_not_allowed'
  | 'unsupported_media_type'
  | 'body_too_large'
  | 'malformed_request'
  | 'invalid_body'
  | 'partner_missing'
  | 'partner_mismatch'
  | 'partner_suspended'
  | 'scope_missing'
  | 'module_inactive'
  | 'invalid_parameter'
  | 'profile_not_found'
  | 'banner_not_found'

/** Section 2, "Problem body". */
export const STATUS: Readonly<Record<Code, number>> = {
  malformed_request: 400,
  ambiguous_credentials: 400,
  invalid_parameter: 400,
  partner_missing: 400,
  unknown_version: 400,
  key_missing: 401,
  key_invalid: 401,
  key_revoked: 401,
  key_expired: 401,
  key_disabled: 401,
  partner_mismatch: 403,
  partner_suspended: 403,
  scope_missing: 403,
  module_inactive: 403,
  address_not_allowed: 403,
  browser_refused: 403,
  route_not_found: 404,
  profile_not_found: 404,
  banner_not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  body_too_large: 413,
  uri_too_long: 414,
  unsupported_media_type: 415,
  invalid_body: 422,
  rate_limited: 429,
}

/** Section 3: each module and its scope. The index is the bit in a set of scopes or modules. */
export const NEEDS: readonly { readonly module: string; readonly scope: string }[] = [
  { module: 'widget', scope: 'read:partner-widget' },
  { module: 'profiles', scope: 'read:profiles' },
  { module: 'banner', scope: 'read:banner' },
  { module: 'countries', scope: 'read:countries' },
  { module: 'industries', scope: 'read:industries' },
  { module: 'pricing', scope: 'read:plans' },
  { module: 'signup', scope: 'create:partner-signups' },
  { module: 'reporting', scope: 'read:partner-reports' },
]

/** An endpoint that needs a key. */
export interface Endpoint {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly scope: string | undefined
  /** The status of success. */
  readonly success: number
}

/** Section 4. */
export const ENDPOINTS: readonly Endpoint[] = [
  { method: 'POST', path: '/service/developer/verify-key', scope: undefined, success: 200 },
  { method: 'GET', path: '/service/public/profiles/recent', scope: 'read:profiles', success: 200 },
  { method: 'GET', path: '/service/public/profiles', scope: 'read:profiles', success: 200 },
  { method: 'GET', path: '/service/public/profiles/{slug}', scope: 'read:profiles', success: 200 },
  { method: 'GET', path: '/service/public/banner', scope: 'read:banner', success: 200 },
  { method: 'GET', path: '/service/public/countries', scope: 'read:countries', success: 200 },
  { method: 'GET', path: '/service/public/industries', scope: 'read:industries', success: 200 },
  { method: 'GET', path: '/service/public/plans', scope: 'read:plans', success: 200 },
  { method: 'GET', path: '/service/partner-widget', scope: 'read:partner-widget', success: 200 },
  { method: 'GET', path: '/service/partner/reports/summary', scope: 'read:partner-reports', success: 200 },
  { method: 'GET', path: '/service/partner/reports/activity', scope: 'read:partner-reports', success: 200 },
  { method: 'POST', path: '/service/partner/signups', scope: 'create:partner-signups', success: 201 },
]

/** Everything that can be wrong with a request and its facts. By default nothing is. */
export interface Situation {
  readonly target?: 'too-long'
  readonly route?: 'unknown' | 'wrong-method'
  readonly version?: 'unknown'
  readonly accept?: 'excludes'
  readonly sender?: 'browser'
  /** The client's address has spent `authfail`; `knownGood`: but the key was used successfully before. */
  readonly authfail?: 'spent'
  readonly knownGood?: boolean
  readonly credential?: 'missing' | 'ambiguous' | 'wrong'
  readonly revoked?: boolean
  readonly expired?: boolean
  readonly disabled?: boolean
  readonly address?: 'refused'
  readonly limit?: 'spent'
  readonly media?: 'wrong-type'
  readonly size?: 'too-large'
  readonly json?: 'malformed' | 'no-object'
  readonly claim?: 'missing' | 'foreign' | 'repeated'
  readonly suspended?: boolean
  readonly scope?: 'not-held'
  readonly module?: 'inactive'
  readonly input?: 'wrong-parameter' | 'wrong-member'
  readonly resource?: 'no-profile' | 'no-banner'
  readonly precondition?: 'met'
}

/** Section 2, "the order is part of the contract": each check and the code of its failure. */
const ORDER: readonly (readonly [wrong: (situation: Situation) => unknown, Code])[] = [
  // 1
  [(one) => one.target, 'uri_too_long'],
  // 2
  [(one) => one.route === 'unknown', 'route_not_found'],
  [(one) => one.route === 'wrong-method', 'method_not_allowed'],
  // 3
  [(one) => one.version, 'unknown_version'],
  [(one) => one.accept, 'not_acceptable'],
  [(one) => one.sender, 'browser_refused'],
  // 4; section 10: a missing key is not limited
  [
    (one) => one.authfail && one.credential !== 'missing' && !(one.knownGood && one.credential === undefined),
    'rate_limited',
  ],
  // 5
  [(one) => one.credential === 'missing', 'key_missing'],
  [(one) => one.credential === 'ambiguous', 'ambiguous_credentials'],
  // 6, the states in the order of the contract
  [(one) => one.credential === 'wrong', 'key_invalid'],
  [(one) => one.revoked, 'key_revoked'],
  [(one) => one.expired, 'key_expired'],
  [(one) => one.disabled, 'key_disabled'],
  // 7
  [(one) => one.address, 'address_not_allowed'],
  // 8
  [(one) => one.limit, 'rate_limited'],
  // 9; a body that is no object is 422 before its partner is checked
  [(one) => one.media, 'unsupported_media_type'],
  [(one) => one.size, 'body_too_large'],
  [(one) => one.json === 'malformed', 'malformed_request'],
  [(one) => one.json === 'no-object', 'invalid_body'],
  // 10
  [(one) => one.claim === 'repeated', 'invalid_parameter'],
  [(one) => one.claim === 'missing', 'partner_missing'],
  [(one) => one.claim === 'foreign', 'partner_mismatch'],
  [(one) => one.suspended, 'partner_suspended'],
  // 11
  [(one) => one.scope, 'scope_missing'],
  [(one) => one.module, 'module_inactive'],
  // 12
  [(one) => one.input === 'wrong-parameter', 'invalid_parameter'],
  [(one) => one.input === 'wrong-member', 'invalid_body'],
  // 14
  [(one) => one.resource === 'no-profile', 'profile_not_found'],
  [(one) => one.resource === 'no-banner', 'banner_not_found'],
]

/** The codes of the policy, in the order of the contract. */
export const POLICY_ORDER: readonly Code[] = [
  'key_revoked',
  'key_expired',
  'key_disabled',
  'address_not_allowed',
  'partner_missing',
  'partner_mismatch',
  'partner_suspended',
  'scope_missing',
  'module_inactive',
]

/** The response that the contract requires. */
export interface ExpectedResponse {
  readonly code: Code | undefined
  readonly status: number
  readonly challenge: string | undefined
  readonly requiredScope: string | undefined
  readonly requiredModule: string | undefined
}

/** @returns The code of the first check that fails, or `undefined` when none does. */
export function refusalOf(situation: Situation): Code | undefined {
  return ORDER.find(([wrong]) => wrong(situation))?.[1]
}

/** The required response to a request. */
export function expectedResponse(situation: Situation, endpoint: Endpoint): ExpectedResponse {
  const code = refusalOf(situation)
  return {
    code,
    status: code !== undefined ? STATUS[code] : situation.precondition === 'met' ? 304 : endpoint.success,
    challenge: challengeOf(code, endpoint.scope),
    requiredScope: code === 'scope_missing' ? endpoint.scope : undefined,
    requiredModule: code === 'module_inactive'
      ? NEEDS.find(({ scope }) => scope === endpoint.scope)?.module
      : undefined,
  }
}

/** Section 2, the table of situations; section 10: every 401 for a credential says `invalid_token`. */
function challengeOf(code: Code | undefined, scope: string | undefined): string | undefined {
  switch (code) {
    case 'key_missing':
      return 'Bearer realm="service"'
    case 'key_invalid':
    case 'key_revoked':
    case 'key_expired':
    case 'key_disabled':
      return 'Bearer realm="service", error="invalid_token"'
    case 'scope_missing':
      return `Bearer realm="service", error="insufficient_scope", scope="${scope}"`
    default:
      return undefined
  }
}
