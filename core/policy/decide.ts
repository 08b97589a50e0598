/**
 * The policy: who may do what, as a list of rules over facts. Every rule is pure, the first that refuses
 * decides, and there is no other place where access is granted.
 */
import { Problem, type ProblemCode } from '../http/problem.ts'
import { keyState } from '../keys/lifecycle.ts'
import type { Principal } from '../keys/principal.ts'
import { type IpAddress, rangeContains } from '../lib/ip-address.ts'
import type { Key, Partner } from '../model.ts'
import { type Module, moduleForScope, type Scope } from './modules.ts'

/** What is known of a request once its key was recognised. */
export interface AccessFacts {
  readonly principal: Principal
  /** The client's address; `undefined` where the runtime does not tell, which no allow-list includes. */
  readonly address: IpAddress | undefined
  /** The partner slug that the request names; `undefined` when it names none. */
  readonly requestedPartner: string | undefined
  /** The scope that the route needs; `undefined` for a route that any key in force may use. */
  readonly scope: Scope | undefined
  /** The instant at which the request is judged, milliseconds since the epoch. */
  readonly now: number
}

/** Why access is refused. Each reason is a problem code of the same name. */
export type DenialReason =
  | 'key_revoked'
  | 'key_expired'
  | 'key_disabled'
  | 'address_not_allowed'
  | 'partner_missing'
  | 'partner_mismatch'
  | 'partner_suspended'
  | 'scope_missing'
  | 'module_inactive'

/** A permission to answer one request: for one partner, at one instant. Handlers see this and not the facts. */
export interface Grant {
  readonly partner: Partner
  readonly key: Key
  readonly principal: Principal
  readonly now: number
}

/** A refusal with what the client can do about it. */
export interface Denial {
  readonly allowed: false
  readonly reason: DenialReason
  readonly requiredScope?: Scope
  readonly requiredModule?: Module
}

/** The policy's answer. */
export type Decision = { readonly allowed: true; readonly grant: Grant } | Denial

/** One rule: `undefined` lets the request go on to the next. */
export interface Rule<F> {
  readonly name: string
  check(facts: F): Denial | undefined
}

/** What admission needs to know: the request has named no partner yet. */
export type AdmissionFacts = Pick<AccessFacts, 'principal' | 'address' | 'now'>

/** The rules about the key itself, which come before the rate limits. */
export const ADMISSION_RULES: readonly Rule<AdmissionFacts>[] = [
  {
    name: 'the key is not revoked',
    check: ({ principal, now }) =>
      keyState(principal.key, now) === 'revoked' ? deny('key_revoked') : undefined,
  },
  {
    name: 'the key has not expired',
    check: ({ principal, now }) =>
      keyState(principal.key, now) === 'expired' ? deny('key_expired') : undefined,
  },
  {
    name: 'the key is not disabled',
    check: ({ principal, now }) =>
      keyState(principal.key, now) === 'disabled' ? deny('key_disabled') : undefined,
  },
  {
    name: 'the address is allowed',
    check: ({ principal, address }) => {
      if (principal.allowedRanges.length === 0) return undefined
      const included = address !== undefined &&
        principal.allowedRanges.some((range) => rangeContains(range, address))
      return included ? undefined : deny('address_not_allowed')
    },
  },
]

/** The rules about what the request wants, which come after the rate limits. */
export const ACCESS_RULES: readonly Rule<AccessFacts>[] = [
  {
    name: 'the request names a partner',
    check: ({ requestedPartner: claim }) =>
      claim === undefined || claim === '' ? deny('partner_missing') : undefined,
  },
  {
    name: 'the partner is the one of the key',
    check: ({ principal, requestedPartner: claim }) =>
      claim === principal.partner.slug ? undefined : deny('partner_mismatch'),
  },
  {
    name: 'the partner is not suspended',
    check: ({ principal }) => principal.partner.state === 'active' ? undefined : deny('partner_suspended'),
  },
  {
    name: 'the key holds the scope',
    check: ({ principal, scope }) =>
      scope === undefined || principal.heldScopes.has(scope)
        ? undefined
        : { allowed: false, reason: 'scope_missing', requiredScope: scope },
  },
  {
    name: 'an active module of the partner needs the scope',
    check: ({ principal, scope }) =>
      scope === undefined || principal.activeScopes.has(scope)
        ? undefined
        : { allowed: false, reason: 'module_inactive', requiredModule: moduleForScope(scope) },
  },
]

/** Whether the key itself may be used here and now. */
export function admit(facts: AdmissionFacts): Denial | undefined {
  return firstDenial(ADMISSION_RULES, facts)
}

/**
 * Whether a request may have what it wants.
 *
 * @param skipAdmission Whether {@linkcode admit} has just said so of these very facts: what it asks is then not asked again.
 */
export function decide(facts: AccessFacts, skipAdmission = false): Decision {
  const { principal, now } = facts
  const denial = skipAdmission ? undefined : firstDenial(ADMISSION_RULES, facts)
  return denial ?? firstDenial(ACCESS_RULES, facts) ??
    { allowed: true, grant: { partner: principal.partner, key: principal.key, principal, now } }
}

function firstDenial<F>(rules: readonly Rule<F>[], facts: F): Denial | undefined {
  for (const rule of rules) {
    const denial = rule.check(facts)
    if (denial !== undefined) return denial
  }
  return undefined
}

function deny(reason: DenialReason): Denial {
  return { allowed: false, reason }
}

/** What one rule said; `not_reached` after the first that refused. */
export interface RuleOutcome {
  readonly rule: string
  readonly outcome: 'passed' | 'refused' | 'not_reached'
}

/** A decision with the way to it. */
export interface Explanation {
  readonly decision: Decision
  readonly rules: readonly RuleOutcome[]
}

/** Decides, and says what each rule of the policy had to do with it. */
export function explain(facts: AccessFacts): Explanation {
  let refused = false
  const rules = [...ADMISSION_RULES, ...ACCESS_RULES].map(({ name, check: refuse }): RuleOutcome => {
    if (refused) return { rule: name, outcome: 'not_reached' }
    refused = refuse(facts) !== undefined
    return { rule: name, outcome: refused ? 'refused' : 'passed' }
  })
  return { decision: decide(facts), rules }
}

/** The problem that each reason becomes: a reason without one does not compile. */
export const problemCodeByReason: Readonly<Record<DenialReason, ProblemCode>> = {
  key_revoked: 'key_revoked',
  key_expired: 'key_expired',
  key_disabled: 'key_disabled',
  address_not_allowed: 'address_not_allowed',
  partner_missing: 'partner_missing',
  partner_mismatch: 'partner_mismatch',
  partner_suspended: 'partner_suspended',
  scope_missing: 'scope_missing',
  module_inactive: 'module_inactive',
}

/** What a client is told of a denial. */
export function problemForDenial({ reason, requiredScope, requiredModule }: Denial): Problem {
  if (requiredScope !== undefined) {
    return new Problem('scope_missing', {
      detail: `This key does not hold ${requiredScope}.`,
      required_scope: requiredScope,
    })
  }
  if (requiredModule !== undefined) {
    return new Problem('module_inactive', {
      detail: `The module ${requiredModule} is not active for this partner.`,
      required_module: requiredModule,
    })
  }
  return new Problem(problemCodeByReason[reason])
}
