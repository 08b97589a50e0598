/**
 * `admit`, `authorize` and `explain` against the oracle.
 *
 * A decision gets the scope that a route needs and nothing else of the route, so the twelve endpoints ask nine
 * different questions: no scope, or one of eight. Two products are enumerated:
 *
 * - All 256 scope sets × all 256 module sets × all nine questions, for every kind of key, address and claim under
 *   which the contract lets sets matter. Where it refuses before it looks at them, every pair of sets is still
 *   tried with every kind of key, partner and address, but the questions and claims take turns.
 * - All 48 combinations of stored state, expiry and end of overlap × everything else, with the pairs of sets in which
 *   the needed scope or module is the only one, the only one left out, or like all the others.
 */
import type { Principal } from '../../../core/keys/principal.ts'
import type { Key, Partner } from '../../../core/model.ts'
import type { AccessFacts, Decision } from '../../../core/policy/decide.ts'
import { key, partner } from '../../contract/store/samples.ts'
import { type Code, NEEDS, POLICY_ORDER, refusalOf, type Situation } from './oracle.ts'
import { preparePrincipal } from '../../../core/keys/principal.ts'
import { admit, authorize, explain } from '../../../core/policy/decide.ts'
import type { Tally } from './tally.ts'

const now = Date.UTC(2027, 0, 15)
const instants = [undefined, now + 1, now, now - 1]

interface KeyKind {
  readonly key: Key
  readonly situation: Pick<Situation, 'revoked' | 'expired' | 'disabled'>
}

/** "Valid until" an instant: at that instant not any more. */
const keyKinds: readonly KeyKind[] = (['active', 'disabled', 'revoked'] as const).flatMap((state) =>
  instants.flatMap((expiresAt) =>
    instants.map((retiresAt): KeyKind => ({
      key: key({
        state,
        expiresAt,
        retiresAt,
        successorId: retiresAt === undefined ? retiresAt : 'Successor000',
      }),
      situation: {
        revoked: state === 'revoked',
        expired: (expiresAt ?? Infinity) <= now || (retiresAt ?? Infinity) <= now,
        disabled: state === 'disabled',
      },
    }))
  )
)

/** One of each state, and of each two that can be true at once. */
const mainKinds = keyKinds.filter(({ key: { state, expiresAt, retiresAt } }) =>
  expiresAt !== now && retiresAt !== now && (expiresAt === undefined || retiresAt === undefined) &&
  !(state === 'revoked' && (expiresAt ?? retiresAt ?? now) > now)
)

const claims: readonly (readonly [string | undefined, Situation['claim']])[] = [
  ['acme', undefined],
  [undefined, 'missing'],
  ['', 'missing'],
  ['globex', 'foreign'],
  ['nobody', 'foreign'],
  ['ACME', 'foreign'],
  ['acm', 'foreign'],
  ['acme ', 'foreign'],
]

/** With the allow-list below; without one, no address is refused. */
const allow = ['192.0.2.0/24', '2001:db8::/32']
const addresses: readonly (readonly [AccessFacts['address'], inside: boolean])[] = [
  [[0xc0000207], true],
  [[0x20010db8, 0, 0, 1], true],
  [[0xc6336407], false],
  [[0x20010db9, 0, 0, 1], false],
  [undefined, false],
]

/** The scope that is asked for, as a place in `NEEDS`; -1 asks for none. */
const questions = [-1, 0, 1, 2, 3, 4, 5, 6, 7]

/** Compares the policy with the oracle: both products. */
export function provePolicy(tally: Tally): void {
  everyPair(createQuestion(tally))
  proveKeys(tally)
}

/** The second product alone. */
export function proveKeys(tally: Tally): void {
  everyKey(createQuestion(tally))
}

function everyPair(ask: Question): void {
  for (let scopes = 0; scopes < 256; scopes++) {
    for (let modules = 0; modules < 256; modules++) {
      let turn = 257 * scopes + modules
      for (const kind of mainKinds) {
        const barred = kind.situation.revoked || kind.situation.expired || kind.situation.disabled
        for (const suspended of [false, true]) {
          for (const restricted of [false, true]) {
            const asked = ask(kind, { scopes, modules, suspended, restricted })
            for (let address = 0; address < addresses.length; address += restricted ? 1 : 4) {
              turn++
              if (barred || (restricted && !addresses[address]?.[1])) {
                asked(address, turn % claims.length, questions[turn % 9] ?? -1, false)
                continue
              }
              asked(address, 1 + turn % (claims.length - 1), questions[turn % 9] ?? -1, false)
              if (suspended || address > 0) asked(address, 0, questions[turn % 9] ?? -1, false)
              // The trace is looked at once for each pair and question; it has nothing of its own to decide.
              else for (const question of questions) asked(address, 0, question, kind === mainKinds[0])
            }
          }
        }
      }
    }
  }
}

function everyKey(ask: Question): void {
  for (const question of questions) {
    const bit = question < 0 ? 0 : 1 << question
    const sets = question < 0 ? [0, 255] : [0, bit, 255 & ~bit, 255]
    for (const kind of keyKinds) {
      for (const scopes of sets) {
        for (const modules of sets) {
          for (const suspended of [false, true]) {
            for (const restricted of [false, true]) {
              const asked = ask(kind, { scopes, modules, suspended, restricted })
              for (let address = 0; address < addresses.length; address += restricted ? 1 : 4) {
                for (let claim = 0; claim < claims.length; claim++) asked(address, claim, question, true)
              }
            }
          }
        }
      }
    }
  }
}

interface Sets {
  readonly scopes: number
  readonly modules: number
  readonly suspended: boolean
  readonly restricted: boolean
}

type Question = (
  kind: KeyKind,
  sets: Sets,
) => (address: number, claim: number, question: number, traced: boolean) => void

function createQuestion(tally: Tally): Question {
  const listed = (mask: number, name: 'module' | 'scope') =>
    NEEDS.filter((_, index) => mask & (1 << index)).map((need) => need[name])
  const scopeSets = Array.from({ length: 256 }, (_, mask) => listed(mask, 'scope') as Key['scopes'])
  const moduleSets = Array.from({ length: 256 }, (_, mask) => listed(mask, 'module') as Partner['modules'])
  const expected = new Map<KeyKind, (Code | null)[]>()

  function expect(kind: KeyKind, bits: number, situation: () => Situation): Code | undefined {
    let codes = expected.get(kind)
    if (codes === undefined) expected.set(kind, codes = [])
    const code = codes[bits] ??= refusalOf(situation()) ?? null
    return code ?? undefined
  }

  return (kind, { scopes, modules, suspended, restricted }) => {
    const facts = {
      key: { ...kind.key, scopes: scopeSets[scopes]!, allow: restricted ? allow : [] },
      partner: partner({ modules: moduleSets[modules]!, state: suspended ? 'suspended' : 'active' }),
    }
    const principal = preparePrincipal(facts, {})
    return (at, claimed, question, traced) => {
      const [address, inside] = addresses[at]!
      const [claim, claimIs] = claims[claimed]!
      const held = question < 0 || (scopes >> question & 1) === 1
      const active = question < 0 || (modules >> question & 1) === 1
      const refused = restricted && !inside
      const bits = +held + 2 * +active + 4 * +refused + 8 * +suspended + 16 * claimed
      const code = expect(kind, bits, () => ({
        ...kind.situation,
        ...(refused ? { address: 'refused' } : {}),
        ...(claimIs ? { claim: claimIs } : {}),
        suspended,
        ...(held ? {} : { scope: 'not-held' }),
        ...(active ? {} : { module: 'inactive' }),
      }))
      const asked: AccessFacts = {
        principal,
        address,
        requestedPartner: claim,
        scope: NEEDS[question]?.scope as AccessFacts['scope'],
        now,
      }
      const decision = admit(asked) ?? authorize(asked)
      tally.compare(
        agrees(decision, code, question, principal),
        () => `${describe(asked)}: ${describeDecision(decision)}, and the contract says ${code ?? 'allowed'}`,
      )
      if (traced) {
        const { decision: explained, rules } = explain(asked)
        tally.compare(
          agrees(explained, code, question, principal) && isTrace(rules, code),
          () => `${describe(asked)}: ${describeDecision(explained)} explained as ${JSON.stringify(rules)}`,
        )
      }
    }
  }
}

function agrees(
  decision: Decision,
  code: Code | undefined,
  question: number,
  principal: Principal,
): boolean {
  if (decision.allowed) {
    const { grant } = decision
    return code === undefined && grant.principal === principal && grant.partner === principal.partner &&
      grant.key === principal.key && grant.now === now
  }
  return decision.reason === code &&
    decision.requiredScope === (code === 'scope_missing' ? NEEDS[question]?.scope : undefined) &&
    decision.requiredModule === (code === 'module_inactive' ? NEEDS[question]?.module : undefined)
}

/** One rule for each code of the policy, in the contract's order: those before passed, those after were not asked. */
function isTrace(rules: readonly { readonly outcome: string }[], code: Code | undefined): boolean {
  const decisive = code === undefined ? POLICY_ORDER.length : POLICY_ORDER.indexOf(code)
  return rules.length === POLICY_ORDER.length &&
    rules.every(({ outcome }, index) =>
      outcome === (index < decisive ? 'passed' : index === decisive ? 'refused' : 'not_reached')
    )
}

function describe(
  { principal: { key, partner }, address, requestedPartner: claim, scope }: AccessFacts,
): string {
  const { state, expiresAt, retiresAt, scopes, allow } = key
  return JSON.stringify({
    key: { state, expiresAt, retiresAt, scopes, allow },
    partner: { state: partner.state, modules: partner.modules },
    address: address ?? 'unknown',
    claim: claim ?? 'none',
    scope: scope ?? 'none',
  })
}

function describeDecision(decision: Decision): string {
  if (decision.allowed) return 'allowed'
  return [decision.reason, decision.requiredScope, decision.requiredModule].filter(Boolean).join(' ')
}
