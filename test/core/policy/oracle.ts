/**
 * The tables of the contract, transcribed by hand. Nothing here imports `core`, so that the service is compared with the
 * contract rather than with itself.
 */
import { type Code, SCOPED_ENDPOINTS, SCOPES, STATUS } from '../../contract/http/expect.ts'

/** Section 3: each module and its scope. The index is the bit in a set of scopes or modules. */
export const NEEDS: readonly { readonly module: string; readonly scope: string }[] = Object.entries(SCOPES)
  .map(([module, scope]) => ({ module, scope }))

/** An endpoint that needs a key. */
export interface Endpoint {
  readonly method: string
  readonly path: string
  readonly scope: string | undefined
  /** The status of success. */
  readonly success: number
}

/** Section 4. */
export const ENDPOINTS: readonly Endpoint[] = [
  { method: 'POST', path: '/service/developer/verify-key', scope: undefined, success: 200 },
  { method: 'POST', path: '/service/developer/rotate-key', scope: undefined, success: 201 },
  { method: 'POST', path: '/service/developer/revoke-key', scope: undefined, success: 200 },
  ...SCOPED_ENDPOINTS.map(({ method, path, module }) => ({
    method,
    path: `/service${path}`,
    scope: SCOPES[module],
    success: method === 'POST' ? 201 : 200,
  })),
]

/** Section 12: the modules and endpoints of the host of these tests. */
export const OWN_NEEDS: typeof NEEDS = [
  { module: 'orders', scope: 'read:orders' },
  { module: 'ordering', scope: 'create:orders' },
]

/** The second one is cached by a revision. */
export const OWN_ENDPOINTS: readonly Endpoint[] = [
  { method: 'GET', path: '/service/orders', scope: 'read:orders', success: 200 },
  { method: 'GET', path: '/service/orders/{slug}', scope: 'read:orders', success: 200 },
  { method: 'POST', path: '/service/orders', scope: 'create:orders', success: 201 },
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
  readonly requestedPartner?: 'missing' | 'foreign' | 'repeated'
  readonly suspended?: boolean
  readonly scope?: 'not-held'
  readonly module?: 'inactive'
  readonly selfService?: 'not-allowed'
  readonly input?: 'wrong-parameter' | 'wrong-member'
  readonly resource?: 'no-profile' | 'no-banner' | 'no-order'
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
  [(one) => one.requestedPartner === 'repeated', 'invalid_parameter'],
  [(one) => one.requestedPartner === 'missing', 'partner_missing'],
  [(one) => one.requestedPartner === 'foreign', 'partner_mismatch'],
  [(one) => one.suspended, 'partner_suspended'],
  // 11
  [(one) => one.scope, 'scope_missing'],
  [(one) => one.module, 'module_inactive'],
  // 11; section 13
  [(one) => one.selfService, 'self_service_disabled'],
  // 12
  [(one) => one.input === 'wrong-parameter', 'invalid_parameter'],
  [(one) => one.input === 'wrong-member', 'invalid_body'],
  // 14
  [(one) => one.resource === 'no-profile', 'profile_not_found'],
  [(one) => one.resource === 'no-banner', 'banner_not_found'],
  [(one) => one.resource === 'no-order', 'not_found'],
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
  'self_service_disabled',
]

/** @returns The code of the first check that fails, or `undefined` when none does. */
export function refusalOf(situation: Situation): Code | undefined {
  return ORDER.find(([wrong]) => wrong(situation))?.[1]
}

/** The required response to a request: status, challenge and the members that only its problem has. */
export function expectedResponse(situation: Situation, { scope, success }: Endpoint) {
  const code = refusalOf(situation)
  const members: Record<string, unknown> = {}
  if (code === 'scope_missing') members['required_scope'] = scope
  if (code === 'module_inactive') {
    members['required_module'] = [...NEEDS, ...OWN_NEEDS].find((need) => need.scope === scope)?.module
  }
  const status = code !== undefined ? STATUS[code] : situation.precondition === 'met' ? 304 : success
  return { code, status, challenge: challengeOf(code, scope), members }
}

/** Section 2, the table of situations; section 10: every 401 for a credential says `invalid_token`. */
function challengeOf(code: Code | undefined, scope: string | undefined): string | undefined {
  if (code === 'key_missing') return 'Bearer realm="service"'
  if (code === 'scope_missing') return `Bearer realm="service", error="insufficient_scope", scope="${scope}"`
  return code?.startsWith('key_') ? 'Bearer realm="service", error="invalid_token"' : undefined
}
