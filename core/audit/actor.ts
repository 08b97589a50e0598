import { holdsKey } from '../keys/format.ts'

/** The rule for names of operators, as a sentence for people. */
export const ACTOR_RULE =
  'An actor has 1 to 200 characters, none of them a control character or line break, and is not a key.'

/** Whether a text may stand in the audit trail as the name of an operator. */
export function isActor(text: string): boolean {
  return text.trim() !== '' && text.length <= 400 && Array.from(text).length <= 200 && text.isWellFormed() &&
    !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text) && !holdsKey(text)
}
