import { holdsKey } from '../keys/format.ts'

/**
 * What is wrong with a name of a partner, a key or an operator, as a clause about it, or `undefined`: names have 1–200
 * code points, not only white space, none of them a control character or line break, and hold no key.
 */
export function brokenNameRule(name: string): string | undefined {
  if (name.trim() === '') return 'must not be empty'
  // 200 code points are at most 400 UTF-16 units: what is longer need not be counted.
  if (name.length > 400 || Array.from(name).length > 200) return 'has at most 200 characters'
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)) return 'holds no control characters or line breaks'
  if (!name.isWellFormed()) return 'must be well-formed Unicode'
  if (holdsKey(name)) return 'must not hold a key'
  return undefined
}
