import { type Module, MODULE_NAMES } from '../../core/policy/modules.ts'
import { type Scope, SCOPES } from '../../core/policy/scopes.ts'

/** Frozen: stores hold these bits. A new name takes a new bit, a bit is never used again. */
const moduleBits = {
  widget: 1,
  profiles: 2,
  banner: 4,
  countries: 8,
  industries: 16,
  pricing: 32,
  signup: 64,
  reporting: 128,
} satisfies Record<Module, number>

/** Frozen, like `moduleBits`. */
const scopeBits = {
  'read:partner-widget': 1,
  'read:profiles': 2,
  'read:banner': 4,
  'read:countries': 8,
  'read:industries': 16,
  'read:plans': 32,
  'create:partner-signups': 64,
  'read:partner-reports': 128,
} satisfies Record<Scope, number>

/** Names as an integer and back, in the order of the list that they come from. */
export interface BitSet<Name extends string> {
  encode(names: readonly Name[]): number
  decode(bits: number): readonly Name[]
}

export const moduleSet: BitSet<Module> = createBitSet(MODULE_NAMES, moduleBits)
export const scopeSet: BitSet<Scope> = createBitSet(SCOPES, scopeBits)

function createBitSet<Name extends string>(
  names: readonly Name[],
  bits: Readonly<Record<Name, number>>,
): BitSet<Name> {
  // Partners and keys use few of the combinations, over and over: each list is made once and shared.
  const decoded = new Map<number, readonly Name[]>()

  return {
    encode: (held) => held.reduce((sum, name) => sum | bits[name], 0),
    decode(sum) {
      let held = decoded.get(sum)
      if (held === undefined) {
        held = Object.freeze(names.filter((name) => sum & bits[name]))
        decoded.set(sum, held)
      }
      return held
    },
  }
}
