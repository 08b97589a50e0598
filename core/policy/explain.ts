import { ACCESS_RULES, type AccessFacts, ADMISSION_RULES, decide, type Decision } from './decide.ts'

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
  const rules = [...ADMISSION_RULES, ...ACCESS_RULES].map(({ name, refuse }): RuleOutcome => {
    if (refused) return { rule: name, outcome: 'not_reached' }
    refused = refuse(facts) !== undefined
    return { rule: name, outcome: refused ? 'refused' : 'passed' }
  })
  return { decision: decide(facts), rules }
}
