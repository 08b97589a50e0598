/**
 * The policy: who may do what, as a list of pure rules over facts. The first rule that refuses decides. Nothing else
 * decides on access: the pipeline makes a `Grant` only of a request that no rule refuses.
 */
import { Problem } from '../http/problem.ts'
import { keyState } from '../keys/lifecycle.ts'
import type { Principal } from '../keys/principal.ts'
import { type IpAddress, rangeContains } from '../lib/ip-address.ts'
import type { Key, Partner } from '../model.ts'
import { type Module, moduleForScope, type Scope } from './modules.ts'

/** What is known of a request once its key is identified. */
export interface AccessFacts {
  readonly principal: Principal
  /** The client's address; `undefined` where the runtime does not report it. No allow-list includes that. */
  readonly address: IpAddress | undefined
  /** The partner slug that the request names; `undefined` when it names none. */
  readonly requestedPartner: string | undefined
  /** The scope that the route needs; `undefined` for a route that any key in force may use. */
  readonly scope: Scope | undefined
  /** The instant at which the request is judged, milliseconds since the epoch. */
  readonly now: number
}

/** The facts about the key itself: the request has named no partner yet. */
type AdmissionFacts = Pick<AccessFacts, 'principal' | 'address' | 'now'>

/** Why access is refused. Each reason is a problem code. */
type DenialReason =
  | 'key_revoked'
  | 'key_expired'
  | 'key_disabled'
  | 'address_not_allowed'
  | 'partner_missing'
  | 'partner_mismatch'
  | 'partner_suspended'
  | 'scope_missing'
  | 'module_inactive'

/** Permission to answer one request: for one partner, at one instant. Handlers see this and not the facts. */
export interface Grant {
  readonly partner: Partner
  readonly key: Key
  readonly principal: Principal
  readonly now: number
}

export interface Denial {
  readonly reason: DenialReason
  readonly requiredScope?: Scope
  readonly requiredModule?: Module
}

/** `check` returns `undefined` to pass the request on to the next rule. */
interface Rule<F> {
  readonly name: string
  check(facts: F): Denial | undefined
}

/** The rules about the key itself, which come before the rate limits. */
const ADMISSION_RULES: readonly Rule<AdmissionFacts>[] = [
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
      const isAllowed = address !== undefined &&
        principal.allowedRanges.some((range) => rangeContains(range, address))
      return isAllowed ? undefined : deny('address_not_allowed')
    },
  },
]

/** The rules about what the request asks for, which come after the rate limits. */
const ACCESS_RULES: readonly Rule<AccessFacts>[] = [
  {
    name: 'the request names a partner',
    check: ({ requestedPartner }) =>
      requestedPartner === undefined || requestedPartner === '' ? deny('partner_missing') : undefined,
  },
  {
    name: 'the partner is the one of the key',
    check: ({ principal, requestedPartner }) =>
      requestedPartner === principal.partner.slug ? undefined : deny('partner_mismatch'),
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
        : { reason: 'scope_missing', requiredScope: scope },
  },
  {
    name: 'an active module of the partner needs the scope',
    check: ({ principal, scope }) =>
      scope === undefined || principal.activeScopes.has(scope)
        ? undefined
        : { reason: 'module_inactive', requiredModule: moduleForScope(scope) },
  },
]

/** Whether the key itself may be used here and now. */
export function admit(facts: AdmissionFacts): Denial | undefined {
  return firstDenial(ADMISSION_RULES, facts)
}

/** Whether a request whose key was admitted on the same facts may have what it asks for. */
export function authorize(facts: AccessFacts): Denial | undefined {
  return firstDenial(ACCESS_RULES, facts)
}

function firstDenial<F>(rules: readonly Rule<F>[], facts: F): Denial | undefined {
  for (const rule of rules) {
    const denial = rule.check(facts)
    if (denial !== undefined) return denial
  }
  return undefined
}

function deny(reason: DenialReason): Denial {
  return { reason }
}

/** Admits and authorizes, with the outcome of every rule: those after the first that refuses are not reached. */
export function explain(facts: AccessFacts) {
  let denial: Denial | undefined
  const rules = [...ADMISSION_RULES, ...ACCESS_RULES].map(({ name: rule, check }) => {
    if (denial !== undefined) return { rule, outcome: 'not_reached' as const }
    denial = check(facts)
    return { rule, outcome: denial === undefined ? 'passed' as const : 'refused' as const }
  })
  return { denial, rules }
}

/** The problem that a denied request is answered with. */
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
  return new Problem(reason)
}
