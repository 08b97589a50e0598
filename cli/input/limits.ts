import { type Command, InvalidArgumentError, Option } from 'commander'
import type { LimitChange } from '../../core/admin/rules.ts'
import { MAX_QUOTA, MAX_WINDOW_SECONDS, OVERRIDABLE_LIMITS } from '../../core/limits/policies.ts'
import type { Limit, LimitName, LimitOverrides } from '../../core/model.ts'
import { usageFailure } from '../failure.ts'
import { listed } from '../output/text.ts'

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
    if (/=0+\//.test(text)) {
      throw new InvalidArgumentError(
        `A limit of 0 requests is none. ${
          name ?? names[0]
        }=0 turns the limit off; to refuse every request, disable the key.`,
      )
    }
    if (name === undefined || quota > MAX_QUOTA || windowSeconds < 1 || windowSeconds > MAX_WINDOW_SECONDS) {
      throw new InvalidArgumentError(
        `A limit is POLICY=QUOTA/SECONDS, such as ${
          names[0]
        }=600/60, or POLICY=0 for none, where POLICY is ` +
          `${listed(names, 'or')} and SECONDS 1 to ${MAX_WINDOW_SECONDS}.`,
      )
    }
    return { ...previous, [name]: { quota, windowSeconds } } as Partial<Record<N, Limit>>
  }
}

/** The options of a command that changes what limits a partner or a key carries. */
export interface LimitOptions {
  readonly limit?: LimitOverrides
  readonly clearLimit?: readonly string[]
}

/** Adds the options of {@linkcode LimitOptions}. */
export function addLimitOptions(command: Command): Command {
  return addLimitOption(command, 'A limit of its own; =0 for none (repeatable)')
    .addOption(
      new Option('--clear-limit <policy...>', 'Policies whose limit is no longer its own').choices(
        OVERRIDABLE_LIMITS,
      ),
    )
}

/** Adds the option that gives a partner or a key limits. */
export function addLimitOption(command: Command, help = 'A limit of its own (repeatable)'): Command {
  return command.option('--limit <policy=quota/seconds>', help, limitsOf(OVERRIDABLE_LIMITS))
}

/** What the options ask for, `undefined` when it is nothing. @throws {Failure} exit code 2 when they contradict. */
export function limitChange({ limit = {}, clearLimit = [] }: LimitOptions): LimitChange | undefined {
  const both = clearLimit.filter((policy) => policy in limit)
  if (both.length > 0) {
    throw usageFailure(`--limit and --clear-limit both name ${listed(both)}: which one is meant?`)
  }
  const isEmpty = clearLimit.length === 0 && Object.keys(limit).length === 0
  return isEmpty ? undefined : { set: limit, clear: clearLimit }
}
