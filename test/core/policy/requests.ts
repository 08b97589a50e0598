/**
 * Whole requests against the oracle: every endpoint × every form of credential × every state of a key × addresses ×
 * partner relations × whether the scope is held and its module active.
 *
 * Of the 256 × 256 sets, four stand for all: the needed scope alone or all but it, and the needed module alone or
 * all but it. `provePolicy` shows that no other bit matters to a decision; here the pipeline hands the facts to
 * it, and the sharpest sets show that it hands over the right ones. The facts change between rounds through
 * `store.apply`, so a fact that outlives its revision is a mismatch too.
 */
import type { Change } from '../../../core/ports/changes.ts'
import { createQuestioner, type Request, send } from './asking.ts'
import { type CredentialForm, credentialForms } from './credentials.ts'
import { type Endpoint, ENDPOINTS, judge, type Situation } from './oracle.ts'
import { createPartnerApi } from '../../../core/api.ts'
import type { Tally } from './tally.ts'
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
const never = { key: 0, signup: 0, verify: 0, authfail: 0 }

interface KeyClass {
  readonly situation: Situation
  readonly forms: readonly CredentialForm[]
  readonly key: HeldKey
  readonly allow: boolean
}

/** Real time has to do, so every instant is a day away. */
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
  const world = createWorld(['acme', 'globex'])
  world.createPartner('acme')
  world.createPartner('globex', { modules: modulesIn(255) })
  const neighbour = world.createKey({ partner: 'globex', scopes: scopesIn(255) })
  const keys = createKeys(world, neighbour)
  const limits = Object.fromEntries(
    Object.keys(never).map((name) => [name, { quota: 0, windowSeconds: 60 }]),
  )
  const api = createPartnerApi({ store: world.store }, { maxStalenessMs: 0, limits })
  const secrets = [neighbour, ...keys.map(({ key }) => key)].map(({ text }) => text.slice(22))
  const questioner = createQuestioner(api, tally, secrets)
  const served = api.routes.filter(({ access }) => access === 'key')

  for (const { method, path, scope } of served) {
    const listed = ENDPOINTS.find((endpoint) => endpoint.method === method && endpoint.path === path)
    tally.compare(
      listed !== undefined && listed.scope === scope,
      () => `${method} ${path} needs ${scope}, and the contract says ${listed ? listed.scope : 'nothing'}`,
    )
  }
  const endpoints = ENDPOINTS.filter(({ method, path }) =>
    served.some((route) => route.method === method && route.path === path)
  )
  for (const endpoint of endpoints) {
    // What another partner was answered is kept once it is asked for again, and must be of no use to this one.
    const elsewhere = { name: '', is: undefined, keyHeader: neighbour.text }
    for (let time = 0; time < 2; time++) send(api, requestFor(endpoint, 'globex', elsewhere, '::1'))
    const bit = bitOf(endpoint)
    for (const scopes of bit === 0 ? [0, 255] : [bit, 255 & ~bit]) {
      for (const modules of bit === 0 ? [0, 255] : [bit, 255 & ~bit]) {
        for (const suspended of [false, true]) {
          setFacts(world, keys, scopes, modules, suspended)
          const facts: Situation = {
            suspended,
            ...(bit && !(scopes & bit) ? { scope: 'not-held' } : {}),
            ...(bit && !(modules & bit) ? { module: 'inactive' } : {}),
          }
          for (const one of keys) askAll(endpoint, one, facts)
        }
      }
    }
  }
  void api.close()

  function askAll(endpoint: Endpoint, { situation, forms, allow }: KeyClass, facts: Situation): void {
    for (const form of forms) {
      // A form that is right meets every claim and address. The others are refused before those are looked at,
      // which a claim and an address that would be refused are enough to show.
      const every = form.is === undefined
      for (const [claim, claimed] of every ? claims : claims.slice(0, 2)) {
        for (const [address, inside] of every ? addresses : addresses.slice(1, 2)) {
          const verdict = judge({
            ...facts,
            ...situation,
            ...claimed,
            ...(form.is === undefined ? {} : { credential: form.is }),
            ...(allow && !inside ? { address: 'refused' } : {}),
            ...(form.query === undefined ? {} : { input: 'wrong-parameter' }),
          }, endpoint)
          questioner.ask(requestFor(endpoint, claim, form, address), verdict, endpoint)
        }
      }
    }
  }
}

function createKeys(world: World, neighbour: HeldKey): KeyClass[] {
  return states.flatMap(([facts, situation]) =>
    [false, true].map((restricted): KeyClass => {
      const key = world.createKey({ partner: 'acme', ...facts, allow: restricted ? allow : [] })
      return { situation, key, allow: restricted, forms: credentialForms(key.text, neighbour.text) }
    })
  )
}

/** Brings the facts from what they are to what a round is about, one change at a time as an operator would. */
function setFacts(
  { apply }: World,
  keys: readonly KeyClass[],
  scopes: number,
  modules: number,
  suspended: boolean,
): void {
  const changes: Change[] = [{ type: suspended ? 'partner.suspended' : 'partner.resumed', slug: 'acme' }]
  const wantedModules = modulesIn(modules)
  const wantedScopes = scopesIn(scopes)
  for (const module of modulesIn(255)) {
    const type = wantedModules.includes(module) ? 'module.activated' : 'module.deactivated'
    changes.push({ type, slug: 'acme', module })
  }
  for (const { key: { id } } of keys) {
    for (const scope of scopesIn(255)) {
      changes.push({ type: wantedScopes.includes(scope) ? 'scope.granted' : 'scope.removed', id, scope })
    }
  }
  apply(...changes)
}

function requestFor(
  endpoint: Endpoint,
  claim: string | undefined,
  form: CredentialForm,
  address: string | undefined,
): Request {
  const { method } = endpoint
  const query = method === 'GET' && claim !== undefined ? [`partner=${claim}`] : []
  if (form.query !== undefined) query.push(form.query)
  return {
    method,
    target: [targetOf(endpoint), ...(query.length > 0 ? [query.join('&')] : [])].join('?'),
    headers: {
      authorization: form.authorization,
      'x-service-partner-key': form.keyHeader,
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
    },
    ...(method === 'POST' ? { body: JSON.stringify({ partner: claim, ...bodyOf(endpoint) }) } : {}),
    address,
  }
}
