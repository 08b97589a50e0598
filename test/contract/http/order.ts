/** Section 2: the first failing check of a request determines the response. */
import { FENCE, type TestKey } from '../../support/world.ts'
import { type Code, expectProblem } from './expect.ts'
import { forge } from './forgery.ts'
import {
  type Service,
  type Suite,
  type TestContext,
  type TestRequest,
  type TestResponse,
  withKey,
} from './service.ts'

/** A valid request, before faults are applied. */
interface Draft {
  method: string
  path: string
  query: string
  headers: Record<string, string | readonly string[]>
  body: string | undefined
}

/** Makes a request invalid. */
type Fault = (draft: Draft, service: Service) => void

const key = (choose: (service: Service) => TestKey): Fault => (draft, service) =>
  void (draft.headers['x-service-partner-key'] = choose(service).text)
const field = (name: string, value: string): Fault => ({ headers }) => void (headers[name] = value)
const more = (query: string): Fault => (draft) => void (draft.query += query)
const query = (query: string): Fault => (draft) => void (draft.query = query)
const path = (path: string): Fault => (draft) => void (draft.path = path)
const body = (body: string): Fault => (draft) => void (draft.body = body)

const tooLong = more(`&q=${'a'.repeat(8192)}`)
const version = field('service-version', '1999-01-01')
const accept = field('accept', 'text/html')
const browser = field('origin', 'https://browser.example')
const wrongMethod: Fault = (draft) => void (draft.method = 'DELETE')
const ambiguous: Fault = ({ headers }) => void (headers['authorization'] = 'Bearer nonsense')
const noKey: Fault = ({ headers }) => void (delete headers['x-service-partner-key'])
const invalid: Fault = ({ headers }) =>
  void (headers['x-service-partner-key'] = forge('spk_live', 'Nobody000000'))
const outside = field('x-forwarded-for', FENCE.outside)
const inside = field('x-forwarded-for', FENCE.inside)
const floodedAddress = field('x-forwarded-for', '192.0.2.66')
const named = (name: keyof Service['world']['keys']): Fault => key(({ world }) => world.keys[name])

const far = { quota: 1_000_000, windowSeconds: 60 }

export const order: readonly Suite[] = [{
  settings: {
    trustedProxies: 1,
    limits: { key: far, verify: far, authfail: { quota: 2, windowSeconds: 600 } },
  },
  tests: { 'the first failing check determines the response': firstFailure },
}]

async function firstFailure(t: TestContext, service: Service): Promise<void> {
  const spent = await spentKey(service)
  await flood(service)
  const profile = { path: '/public/profiles/universite-de-valmorne' }
  for (const [code, what, ...faults] of gets(spent)) {
    expectProblem(t, await send(service, profile, faults), code, `GET: ${what}`)
  }
  const verify = { method: 'POST', path: '/developer/verify-key', query: '', body: '{"partner":"demo"}' }
  for (const [code, what, ...faults] of posts(spent)) {
    const response = await send(service, verify, [field('content-type', 'application/json'), ...faults])
    expectProblem(t, response, code, `POST: ${what}`)
  }
  t.equal((await send(service, profile, [])).status, 200, 'the request without a fault succeeds')
}

/** Faults of two or more neighbouring steps, and the code of the earliest. */
function gets(spent: TestKey): readonly [Code, string, ...Fault[]][] {
  const spentKey = key(() => spent)
  const nowhere = path('/nowhere')
  const noProfile = path('/public/profiles/no-such')
  return [
    ['uri_too_long', '1 target before 2 route', tooLong, nowhere],
    ['uri_too_long', '1 target before 2 method', tooLong, wrongMethod],
    ['route_not_found', '2 route before 3 version', nowhere, version],
    ['method_not_allowed', '2 method before 3 version', wrongMethod, version],
    ['method_not_allowed', '2 method before 5 credential', wrongMethod, noKey],
    ['unknown_version', '3 version before media type', version, accept],
    ['not_acceptable', '3 media type before browser', accept, browser],
    ['browser_refused', '3 browser before 4 failing address', browser, floodedAddress, invalid],
    ['rate_limited', '4 failing address before 5 shape', floodedAddress, ambiguous],
    ['rate_limited', '4 failing address before 6 state', floodedAddress, named('demo revoked')],
    ['key_missing', '5 a missing key is not limited', floodedAddress, noKey],
    ['browser_refused', '3 browser before 5 shape', browser, ambiguous],
    ['key_missing', '5 missing before 10 partner', noKey, query('')],
    ['ambiguous_credentials', '5 shape before 6 look-up', invalid, ambiguous],
    ['ambiguous_credentials', '5 shape before 6 state', named('demo expired'), ambiguous],
    ['key_revoked', '6 state before 7 address', named('demo fenced and revoked'), outside],
    ['key_invalid', '6 look-up before 10 partner', invalid, query('partner=acme')],
    ['key_disabled', '6 state before 10 partner', named('demo disabled'), query('')],
    ['address_not_allowed', '7 address before 8 limits', spentKey, outside],
    ['address_not_allowed', '7 address before 10 partner', named('demo fenced'), outside, query('')],
    ['rate_limited', '8 limits before 10 missing partner', spentKey, inside, query('')],
    ['rate_limited', '8 limits before 10 mismatch', spentKey, inside, query('partner=acme')],
    ['rate_limited', '8 limits before 12 parameters', spentKey, inside, more('&x=1')],
    ['invalid_parameter', '10 a repeated partner before its mismatch', query('partner=acme&partner=x')],
    ['partner_mismatch', '10 mismatch before suspension', named('hush full'), query('partner=demo')],
    ['partner_missing', '10 missing before suspension', named('hush full'), query('')],
    ['partner_suspended', '10 suspension before 11 scope', named('hush powerless'), query('partner=hush')],
    ['partner_mismatch', '10 mismatch before 11 scope', named('demo powerless'), query('partner=acme')],
    ['scope_missing', '11 scope before module', named('kiosk full'), query('partner=kiosk')],
    ['scope_missing', '11 scope before 12 parameters', named('demo powerless'), more('&x=1')],
    ['module_inactive', '11 before 12', named('acme full'), query('partner=acme&x=1'), path('/public/plans')],
    ['partner_missing', '10 partner before 12 parameters', query('x=1')],
    ['partner_mismatch', '10 mismatch before 12 parameters', query('partner=acme&limit=0')],
    ['invalid_parameter', '12 parameters before 14 resource', noProfile, more('&x=1')],
    ['scope_missing', '11 scope before 14 resource', named('demo powerless'), noProfile],
    ['profile_not_found', '14 resource before 15 precondition', noProfile, field('if-none-match', '*')],
    ['scope_missing', '11 scope before 15', named('demo powerless'), field('if-none-match', '*')],
    ['key_revoked', '6 state before 15', named('demo revoked'), field('if-none-match', '*')],
  ]
}

function posts(spent: TestKey): readonly [Code, string, ...Fault[]][] {
  const text = field('content-type', 'text/plain')
  const large = body(`{"partner":"acme"${' '.repeat(32_768)}`)
  const broken = body('{"partner":"acme"')
  const spentKey = key(() => spent)
  return [
    ['method_not_allowed', '2 before 9', (draft) => void (draft.method = 'PUT'), text],
    ['browser_refused', '3 before 9', browser, text],
    ['key_missing', '5 before 9', noKey, text],
    ['key_invalid', '6 before 9', invalid, large],
    ['address_not_allowed', '7 before 9', named('demo fenced'), outside, text],
    ['rate_limited', '8 limits before 9 media type', spentKey, inside, text],
    ['rate_limited', '8 limits before 9 JSON', spentKey, inside, broken],
    ['unsupported_media_type', '9 media type before size', text, large],
    ['unsupported_media_type', '9 media type before JSON', text, broken],
    ['body_too_large', '9 size before JSON', large],
    ['unsupported_media_type', '9 media type before 10 partner', text, body('{}')],
    ['malformed_request', '9 JSON before 10 partner', broken],
    ['malformed_request', '9 JSON before 12 parameters', broken, query('x=1')],
    ['partner_missing', '10 missing before 12 members', body('{"other":1}')],
    ['partner_mismatch', '10 mismatch before 12 members', body('{"partner":"acme","other":1}')],
    ['partner_mismatch', '10 mismatch before 12 parameters', body('{"partner":"acme"}'), query('x=1')],
    ['partner_suspended', '10 before 12', named('hush full'), body('{"partner":"hush","other":1}')],
  ]
}

function send(service: Service, start: Partial<Draft>, faults: readonly Fault[]): Promise<TestResponse> {
  const draft: Draft = {
    method: 'GET',
    path: '',
    query: 'partner=demo',
    // An address without failures, unless the fault sets another.
    headers: { ...withKey(service.world.keys['demo full']), 'x-forwarded-for': freshAddress() },
    body: undefined,
    ...start,
  }
  for (const fault of faults) fault(draft, service)
  const request: TestRequest = {
    method: draft.method,
    target: service.root + draft.path + (draft.query === '' ? '' : `?${draft.query}`),
    headers: draft.headers,
    ...(draft.body === undefined ? {} : { body: draft.body }),
  }
  return service.send(request)
}

let addresses = 0
function freshAddress(): string {
  addresses++
  return `10.9.${addresses >> 8}.${addresses & 255}`
}

/** A key that may only be used inside `FENCE`, with spent quotas. */
async function spentKey(service: Service): Promise<TestKey> {
  const once = { quota: 1, windowSeconds: 600 }
  const spent = await service.world.issue({ allow: [FENCE.range], limits: { key: once, verify: once } })
  const headers = { ...withKey(spent), 'x-forwarded-for': FENCE.inside }
  await service.send({ target: `${service.root}/public/plans?partner=demo`, headers })
  await service.send({ method: 'POST', target: `${service.root}/developer/verify-key`, headers, body: '' })
  return spent
}

/** Spends the `authfail` quota of `floodedAddress`. */
async function flood(service: Service): Promise<void> {
  for (let count = 0; count < 2; count++) {
    await send(service, { path: '/public/plans' }, [floodedAddress, invalid])
  }
}
