import { InvalidArgumentError } from 'commander'
import type { Limit, LimitName } from '../../core/model.ts'
import { listed } from '../output/text.ts'

const maxQuota = 1_000_000_000
const maxWindowSeconds = 86_400

/** The policies that a partner or a key carries numbers of its own for. */
export const OVERRIDABLE: readonly Exclude<LimitName, 'authfail'>[] = ['key', 'signup', 'verify']

/**
 * A parser of `POLICY=QUOTA/SECONDS`, or `POLICY=0` for one that is off. A repeated option adds to those
 * before it; the last word on a policy counts.
 */
export function limitsOf<N extends LimitName>(
  names: readonly N[],
): (text: string, previous?: Partial<Record<N, Limit>>) => Partial<Record<N, Limit>> {
  return (text, previous) => {
    const match = /^([a-z]+)=(?:0|(\d{1,10})\/(\d{1,6}))$/.exec(text)
    const name = names.find((known) => known === match?.[1])
    const quota = Number(match?.[2] ?? 0)
    const windowSeconds = Number(match?.[3] ?? 60)
    if (name === undefined || quota > maxQuota || windowSeconds < 1 || windowSeconds > maxWindowSeconds) {
      throw new InvalidArgumentError(
        `A limit is POLICY=QUOTA/SECONDS, such as ${
          names[0]
        }=600/60, or POLICY=0 for none, where POLICY is ` +
          `${listed(names, 'or')} and SECONDS 1 to ${maxWindowSeconds}.`,
      )
    }
    return { ...previous, [name]: { quota, windowSeconds } } as Partial<Record<N, Limit>>
  }
}
