import type { Limit, LimitOverrides } from '../model.ts'
import { echo } from './echo.ts'
import { Refusal } from './refusal.ts'
import { isOverridable, requireLimits } from './rules.ts'

/** A change of the limits that a partner or a key carries itself. */
export interface LimitChange {
  /** Limits that it gets, in the place of those it has for the same policies. */
  readonly set?: LimitOverrides | undefined
  /** Policies for which it carries none any more: its partner's numbers, or the service's, count again. */
  readonly clear?: readonly string[] | undefined
}

/**
 * The limits after a change. What is both set and cleared is set.
 *
 * @throws {Refusal} `invalid_limit`
 */
export function changedLimits(limits: LimitOverrides, { set = {}, clear = [] }: LimitChange): LimitOverrides {
  requireLimits(set)
  for (const policy of clear) {
    if (isOverridable(policy)) continue
    throw new Refusal(
      'invalid_limit',
      `A partner or key carries limits for key, signup and verify only, and none for ${echo(policy)}.`,
    )
  }
  const kept = Object.entries(limits).filter(([policy]) => !clear.includes(policy))
  return Object.fromEntries([...kept, ...Object.entries(set)])
}

/** Whether two sets of limits say the same. */
export function sameLimits(a: LimitOverrides, b: LimitOverrides): boolean {
  return listed(a) === listed(b)
}

function listed(limits: LimitOverrides): string {
  const entries: [string, Limit][] = Object.entries(limits)
  return entries.map(([policy, { quota, windowSeconds }]) => `${policy}=${quota}/${windowSeconds}`).sort()
    .join()
}
