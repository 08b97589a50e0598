/**
 * Section 2: the first failing check of a request determines the response. Every fault that a request to any endpoint can
 * have is compared with the oracle, and for three endpoints, every two faults: if two checks were swapped, the request with
 * exactly these two would differ.
 */
import { MODULE_NAMES } from '../../../core/model.ts'
import {
  type Endpoint,
  ENDPOINTS,
  expectedResponse,
  OWN_ENDPOINTS,
  OWN_NEEDS,
  type Situation,
} from '../../core/policy/oracle.ts'
import type { TestKey } from '../../support/world.ts'
import { expectProblem } from './expect.ts'
import { forge } from './forgery.ts'
import { FAR_LIMITS, type Service, type Suite, type TestContext, type TestRequest } from './service.ts'

const once = { quota: 1, windowSeconds: 600 }

export const order: readonly Suite[] = [{
  settings: { ownEndpoints: true, trustedProxies: 1, limits: { ...FAR_LIMITS, authfail: once } },
  tests: { 'the first failing check determines the response': firstFailure },
}]

/** Endpoints that together have every kind of fault, and one of the host's own that has a revision. */
const PAIRED = [
  '/service/public/profiles/{slug}',
  '/service/partner/signups',
  '/service/orders/{slug}',
  '/service/developer/rotate-key',
]
const MODULES = [...MODULE_NAMES, ...OWN_NEEDS.map(({ module }) => module)]

const ALWAYS: readonly Situation[] = [
  { target: 'too-long' },
  { route: 'unknown' },
  { route: 'wrong-method' },
  { version: 'unknown' },
  { accept: 'excludes' },
  { sender: 'browser' },
  { authfail: 'spent' },
  { credential: 'missing' },
  { credential: 'ambiguous' },
  { credential: 'wrong' },
  { revoked: true },
  { expired: true },
  { disabled: true },
  { address: 'refused' },
  { limit: 'spent' },
  { requestedPartner: 'missing' },
  { requestedPartner: 'foreign' },
  { suspended: true },
  { input: 'wrong-parameter' },
]
const UNAUTHORIZED: readonly Situation[] = [{ scope: 'not-held' }, { module: 'inactive' }]
const SELF_SERVICE: readonly Situation[] = [{ selfService: 'not-allowed' }]
const OF_GET: readonly Situation[] = [{ requestedPartner: 'repeated' }, { precondition: 'met' }]
const OF_POST: readonly Situation[] = [
  { media: 'wrong-type' },
  { size: 'too-large' },
  { json: 'malformed' },
  { json: 'no-object' },
  { input: 'wrong-member' },
]

function faultsOf({ method, path, scope }: Endpoint): Situation[] {
  return [
    ...ALWAYS,
    ...(scope === undefined ? [] : UNAUTHORIZED),
    ...(path.endsWith('/rotate-key') ? SELF_SERVICE : []),
    ...(method === 'GET' ? OF_GET : OF_POST),
    ...(path === '/service/orders/{slug}' ? [{ resource: 'no-order' } as const] : []),
    ...(path.endsWith('/profiles/{slug}') ? [{ resource: 'no-profile' } as const] : []),
  ]
}

/** Every two faults of different names. */
function pairsOf(faults: readonly Situation[]): Situation[] {
  const nameOf = (fault: Situation) => Object.keys(fault)[0]
  return faults.flatMap((one, index) =>
    faults.slice(index + 1).filter((other) => nameOf(other) !== nameOf(one))
      .map((other) => ({ ...one, ...other }))
  )
}

async function firstFailure(t: TestContext, service: Service): Promise<void> {
  const prepare = await prepareKeys(service)
  for (const endpoint of [...ENDPOINTS, ...OWN_ENDPOINTS]) {
    const { path } = endpoint
    const faults = faultsOf(endpoint)
    for (const situation of [{}, ...faults, ...(PAIRED.includes(path) ? pairsOf(faults) : [])]) {
      const knownGood = !situation.revoked && !situation.expired && !situation.disabled
      // The partners of this suite have no banner, and may not revoke their keys.
      const lack: Situation = path.endsWith('/banner')
        ? { resource: 'no-banner' }
        : path.endsWith('/revoke-key')
        ? { selfService: 'not-allowed' }
        : {}
      const { code, status, challenge, members } = expectedResponse(
        { ...situation, ...lack, knownGood },
        endpoint,
      )
      const what = `${path}: ${JSON.stringify(situation)}`
      const request = requestFor(endpoint, situation, prepare(situation))
      const response = await service.send(request)
      if (code === undefined) t.equal(response.status, status, what)
      else expectProblem(t, response, code, what, { members, instance: instanceOf(request.target, code) })
      t.equal(response.headers.get('www-authenticate'), challenge, what)
    }
  }
}

/** The path of the target, if that was read. */
function instanceOf(target: string, code: string): string {
  return code === 'uri_too_long' ? '/' : target.split('?')[0]!
}

interface Sender {
  readonly key: string
  readonly partner: string
  readonly address: string
}

/** The properties of a key and its partner that a situation determines. */
const traits = (
  { revoked, expired, disabled, limit, suspended, scope, module, selfService }: Situation,
) => JSON.stringify({ revoked, expired, disabled, limit, suspended, scope, module, selfService })

const unknownKey = forge('spk_live', 'Nobody000000')
const spent = { inside: '10.255.255.255', outside: '172.31.255.255' }

let addresses = 0
/** An unused address, inside the allow-list of all keys or outside of it, so that `authfail` limits no other request. */
function newAddress(isInside = true): string {
  addresses++
  return `${isInside ? '10.9' : '172.16'}.${addresses >> 8}.${addresses & 255}`
}

/** Creates a key with its own partner for every situation, uses it once, and spends the quota of two addresses. */
async function prepareKeys(service: Service): Promise<(situation: Situation) => Sender> {
  const senders = new Map<string, { key: TestKey; partner: string }>()
  const faults = [...ALWAYS, ...UNAUTHORIZED, ...SELF_SERVICE]
  for (const situation of [{}, ...faults, ...pairsOf(faults)]) {
    const place = traits(situation)
    if (senders.has(place)) continue
    const partner = `ordered-${senders.size}`
    senders.set(place, { key: await createKey(service, partner, situation), partner })
  }
  // The first two have quotas of their own.
  for (const endpoint of ENDPOINTS.slice(0, 3)) {
    const use = (key: string, address: string) =>
      service.send(requestFor(endpoint, {}, { key, partner: 'nobody', address }))
    for (const { key } of senders.values()) await use(key.text, newAddress())
    for (const address of Object.values(spent)) await use(unknownKey, address)
  }
  return (situation) => {
    const { key, partner } = senders.get(traits(situation))!
    const isInside = situation.address === undefined
    const address = situation.authfail ? spent[isInside ? 'inside' : 'outside'] : newAddress(isInside)
    return { key: key.text, partner, address }
  }
}

async function createKey({ world }: Service, partner: string, one: Situation): Promise<TestKey> {
  const { partners, keyRing } = world
  const selfService = one.selfService ? [] : ['rotate' as const]
  const limits = one.limit && { rotate: once }
  await partners.create({ slug: partner, name: partner, modules: MODULES, selfService, limits })
  const key = await world.issue({
    partner,
    allow: ['10.0.0.0/8'],
    ...(one.scope && { scopes: [] }),
    ...(one.limit && { limits: { key: once, verify: once } }),
  })
  if (one.disabled) await keyRing.disable(key.id)
  if (one.expired) await world.rotate(key.id, (await world.issue({ partner })).id, Date.now() - 1_000)
  if (one.revoked) await keyRing.revoke(key.id)
  if (one.module) await partners.deactivate(partner, MODULES)
  if (one.suspended) await partners.suspend(partner)
  return key
}

function requestFor(
  { method, path }: Endpoint,
  one: Situation,
  { key, partner, address }: Sender,
): TestRequest {
  const isPost = method === 'POST'
  const partners = { missing: undefined, foreign: 'nobody', repeated: partner }
  const requested = one.requestedPartner === undefined ? partner : partners[one.requestedPartner]
  const query = [
    ...(isPost || requested === undefined ? [] : [`partner=${requested}`]),
    ...(one.requestedPartner === 'repeated' ? [`partner=${requested}`] : []),
    ...(one.input === 'wrong-parameter' ? ['no_such_parameter=1'] : []),
    ...(one.target ? [`q=${'a'.repeat(8_192)}`] : []),
  ]
  const known = path.replace('{slug}', one.resource ? 'no-such' : 'universite-de-valmorne')
  return {
    method: one.route === 'wrong-method' ? 'DELETE' : method,
    target: [one.route === 'unknown' ? '/service/nowhere' : known, query.join('&')].filter(Boolean).join('?'),
    headers: {
      'x-forwarded-for': address,
      ...(one.credential === 'missing' ? {} : {
        'x-service-partner-key': one.credential === 'wrong' ? unknownKey : key,
      }),
      ...(one.credential === 'ambiguous' && { authorization: 'Bearer nonsense' }),
      ...(one.version && { 'service-version': '1999-01-01' }),
      ...(one.accept && { accept: 'text/html' }),
      ...(one.sender && { origin: 'https://browser.example' }),
      ...(one.precondition && { 'if-none-match': '*' }),
      ...(isPost && { 'content-type': one.media ? 'text/plain' : 'application/json' }),
    },
    ...(isPost && { body: bodyFor(path, one, requested) }),
  }
}

function bodyFor(path: string, one: Situation, partner: string | undefined): string {
  const members = {
    partner,
    ...(path.endsWith('/signups') && { email: 'ada@example.com', name: 'Ada' }),
    ...(one.input === 'wrong-member' && { other: 1 }),
  }
  const text = one.json === 'malformed' ? '{' : one.json === 'no-object' ? '[]' : JSON.stringify(members)
  return one.size ? text.padEnd(32_769) : text
}
