/**
 * The policy: who may do what, as a list of pure rules over facts. The first rule that refuses decides. Nothing else
 * decides on access: the pipeline makes a `Grant` only of a request that no rule refuses.
 */
import type { HttpRequest } from '../http/message.ts'
import { Problem, type ProblemCode, type ProblemMembers } from '../http/problem.ts'
import { keyState } from '../keys/lifecycle.ts'
import type { Principal } from '../keys/principal.ts'
import { type IpAddress, rangeContains } from '../lib/ip-address.ts'
import type { Key, KeyFacts, Module, Modules, Partner, Scope, SelfService } from '../model.ts'

/** What is known of a request once its key is identified. */
export interface AccessFacts {
  readonly principal: Principal
  /** The client's address; `undefined` where the runtime does not report it. No allow-list includes that. */
  readonly address: IpAddress | undefined
  /** The partner slug that the request names; `undefined` when it names none. */
  readonly requestedPartner: string | undefined
  /** The scope that the route needs; `undefined` for a route that any key in force may use. */
  readonly scope: Scope | undefined
  /** What the route does in place of the operator; `undefined` for most. */
  readonly selfService?: SelfService | undefined
  /** The instant at which the request is checked, milliseconds since the epoch. */
  readonly now: number
}

/** The facts about the key itself: the request has named no partner yet. */
type AdmissionFacts = Pick<AccessFacts, 'principal' | 'address' | 'now'>

/** What each rule requires, as text for `explain`, by the problem code of its denial. */
const requirements = {
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
} as const satisfies Readonly<Partial<Record<ProblemCode, string>>>

/** Why access is refused. */
type DenialReason = keyof typeof requirements

/** Permission to answer one request: for one partner, at one instant. Handlers see this and not the facts. */
export interface Grant {
  readonly partner: Partner
  readonly key: Key
  readonly principal: Principal
  readonly now: number
  readonly requestId: string
  readonly request: HttpRequest
  /** The key as it was when the request arrived, with its body still to come. */
  readonly arrivedKey?: Key | undefined
  /** Checks a request that changes its key again, by the facts that the change finds. @throws {Problem} */
  readonly recheck?: ((facts: KeyFacts, modules: Modules) => void) | undefined
}

/** The reason for refusing a request, with the scope or module that it lacks. */
export interface Denial {
  readonly reason: DenialReason
  readonly requiredScope?: Scope
  readonly requiredModule?: Module
}

/** The reason of a refusal, and when the rule refuses. */
type Rule<F> = readonly [reason: DenialReason, refuses: (facts: F) => boolean]

/** The rules about the key itself, which come before the rate limits. */
const admissionRules: readonly Rule<AdmissionFacts>[] = [
  ['key_revoked', ({ principal, now }) => keyState(principal.key, now) === 'revoked'],
  ['key_expired', ({ principal, now }) => keyState(principal.key, now) === 'expired'],
  ['key_disabled', ({ principal, now }) => keyState(principal.key, now) === 'disabled'],
  ['address_not_allowed', ({ principal: { allowedRanges }, address }) => {
    if (allowedRanges.length === 0) return false
    return address === undefined || !allowedRanges.some((range) => rangeContains(range, address))
  }],
]

/** The rules about what the request asks for, which come after the rate limits. */
const accessRules: readonly Rule<AccessFacts>[] = [
  ['partner_missing', ({ requestedPartner }) => requestedPartner === undefined || requestedPartner === ''],
  ['partner_mismatch', ({ principal, requestedPartner }) => requestedPartner !== principal.partner.slug],
  ['partner_suspended', ({ principal }) => principal.partner.state !== 'active'],
  ['scope_missing', ({ principal, scope }) => scope !== undefined && !principal.heldScopes.has(scope)],
  ['module_inactive', ({ principal, scope }) => scope !== undefined && !principal.activeScopes.has(scope)],
  [
    'self_service_disabled',
    ({ principal: { partner }, selfService }) =>
      selfService !== undefined && !partner.selfService.includes(selfService),
  ],
]

/** Whether the key itself may be used here and now. */
export function admit(facts: AdmissionFacts): Denial | undefined {
  return firstDenial(admissionRules, facts)
}

/** Whether a request whose key was admitted on the same facts may have what it asks for. */
export function authorize(facts: AccessFacts): Denial | undefined {
  return firstDenial(accessRules, facts, facts.scope)
}

function firstDenial<F extends AdmissionFacts>(
  rules: readonly Rule<F>[],
  facts: F,
  scope?: Scope,
): Denial | undefined {
  for (const rule of rules) {
    if (rule[1](facts)) return deny(rule[0], facts.principal, scope)
  }
  return undefined
}

function deny(reason: DenialReason, { modules }: Principal, scope: Scope | undefined): Denial {
  if (reason === 'scope_missing') return { reason, requiredScope: scope! }
  return reason === 'module_inactive' ? { reason, requiredModule: modules.moduleFor(scope!)! } : { reason }
}

/** Admits and authorizes, with the outcome of every rule: those after the first that refuses are not reached. */
export function explain(facts: AccessFacts) {
  const denial = admit(facts) ?? authorize(facts)
  const reasons = [...admissionRules, ...accessRules].map(([reason]) => reason)
  const end = denial === undefined ? Infinity : reasons.indexOf(denial.reason)
  const rules = reasons.map((reason, index) => {
    const outcome = index < end ? 'passed' : index === end ? 'refused' : 'not_reached'
    return { rule: requirements[reason], outcome } as const
  })
  return { denial, rules }
}

/** The problem that a denied request is answered with. */
export function problemForDenial({ reason, requiredScope, requiredModule }: Denial): Problem {
  if (requiredScope !== undefined) return new Problem('scope_missing', missingScope(requiredScope))
  if (requiredModule !== undefined) return new Problem('module_inactive', inactiveModule(requiredModule))
  return new Problem(reason)
}

/** The members of the problem of a key without the scope of an endpoint. */
export function missingScope(scope: Scope): ProblemMembers {
  return { detail: `This key does not hold ${scope}.`, required_scope: scope }
}

/** The members of the problem of a partner without the module of an endpoint. */
export function inactiveModule(module: Module): ProblemMembers {
  return { detail: `The module ${module} is not active for this partner.`, required_module: module }
}
