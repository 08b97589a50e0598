import type { ProblemCode } from './problem.ts'

/** What a partner's developer does about each problem. Apart from the problems, so that servers do not load it. */
export const PROBLEM_ACTIONS: Readonly<Record<ProblemCode, string>> = {
  malformed_request: 'Correct the syntax of the request: its headers, its percent-encoding, its JSON.',
  ambiguous_credentials: 'Send the key once, or the same key in both headers.',
  invalid_parameter: 'Correct the parameters in `errors`.',
  invalid_cursor: 'Start again at the first page. Send a cursor only with the parameters of its list.',
  partner_missing: 'Send `partner`: in the query of a GET, in the body of a POST.',
  unknown_version: 'Send a version that exists, or no version.',
  key_missing: 'Send the key in its header, never in a URL. If you did, a proxy or gateway drops the header.',
  key_invalid:
    'Check that the key is complete: its checksum tells. If it is, it belongs to another deployment.',
  key_revoked: 'This is final: ask the operator for another key.',
  key_expired: 'This is final: ask the operator for another key.',
  key_disabled: 'Ask the operator to enable the key.',
  partner_mismatch: 'The key is valid, but it belongs to another partner: check the partner slug.',
  partner_suspended: 'Ask the operator to resume the partner.',
  scope_missing: 'Ask the operator to grant the key the scope in `required_scope`.',
  module_inactive: 'Ask the operator to activate the module in `required_module`.',
  self_service_disabled: 'Ask the operator to do it, or to allow it to the partner.',
  address_not_allowed: 'The key has an IP allow-list: send requests from where the integration runs.',
  browser_refused: 'Call the service from your server, and have your pages call the server.',
  route_not_found: 'Check the path. It has the name of the service, and no slash at its end.',
  profile_not_found:
    'Remove the profile from your pages. The partner can no longer see it, or it never existed.',
  banner_not_found: 'Show no banner.',
  claim_not_found: 'Check that the link is complete. If it is, ask the operator for another one.',
  not_found: 'Check the id. What it named may have been removed.',
  method_not_allowed: 'Use a method in the header `Allow`.',
  not_acceptable: 'Accept the media type of the endpoint, or send no `Accept`.',
  request_timeout: 'Try again. If it happens often, check the connection.',
  idempotency_conflict: 'Wait a second, then send the same request again.',
  rotation_conflict:
    'Use the successor, and rotate that one the next time. If it is lost, ask the operator for another key.',
  conflict: 'Read the current state before you send the request again.',
  claim_spent:
    'Ask the operator for another link. If you did not use this one, say so: somebody else has the key.',
  body_too_large: 'Send a shorter body.',
  uri_too_long: 'Send fewer or shorter parameters.',
  unsupported_media_type: 'Send JSON, with `Content-Type: application/json`.',
  invalid_body: 'Correct the members in `errors`. The corrected body may use the same idempotency key.',
  idempotency_mismatch: 'Generate a new idempotency key for each new signup.',
  rate_limited: 'Try again after the seconds in `Retry-After`.',
  headers_too_large: 'Send fewer or shorter headers.',
  internal: 'Try again. If it happens again, send the operator the request ID.',
  store_unavailable: 'Try again after the seconds in `Retry-After`.',
  overloaded: 'Try again after the seconds in `Retry-After`. Longer words make a search faster.',
}
