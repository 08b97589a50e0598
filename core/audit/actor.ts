import { brokenNameRule } from '../admin/name.ts'

/** The rule for names of operators, as a sentence for people. */
export const ACTOR_RULE =
  'An actor has 1 to 200 characters, none of them a control character or line break, and is not a key.'

/** Whether a text may stand in the audit trail as the name of an operator. */
export function isActor(text: string): boolean {
  return brokenNameRule(text) === undefined
}
