/**
 * Compares `admit`, `authorize` and `explain` with the oracle. A decision depends on the route only through its scope, so
 * there are ten cases: no scope, one of eight, or that of a module of the
 * host's own. Two products are enumerated:
 *
 * - All 256 scope sets × all 256 module sets × all ten cases, for a valid key, and for the last of them each with and without
 *   the host's own scope and module.
 * - All 48 combinations of stored state, expiry and end of overlap × partner states × addresses × requested partners ×
 *   self-service, with the pairs of sets in which the needed scope or module is the only one, or the only one left out.
 */
import { type Key, modulesWith, type Partner } from '../../../core/model.ts'
import { type AccessFacts, admit, authorize, type Denial, explain } from '../../../core/policy/decide.ts'
import { preparePrincipal, type Principal } from '../../../core/keys/principal.ts'
import type { Code } from '../../contract/http/expect.ts'
import { key, partner } from '../../contract/store/samples.ts'
import { NEEDS as BUILT_IN_NEEDS, OWN_NEEDS, POLICY_ORDER, refusalOf, type Situation } from './oracle.ts'

/** Counts a comparison with the oracle, or throws. @param difference Describes a mismatch; called only for one. */
type Compare = (agrees: boolean, difference: () => string) => void

const own = BUILT_IN_NEEDS.length
const NEEDS = [...BUILT_IN_NEEDS, OWN_NEEDS[0]!]
const MODULES = modulesWith([{ name: NEEDS[own]!.module, scope: NEEDS[own]!.scope, feature: 'Own' }])

const now = Date.UTC(2027, 0, 15)
const instants = [undefined, now + 1, now, now - 1]

interface KeyKind {
  readonly facts: Partial<Key>
  readonly situation: Situation
}

/** The key is no longer valid at the instant itself. */
const keyKinds: readonly KeyKind[] = (['active', 'disabled', 'revoked'] as const).flatMap((state) =>
  instants.flatMap((expiresAt) =>
    instants.map((retiresAt): KeyKind => ({
      facts: {
        state,
        expiresAt,
        retiresAt,
        successorId: retiresAt === undefined ? retiresAt : 'Successor000',
      },
      situation: {
        revoked: state === 'revoked',
        expired: (expiresAt ?? Infinity) <= now || (retiresAt ?? Infinity) <= now,
        disabled: state === 'disabled',
      },
    }))
  )
)

interface RequestedPartner {
  readonly requestedPartner: string | undefined
  readonly situation: Situation
}

const requestedPartners: readonly RequestedPartner[] = [
  { requestedPartner: 'acme', situation: {} },
  ...[undefined, ''].map((requestedPartner): RequestedPartner => ({
    requestedPartner,
    situation: { requestedPartner: 'missing' },
  })),
  ...['globex', 'nobody', 'ACME', 'acm', 'acme '].map((requestedPartner): RequestedPartner => ({
    requestedPartner,
    situation: { requestedPartner: 'foreign' },
  })),
]

interface Sender {
  readonly allow: readonly string[]
  readonly address: AccessFacts['address']
  readonly situation: Situation
}

const allow = ['192.0.2.0/24', '2001:db8::/32']
const inside = [[0xc0000207], [0x20010db8, 0, 0, 1]]
const outside = [[0xc6336407], [0x20010db9, 0, 0, 1], undefined]
/** Without an allow-list, no address is refused. */
const senders: readonly Sender[] = [
  ...[inside[0], undefined].map((address): Sender => ({ allow: [], address, situation: {} })),
  ...inside.map((address): Sender => ({ allow, address, situation: {} })),
  ...outside.map((address): Sender => ({ allow, address, situation: { address: 'refused' } })),
]

/** What the route does in place of the operator; the partner may do the second. */
const selfServices = [undefined, 'rotate', 'revoke'] as const

/** The required scope as an index into `NEEDS`, or -1 for none. */
const needs = [-1, ...NEEDS.keys()]

/** Compares the policy with the oracle: both products. @returns The number of comparisons. @throws at the first mismatch. */
export function provePolicy(): number {
  let decisions = 0
  const compare: Compare = (agrees, difference) => {
    if (!agrees) throw new Error(difference())
    decisions++
  }
  for (let scopes = 0; scopes < 512; scopes++) {
    for (let modules = 0; modules < 512; modules++) {
      const principal = principalOf(keyKinds[0]!, senders[0]!, { scopes, modules, state: 'active' })
      for (const need of scopes < 256 && modules < 256 ? needs : [own]) {
        const situation = lackOf(need, scopes, modules)
        decide(compare, principal, need, senders[0]!, requestedPartners[0]!, refusalOf(situation))
      }
    }
  }
  for (const need of needs) {
    const bit = need < 0 ? 0 : 1 << need
    const sets = [bit, 511 & ~bit]
    for (const scopes of sets) {
      for (const modules of sets) everything(compare, need, scopes, modules)
    }
  }
  return decisions
}

function everything(compare: Compare, need: number, scopes: number, modules: number): void {
  for (const kind of keyKinds) {
    for (const state of ['active', 'suspended'] as const) {
      for (const sender of senders) {
        const principal = principalOf(kind, sender, { scopes, modules, state })
        for (const requested of requestedPartners) {
          for (const selfService of selfServices) {
            const code = refusalOf({
              ...lackOf(need, scopes, modules),
              ...kind.situation,
              ...sender.situation,
              ...requested.situation,
              suspended: state === 'suspended',
              ...(selfService === 'revoke' && { selfService: 'not-allowed' }),
            })
            const facts = decide(compare, principal, need, sender, requested, code, selfService)
            const { denial, rules } = explain(facts)
            compare(
              agrees(denial, code, need) && isTrace(rules, code),
              () => describe(facts, { denial, rules }, code),
            )
          }
        }
      }
    }
  }
}

function decide(
  compare: Compare,
  principal: Principal,
  need: number,
  { address }: Sender,
  { requestedPartner }: RequestedPartner,
  code: Code | undefined,
  selfService?: AccessFacts['selfService'],
): AccessFacts {
  const scope = NEEDS[need]?.scope as AccessFacts['scope']
  const facts: AccessFacts = { principal, address, requestedPartner, scope, selfService, now }
  const denial = admit(facts) ?? authorize(facts)
  compare(agrees(denial, code, need), () => describe(facts, { denial }, code))
  return facts
}

function lackOf(need: number, scopes: number, modules: number): Situation {
  const lacks = (mask: number) => need >= 0 && (mask >> need & 1) === 0
  return { ...(lacks(scopes) && { scope: 'not-held' }), ...(lacks(modules) && { module: 'inactive' }) }
}

const listed = (name: 'module' | 'scope') =>
  Array.from(
    { length: 512 },
    (_, mask) => NEEDS.filter((_, at) => mask & (1 << at)).map((need) => need[name]),
  )
const scopeSets = listed('scope') as unknown as readonly Key['scopes'][]
const moduleSets = listed('module') as unknown as readonly Partner['modules'][]

function principalOf(
  { facts }: KeyKind,
  { allow }: Sender,
  { scopes, modules, state }: { scopes: number; modules: number; state: Partner['state'] },
): Principal {
  return preparePrincipal(
    {
      key: key({ ...facts, scopes: scopeSets[scopes]!, allow }),
      partner: partner({ modules: moduleSets[modules]!, state, selfService: ['rotate'] }),
    },
    {},
    MODULES,
  )
}

function agrees(denial: Denial | undefined, code: Code | undefined, need: number): boolean {
  return denial?.reason === code &&
    denial?.requiredScope === (code === 'scope_missing' ? NEEDS[need]?.scope : undefined) &&
    denial?.requiredModule === (code === 'module_inactive' ? NEEDS[need]?.module : undefined)
}

/** The rule of each code in `explain`. */
const ruleNames: Readonly<Partial<Record<Code, string>>> = {
  key_revoked: 'the key is not revoked',
  key_expired: 'the key has not expired',
  key_disabled: 'the key is not disabled',
  address_not_allowed: 'the address is allowed',
  partner_missing: 'the request names a partner',
  partner_mismatch: 'the partner is the one of the key',
  partner_suspended: 'the partner is not suspended',
  scope_missing: 'the key holds the scope',
  module_inactive: 'an active module of the partner needs the scope',
  self_service_disabled: 'the partner may do what the operator does otherwise',
}

/** Whether there is one rule per code in the order of the contract, and those after the refusal are not reached. */
function isTrace(rules: ReturnType<typeof explain>['rules'], code: Code | undefined): boolean {
  const decisive = code === undefined ? POLICY_ORDER.length : POLICY_ORDER.indexOf(code)
  return rules.length === POLICY_ORDER.length &&
    rules.every(({ rule, outcome }, index) =>
      rule === ruleNames[POLICY_ORDER[index]!] &&
      outcome === (index < decisive ? 'passed' : index === decisive ? 'refused' : 'not_reached')
    )
}

function describe(
  { principal: { key, partner }, ...facts }: AccessFacts,
  found: object,
  code?: Code,
): string {
  return JSON.stringify({ key, partner, ...facts, found, contract: code ?? 'allowed' })
}
