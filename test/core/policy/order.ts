/**
 * Compares the order of checks with the oracle: a valid request, and then every combination of one or two faults. If any
 * two checks were swapped, the request with exactly these two faults would differ.
 *
 * Each failed credential comes from a different address, so that `authfail` (here: one failure a day) never limits a
 * request unintentionally.
 */
import type { PartnerApi } from '../../../core/api.ts'
import { createComparison, type Request, send, type Tally } from './comparison.ts'
import { forge } from '../../contract/http/forgery.ts'
import { type Endpoint, ENDPOINTS, expectedResponse, type Situation } from './oracle.ts'
import { createPartnerApi } from '../../../core/api.ts'
import { bodyOf, createWorld, type HeldKey, modulesIn, scopesIn, targetOf, type World } from './world.ts'

type Fault = { readonly [Name in keyof Situation]-?: readonly [Name, NonNullable<Situation[Name]>] }[
  keyof Situation
]

const always: readonly Fault[] = [
  ['route', 'unknown'],
  ['route', 'wrong-method'],
  ['version', 'unknown'],
  ['accept', 'excludes'],
  ['sender', 'browser'],
  ['authfail', 'spent'],
  ['credential', 'missing'],
  ['credential', 'ambiguous'],
  ['credential', 'wrong'],
  ['revoked', true],
  ['expired', true],
  ['disabled', true],
  ['address', 'refused'],
  ['limit', 'spent'],
  ['claim', 'missing'],
  ['claim', 'foreign'],
  ['suspended', true],
  ['input', 'wrong-parameter'],
]

/** The possible faults of a request to this endpoint. */
function faultsOf({ method, path, scope }: Endpoint): readonly Fault[] {
  const faults = [...always]
  if (method === 'GET') faults.push(['claim', 'repeated'], ['precondition', 'met'])
  else {
    faults.push(['media', 'wrong-type'], ['media', 'too-large'], ['media', 'no-json'], ['media', 'no-object'])
    faults.push(['input', 'wrong-member'])
  }
  if (scope !== undefined) faults.push(['scope', 'not-held'], ['module', 'inactive'])
  if (path.endsWith('/{slug}')) faults.push(['resource', 'no-profile'])
  if (path.endsWith('/banner')) faults.push(['resource', 'no-banner'])
  return faults
}

/** Compares the order of the service's checks with the oracle's. */
export function proveOrder(tally: Tally): void {
  const slugs = ['active', 'suspended'].flatMap((state) =>
    ['on', 'off'].flatMap((modules) => ['banner', 'none'].map((kind) => `${state}-${modules}-${kind}`))
  )
  const world = createWorld(slugs.filter((slug) => slug.endsWith('banner')))
  for (const slug of slugs) {
    world.createPartner(slug, {
      state: slug.startsWith('active') ? 'active' : 'suspended',
      modules: modulesIn(slug.includes('-on-') ? 255 : 0),
    })
  }
  const api = createPartnerApi({ store: world.store }, {
    maxStalenessMs: 0,
    limits: {
      key: { quota: 1e9, windowSeconds: 60 },
      signup: { quota: 1e9, windowSeconds: 60 },
      verify: { quota: 1e9, windowSeconds: 60 },
      authfail: { quota: 1, windowSeconds: 86_400 },
    },
  })
  const factory = createRequestFactory(world, api)
  const comparison = createComparison(api, tally, [], [])
  for (const endpoint of ENDPOINTS) {
    if (!api.routes.some(({ method, path }) => method === endpoint.method && path === endpoint.path)) continue
    // The second request caches the response, which must not mask any fault.
    for (let time = 0; time < 2; time++) send(api, factory.prepare(endpoint, {}).request)
    for (const situation of upTo(2, faultsOf(endpoint))) {
      const { request, knownGood } = factory.prepare(endpoint, situation)
      comparison.check(request, expectedResponse({ ...situation, knownGood }, endpoint), endpoint)
    }
  }
  proveAuthfailSpending(api, tally, factory)
  void api.close()
}

function* upTo(most: number, faults: readonly Fault[], from = 0, so: Situation = {}): Iterable<Situation> {
  yield so
  if (most === 0) return
  for (let index = from; index < faults.length; index++) {
    const [name, value] = faults[index]!
    if (!(name in so)) yield* upTo(most - 1, faults, index + 1, { ...so, [name]: value })
  }
}

interface RequestFactory {
  /** Creates the request after preparing the situation. */
  prepare(endpoint: Endpoint, situation: Situation): { request: Request; knownGood: boolean }
  /** An unused address. */
  newAddress(inside: boolean): string
}

const unknownKey = forge('spk_live', 'Nobody000000')

function createRequestFactory(world: World, api: PartnerApi): RequestFactory {
  const keys = new Map<string, HeldKey>()
  let addresses = 0
  /** Both have spent their quota of one failure. */
  const spent = { inside: '10.255.255.255', outside: '172.31.255.255' }

  function newAddress(inside: boolean): string {
    addresses++
    const low = `${(addresses >> 8) & 255}.${addresses & 255}`
    return inside ? `10.${(addresses >> 16) & 127}.${low}` : `172.${16 + (addresses >> 16)}.${low}`
  }

  function keyFor(partner: string, one: Situation): HeldKey {
    const { revoked, expired, disabled, limit, scope } = one
    const place = JSON.stringify([partner, revoked, expired, disabled, limit, scope])
    const known = keys.get(place)
    if (known !== undefined) return known
    const quota = { quota: 1, windowSeconds: 86_400 }
    const key = world.createKey({
      partner,
      state: revoked ? 'revoked' : disabled ? 'disabled' : 'active',
      expiresAt: expired ? Date.now() - 1000 : undefined,
      scopes: scopesIn(scope === undefined ? 255 : 0),
      allow: ['10.0.0.0/8'],
      limits: limit === undefined ? {} : { key: quota, signup: quota, verify: quota },
    })
    keys.set(place, key)
    return key
  }

  const use = (endpoint: Endpoint, key: string, address: string, partner = 'nobody') =>
    send(api, requestFor(endpoint, {}, { key, address, partner }))
  for (const address of Object.values(spent)) use(ENDPOINTS[0]!, unknownKey, address)

  return {
    newAddress,
    prepare(endpoint, one) {
      const state = one.suspended ? 'suspended' : 'active'
      const modules = one.module === undefined ? 'on' : 'off'
      const partner = `${state}-${modules}-${one.resource === 'no-banner' ? 'none' : 'banner'}`
      const key = keyFor(partner, one)
      // Makes the key known and spends its quota, for each endpoint because their policies differ.
      const knownGood = !one.revoked && !one.expired && !one.disabled
      if (knownGood) use(endpoint, key.text, newAddress(true))
      const inside = one.address === undefined
      const address = one.authfail ? spent[inside ? 'inside' : 'outside'] : newAddress(inside)
      return { request: requestFor(endpoint, one, { key: key.text, address, partner }), knownGood }
    },
  }
}

interface Sender {
  readonly key: string
  readonly address: string
  readonly partner: string
}

function requestFor(endpoint: Endpoint, one: Situation, { key, address, partner }: Sender): Request {
  const { method } = endpoint
  const claim = one.claim === 'missing' ? undefined : one.claim === 'foreign' ? 'nobody' : partner
  const query: string[] = []
  if (method === 'GET' && claim !== undefined) query.push(`partner=${claim}`)
  if (one.claim === 'repeated') query.push(`partner=${claim}`)
  if (one.input === 'wrong-parameter') query.push('no_such_parameter=1')
  const path = one.route === 'unknown'
    ? '/service/public/nothing'
    : targetOf(endpoint, one.resource === 'no-profile' ? 'absent' : 'there')
  const request: Request = {
    method: one.route === 'wrong-method' ? 'DELETE' : method,
    target: query.length === 0 ? path : `${path}?${query.join('&')}`,
    headers: {
      'service-version': one.version && '2020-01-01',
      accept: one.accept && 'text/html',
      origin: one.sender && 'https://example.com',
      'if-none-match': one.precondition && '*',
      ...credentialFor(one.credential, key),
      ...(method === 'POST'
        ? { 'content-type': one.media === 'wrong-type' ? 'text/plain' : 'application/json' }
        : {}),
      'content-length': one.media === 'too-large' ? '32769' : undefined,
    },
    address,
  }
  if (method === 'GET') return request
  const members = {
    partner: claim,
    ...bodyOf(endpoint),
    ...(one.input === 'wrong-member' ? { extra: 1 } : {}),
  }
  const body = one.media === 'no-json' ? '{' : one.media === 'no-object' ? '[]' : JSON.stringify(members)
  return { ...request, body }
}

function credentialFor(credential: Situation['credential'], key: string): Request['headers'] {
  switch (credential) {
    case undefined:
      return { authorization: `Bearer ${key}` }
    case 'missing':
      return {}
    case 'ambiguous':
      return { authorization: `Bearer ${key}`, 'x-service-partner-key': unknownKey }
    case 'wrong':
      return { 'x-service-partner-key': unknownKey }
  }
}

/**
 * Section 10: only failures of steps 5 and 6 with a credential spend `authfail`. The response to a wrong key from the
 * same address afterwards shows whether the quota was spent.
 */
function proveAuthfailSpending(api: PartnerApi, tally: Tally, factory: RequestFactory): void {
  const endpoint = ENDPOINTS.find(({ path }) => path === '/service/public/profiles')!
  const spends = (one: Situation): boolean =>
    one.credential === 'ambiguous' || one.credential === 'wrong' ||
    (one.credential === undefined && (one.revoked || one.expired || one.disabled) === true)
  for (const fault of [undefined, ...faultsOf(endpoint)]) {
    const situation: Situation = fault === undefined ? {} : { [fault[0]]: fault[1] }
    if (situation.authfail !== undefined) continue
    const { request } = factory.prepare(endpoint, situation)
    send(api, request)
    const next = send(
      api,
      requestFor(endpoint, { credential: 'wrong' }, {
        key: unknownKey,
        address: request.address!,
        partner: 'nobody',
      }),
    )
    const status = spends(situation) ? 429 : 401
    tally.compare(
      next.status === status,
      () => `after ${JSON.stringify(situation)} a wrong key gets ${next.status} instead of ${status}`,
    )
  }
}
