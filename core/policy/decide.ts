/**
 * The policy: who may do what, as a list of rules over facts. Every rule is pure, the first that refuses
 * decides, and there is no other place where access is granted.
 */
import type { Principal } from '../keys/principal.ts'
import { keyState } from '../keys/state.ts'
import type { Key, Partner } from '../model.ts'
import { type Address, rangeIncludes } from './address.ts'
import { type Module, moduleFor } from './modules.ts'
import type { Scope } from './scopes.ts'

/** What is known of a request once its key was recognised. */
export interface AccessFacts {
  readonly principal: Principal
  /** The client's address; `undefined` where the runtime does not tell, which no allow-list includes. */
  readonly address: Address | undefined
  /** The partner slug that the request names; `undefined` when it names none. */
  readonly claim: string | undefined
  /** The scope that the route needs; `undefined` for a route that any key in force may use. */
  readonly scope: Scope | undefined
  /** The instant at which the request is judged, milliseconds since the epoch. */
  readonly now: number
}

/** Why access is refused. Each reason is a problem code of the same name. */
export type Reason =
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
  readonly reason: Reason
  readonly requiredScope?: Scope
  readonly requiredModule?: Module
}

/** The policy's answer. */
export type Decision = { readonly allowed: true; readonly grant: Grant } | Denial

/** One rule: `undefined` lets the request go on to the next. */
export interface Rule<F> {
  readonly name: string
  refuse(facts: F): Denial | undefined
}

/** What admission needs to know: the request has named no partner yet. */
export type AdmissionFacts = Pick<AccessFacts, 'principal' | 'address' | 'now'>

/** The rules about the key itself, which come before the rate limits. */
export const ADMISSION_RULES: readonly Rule<AdmissionFacts>[] = [
  {
    name: 'the key is not revoked',
    refuse: ({ principal, now }) =>
      keyState(principal.key, now) === 'revoked' ? deny('key_revoked') : undefined,
  },
  {
    name: 'the key has not expired',
    refuse: ({ principal, now }) =>
      keyState(principal.key, now) === 'expired' ? deny('key_expired') : undefined,
  },
  {
    name: 'the key is not disabled',
    refuse: ({ principal, now }) =>
      keyState(principal.key, now) === 'disabled' ? deny('key_disabled') : undefined,
  },
  {
    name: 'the address is allowed',
    refuse: ({ principal, address }) => {
      if (principal.ranges.length === 0) return undefined
      const included = address !== undefined &&
        principal.ranges.some((range) => rangeIncludes(range, address))
      return included ? undefined : deny('address_not_allowed')
    },
  },
]

/** The rules about what the request wants, which come after the rate limits. */
export const ACCESS_RULES: readonly Rule<AccessFacts>[] = [
  {
    name: 'the request names a partner',
    refuse: ({ claim }) => claim === undefined || claim === '' ? deny('partner_missing') : undefined,
  },
  {
    name: 'the partner is the one of the key',
    refuse: ({ principal, claim }) => claim === principal.partner.slug ? undefined : deny('partner_mismatch'),
  },
  {
    name: 'the partner is not suspended',
    refuse: ({ principal }) => principal.partner.state === 'active' ? undefined : deny('partner_suspended'),
  },
  {
    name: 'the key holds the scope',
    refuse: ({ principal, scope }) =>
      scope === undefined || principal.held.has(scope)
        ? undefined
        : { allowed: false, reason: 'scope_missing', requiredScope: scope },
  },
  {
    name: 'an active module of the partner needs the scope',
    refuse: ({ principal, scope }) =>
      scope === undefined || principal.needed.has(scope)
        ? undefined
        : { allowed: false, reason: 'module_inactive', requiredModule: moduleFor(scope) },
  },
]

/** Whether the key itself may be used here and now. */
export function admit(facts: AdmissionFacts): Denial | undefined {
  return firstDenial(ADMISSION_RULES, facts)
}

/**
 * Whether a request may have what it wants.
 *
 * @param admitted Whether {@linkcode admit} has just said so of these very facts: what it asks is then not asked again.
 */
export function decide(facts: AccessFacts, admitted = false): Decision {
  const { principal, now } = facts
  const denial = admitted ? undefined : firstDenial(ADMISSION_RULES, facts)
  return denial ?? firstDenial(ACCESS_RULES, facts) ??
    { allowed: true, grant: { partner: principal.partner, key: principal.key, principal, now } }
}

function firstDenial<F>(rules: readonly Rule<F>[], facts: F): Denial | undefined {
  for (const rule of rules) {
    const denial = rule.refuse(facts)
    if (denial !== undefined) return denial
  }
  return undefined
}

function deny(reason: Reason): Denial {
  return { allowed: false, reason }
}
