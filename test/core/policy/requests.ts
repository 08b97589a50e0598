/**
 * Compares complete requests with the oracle: every endpoint × every state of a key, guessed or held × addresses ×
 * partner relations × whether the scope is held and its module active.
 *
 * Of the 256 × 256 sets, four stand for all: the needed scope alone or all but it, and the needed module alone or all but
 * it. `provePolicy` shows that no other bit matters. Facts change between rounds through `store.apply`, so that the use
 * of a stale fact is a mismatch too.
 */
import type { Change } from '../../../core/ports/changes.ts'
import { createComparison, type Request, send, type Tally } from './comparison.ts'
import { forge } from '../../contract/http/forgery.ts'
import { type Endpoint, ENDPOINTS, expectedResponse, type Situation } from './oracle.ts'
import { createPartnerApi } from '../../../core/api.ts'
import {
  bitOf,
  bodyOf,
  createWorld,
  type HeldKey,
  modulesIn,
  scopesIn,
  targetOf,
  type World,
} from './world.ts'

const dayMs = 86_400_000

interface KeyClass {
  readonly situation: Situation
  readonly key: HeldKey
  readonly allow: boolean
}

/** The clock is real, so every instant is a day away. */
const states: readonly (readonly [facts: object, Situation])[] = [
  [{}, {}],
  [{ state: 'disabled' }, { disabled: true }],
  [{ retiresAt: Date.now() + dayMs, successorId: 'Successor000' }, {}],
  [{ retiresAt: Date.now() - dayMs, successorId: 'Successor000' }, { expired: true }],
  [{ expiresAt: Date.now() - dayMs }, { expired: true }],
  [{ state: 'revoked' }, { revoked: true }],
  [{ state: 'disabled', expiresAt: Date.now() - dayMs }, { disabled: true, expired: true }],
  [{ state: 'revoked', retiresAt: Date.now() - dayMs }, { revoked: true, expired: true }],
]

const claims: readonly (readonly [string | undefined, Situation])[] = [
  ['acme', {}],
  [undefined, { claim: 'missing' }],
  ['', { claim: 'missing' }],
  ['globex', { claim: 'foreign' }],
  ['nobody', { claim: 'foreign' }],
  ['Acme', { claim: 'foreign' }],
]

const allow = ['2001:db8::/32', '192.0.2.0/24']
const addresses: readonly (readonly [string | undefined, inside: boolean])[] = [
  ['192.0.2.7', true],
  ['198.51.100.7', false],
  [undefined, false],
]

/** Compares the service with the oracle. */
export function proveRequests(tally: Tally): void {
  const world = createWorld()
  world.createPartner('acme')
  world.createPartner('globex', { modules: modulesIn(255) })
  const neighbour = world.createKey({ partner: 'globex', scopes: scopesIn(255) })
  const keys = createKeys(world)
  const off = { quota: 0, windowSeconds: 60 }
  const limits = { key: off, signup: off, verify: off, authfail: off }
  const api = createPartnerApi({ store: world.store }, { maxStalenessMs: 0, limits })
  const secrets = [neighbour, ...keys.map(({ key }) => key)].map(({ text }) => text.slice(22))
  const comparison = createComparison(api, tally, secrets)
  const served = api.routes.filter(({ access }) => access === 'key')

  for (const { method, path, scope } of served) {
    const listed = ENDPOINTS.find((endpoint) => endpoint.method === method && endpoint.path === path)
    tally.compare(
      listed !== undefined && listed.scope === scope,
      () => `${method} ${path} needs ${scope} instead of ${listed ? listed.scope : 'nothing'}`,
    )
  }
  const endpoints = ENDPOINTS.filter(({ method, path }) =>
    served.some((route) => route.method === method && route.path === path)
  )
  for (const endpoint of endpoints) {
    // The second request of another partner caches its response, which must not be served to this one.
    for (let time = 0; time < 2; time++) send(api, requestFor(endpoint, 'globex', neighbour.text, '::1'))
    const bit = bitOf(endpoint)
    for (const scopes of [bit, 255 & ~bit]) {
      setScopes(world, keys, scopes)
      for (const modules of [bit, 255 & ~bit]) {
        setModules(world, modules)
        for (const suspended of [false, true]) {
          world.apply({ type: suspended ? 'partner.suspended' : 'partner.resumed', slug: 'acme' })
          const facts: Situation = {
            ...(suspended && { suspended }),
            ...(bit && !(scopes & bit) ? { scope: 'not-held' } : {}),
            ...(bit && !(modules & bit) ? { module: 'inactive' } : {}),
          }
          for (const one of keys) checkAll(endpoint, one, facts)
        }
      }
    }
  }
  void api.close()

  function checkAll(endpoint: Endpoint, { situation, key, allow }: KeyClass, facts: Situation): void {
    const guessed = requestFor(endpoint, 'acme', forge('spk_live', key.id), '198.51.100.7')
    comparison.check(
      guessed,
      expectedResponse({ ...facts, ...situation, credential: 'wrong' }, endpoint),
      endpoint,
    )
    for (const [claim, claimed] of claims) {
      for (const [address, inside] of addresses) {
        const refused: Situation = allow && !inside ? { address: 'refused' } : {}
        const verdict = expectedResponse({ ...facts, ...situation, ...claimed, ...refused }, endpoint)
        comparison.check(requestFor(endpoint, claim, key.text, address), verdict, endpoint)
      }
    }
  }
}

function createKeys(world: World): KeyClass[] {
  return states.flatMap(([facts, situation]) =>
    [false, true].map((restricted): KeyClass => {
      const key = world.createKey({ partner: 'acme', ...facts, allow: restricted ? allow : [] })
      return { situation, key, allow: restricted }
    })
  )
}

function setScopes({ apply }: World, keys: readonly KeyClass[], mask: number): void {
  const wanted = scopesIn(mask)
  apply(...keys.flatMap(({ key: { id } }) =>
    scopesIn(255).map((scope): Change => ({
      type: wanted.includes(scope) ? 'scope.granted' : 'scope.removed',
      id,
      scope,
    }))
  ))
}

function setModules({ apply }: World, mask: number): void {
  const wanted = modulesIn(mask)
  apply(
    ...modulesIn(255).map((module): Change => ({
      type: wanted.includes(module) ? 'module.activated' : 'module.deactivated',
      slug: 'acme',
      module,
    })),
  )
}

function requestFor(
  endpoint: Endpoint,
  claim: string | undefined,
  key: string,
  address: string | undefined,
): Request {
  const { method } = endpoint
  const query = method === 'GET' && claim !== undefined ? `?partner=${claim}` : ''
  return {
    method,
    target: targetOf(endpoint) + query,
    headers: {
      authorization: `Bearer ${key}`,
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
    },
    ...(method === 'POST' ? { body: JSON.stringify({ partner: claim, ...bodyOf(endpoint) }) } : {}),
    address,
  }
}
