import type { KeyFacts } from '../model.ts'
import { type AddressRange, parseRange } from '../policy/address.ts'
import { MODULES } from '../policy/modules.ts'
import type { Scope } from '../policy/scopes.ts'
import type { Policies } from '../limits/policies.ts'

/** Who a request comes from, with what every request of the same key would have to work out anew. */
export interface Principal extends KeyFacts {
  /** The scopes that the key holds. */
  readonly held: ReadonlySet<Scope>
  /** The scopes that an active module of the partner needs. */
  readonly needed: ReadonlySet<Scope>
  /** From where the key may be used; empty means from anywhere. */
  readonly ranges: readonly AddressRange[]
  readonly policies: Policies
}

/** Prepares facts for judging requests. */
export function preparePrincipal(facts: KeyFacts, policies: Policies): Principal {
  return {
    key: facts.key,
    partner: facts.partner,
    held: new Set(facts.key.scopes),
    needed: new Set(facts.partner.modules.map((module) => MODULES[module].scope)),
    ranges: facts.key.allow.map(parseRange),
    policies,
  }
}
