/** Expected responses of the contract. */
import type { TestContext, TestResponse } from './service.ts'

/** The problem codes that requests can cause, by status (section 2). */
const codes = {
  400: [
    'malformed_request',
    'ambiguous_credentials',
    'invalid_parameter',
    'invalid_cursor',
    'partner_missing',
    'unknown_version',
  ],
  401: ['key_missing', 'key_invalid', 'key_revoked', 'key_expired', 'key_disabled'],
  403: [
    'partner_mismatch',
    'partner_suspended',
    'scope_missing',
    'module_inactive',
    'self_service_disabled',
    'address_not_allowed',
    'browser_refused',
  ],
  404: ['route_not_found', 'profile_not_found', 'banner_not_found', 'claim_not_found', 'not_found'],
  405: ['method_not_allowed'],
  406: ['not_acceptable'],
  409: ['idempotency_conflict', 'rotation_conflict', 'conflict'],
  410: ['claim_spent'],
  413: ['body_too_large'],
  414: ['uri_too_long'],
  415: ['unsupported_media_type'],
  422: ['invalid_body', 'idempotency_mismatch'],
  429: ['rate_limited'],
  431: ['headers_too_large'],
} as const

export type Code = (typeof codes)[keyof typeof codes][number]

export const STATUS = Object.fromEntries(
  Object.entries(codes).flatMap(([status, codes]) => codes.map((code) => [code, Number(status)])),
) as Readonly<Record<Code, number>>

/** Expected members that only some problems have. */
export interface Extra {
  /** Not compared by default. */
  readonly instance?: string
  readonly base?: string
  readonly members?: Readonly<Record<string, unknown>>
  /** The parameters or pointers of `errors`, in any order. */
  readonly errors?: readonly string[]
}

const everyProblem = ['type', 'title', 'status', 'code', 'detail', 'instance', 'request_id']

/** Additional members by code. */
const moreMembers: Partial<Record<Code, string>> = {
  invalid_parameter: 'errors',
  invalid_body: 'errors',
  scope_missing: 'required_scope',
  module_inactive: 'required_module',
}

/** Checks a problem: its code and status, exactly its members, and its type. */
export function expectProblem(
  t: TestContext,
  response: TestResponse,
  code: Code,
  what: string,
  extra: Extra = {},
): void {
  const { json, status } = response
  if (json?.code !== code || status !== STATUS[code]) {
    t.strictSame([status, json?.code], [STATUS[code], code], what)
    return
  }
  const more = moreMembers[code]
  const names = more === undefined ? everyProblem : [...everyProblem, more]
  const base = extra.base ?? 'https://partner-api.example/problems'
  const actual = [
    json.type,
    Object.keys(json).toSorted().join(),
    typeof json.title,
    typeof json.detail,
    ...(extra.instance === undefined ? [] : [json.instance]),
    ...Object.keys(extra.members ?? {}).map((name) => json[name]),
    ...(extra.errors ? [invalidFields(response)] : []),
  ]
  const expected = [
    `${base}/${code.replaceAll('_', '-')}`,
    names.toSorted().join(),
    'string',
    'string',
    ...(extra.instance === undefined ? [] : [extra.instance]),
    ...Object.values(extra.members ?? {}),
    ...(extra.errors ? [extra.errors.toSorted()] : []),
  ]
  t.strictSame(actual, expected, what)
}

/** The parameters or pointers that a validation problem names, sorted; an invalid entry as JSON. */
export function invalidFields({ json }: TestResponse): string[] {
  const errors: Readonly<Record<string, unknown>>[] = json?.errors ?? []
  return errors.map((error) => {
    const place = error['parameter'] ?? error['pointer']
    const proper = Object.keys(error).length === 2 &&
      typeof error['detail'] === 'string' &&
      error['detail'] !== ''
    return proper && typeof place === 'string' ? place : JSON.stringify(error)
  }).toSorted()
}

/** Checks an `invalid_parameter` problem that names exactly these parameters. */
export function expectInvalid(
  t: TestContext,
  response: TestResponse,
  parameters: readonly string[],
  what: string,
): void {
  expectProblem(t, response, 'invalid_parameter', what, { errors: parameters })
}

/** `data` of a 200. */
// deno-lint-ignore no-explicit-any -- a test reads whatever members it expects
export function dataOf(t: TestContext, response: TestResponse, what: string): any {
  t.equal(response.status, 200, what)
  return response.json?.data
}

/** The parts of a response that must be equal where the contract requires identical responses. */
export function comparable({ status, headers, text }: TestResponse): Record<string, unknown> {
  const requestId = headers.get('x-request-id') ?? 'none'
  const varying = ['x-request-id', 'date', 'ratelimit', 'content-length', 'connection', 'keep-alive']
  const fields = [...headers].filter(([name]) => !varying.includes(name)).toSorted()
  return { status, fields, text: text.replaceAll(requestId, 'REQUEST-ID') }
}

/** Section 3: the scope of each module. */
export const SCOPES = {
  widget: 'read:partner-widget',
  profiles: 'read:profiles',
  banner: 'read:banner',
  countries: 'read:countries',
  industries: 'read:industries',
  pricing: 'read:plans',
  signup: 'create:partner-signups',
  reporting: 'read:partner-reports',
} as const

/** Section 4: the endpoints with a scope, below the path of the service. */
export const SCOPED_ENDPOINTS = ([
  ['/partner-widget', 'widget'],
  ['/public/profiles/recent', 'profiles'],
  ['/public/profiles', 'profiles'],
  ['/public/profiles/{slug}', 'profiles'],
  ['/public/banner', 'banner'],
  ['/public/countries', 'countries'],
  ['/public/industries', 'industries'],
  ['/public/plans', 'pricing'],
  ['/partner/reports/summary', 'reporting'],
  ['/partner/reports/activity', 'reporting'],
  ['/partner/signups', 'signup'],
] as const).map(([path, module]) => ({ path, module, method: module === 'signup' ? 'POST' : 'GET' }))

/** The paths of the public content and the widget, below a service's root. */
export function keyedPaths(root = ''): readonly string[] {
  return SCOPED_ENDPOINTS.slice(0, 8).map(({ path }) =>
    root + path.replace('{slug}', 'universite-de-valmorne')
  )
}
