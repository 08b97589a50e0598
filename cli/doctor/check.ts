import type { MaybePromise } from '../../core/lib/promise.ts'
import { joinList } from '../output/text.ts'

export interface Finding {
  /** `skipped`: it was not checked. */
  readonly severity: 'error' | 'warning' | 'info' | 'skipped'
  /** One sentence. */
  readonly message: string
  /** The command or setting that mends it. */
  readonly command?: string | undefined
  /** Further members under `--json`. */
  readonly facts?: Readonly<Record<string, unknown>>
}

/** Checks by name. Each judges one thing, and finds nothing when that is in order. */
export type Checks<Context> = Readonly<
  Record<string, (context: Context) => MaybePromise<Finding | readonly Finding[] | false | undefined | void>>
>

export function error(message: string, command?: string): Finding {
  return { severity: 'error', message, command }
}

export function warning(message: string, command: string, facts: Finding['facts'] = {}): Finding {
  return { severity: 'warning', message, command, facts }
}

/** One finding about one or more things. @param names The first of them. */
export function findMany(
  { severity, what, names, command, count = names.length }: Pick<Finding, 'severity' | 'command'> & {
    readonly what: string
    readonly names: readonly string[]
    readonly count?: number
  },
): readonly Finding[] {
  const first = names.slice(0, 5)
  const list = count > first.length
    ? [...first, `${(count - first.length).toLocaleString('en')} more`]
    : first
  return count === 0
    ? []
    : [{ severity, message: `${what}: ${joinList(list)}.`, command, facts: { count, first } }]
}

/** @param skewMs By how much the clock of `name` is ahead of that of `other`. */
export function findSkew(name: string, other: string, skewMs: number, maxMs: number): readonly Finding[] {
  const message = `The clock of ${name} is ${Math.abs(skewMs)} ms ${
    skewMs > 0 ? 'ahead of' : 'behind'
  } that of ${other}.`
  return Math.abs(skewMs) > maxMs ? [warning(message, 'timedatectl set-ntp true', { skew_ms: skewMs })] : []
}

/** @param ms How long a server may use outdated data. */
export function findStaleness(name: string, ms: number): readonly Finding[] {
  const message = `${name} may accept a key for ${ms / 1_000} s after it is revoked.`
  const command = 'partner-api serve --max-staleness 1000 --stale-if-error 0'
  return ms > 5_000 ? [warning(message, command, { staleness_ms: ms })] : []
}
