/** Parsers of what options say. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { AdminError, type LimitChange, parseDuration } from '../core/admin/validate.ts'
import { createServiceNames } from '../core/http/headers.ts'
import { parseInstant } from '../core/lib/time.ts'
import { LIMIT_NAMES, MAX_QUOTA, MAX_WINDOW_SECONDS, OVERRIDABLE_LIMITS } from '../core/limits/policies.ts'
import type { Limit, LimitName, LimitOverrides } from '../core/model.ts'
import type { DeploymentInfo } from '../core/openapi/model.ts'
import { usageError } from './errors.ts'
import { joinList } from './output/text.ts'

/** A parser that says the rule of whatever `read` refuses or gives `undefined` for. */
export function optionParser<T>(rule: string, parse: (text: string) => T | undefined): (text: string) => T {
  return (text) => {
    try {
      const value = parse(text)
      if (value !== undefined) return value
    } catch (error) {
      if (!(error instanceof AdminError || error instanceof RangeError)) throw error
    }
    throw new InvalidArgumentError(rule)
  }
}

/** A parser of whole numbers from `min` to `max`. */
export function integerBetween(min: number, max: number): (text: string) => number {
  return optionParser(`It has to be a whole number from ${min} to ${max}.`, (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN
    return value >= min && value <= max ? value : undefined
  })
}

/** A service's own name, as it stands in paths and headers. */
export const serviceNameOption: (text: string) => string = optionParser(
  'It is of lower-case letters, digits and -, a letter first.',
  (text) => createServiceNames(text).name,
)

/** A duration in milliseconds, 0 or more. */
export const durationOption: (text: string) => number = optionParser(
  'It is 0, or a whole number and s, m, h or d, such as 24h, up to 36525d.',
  parseDuration,
)

/** When something ends, as an option says it: the instant in milliseconds since the epoch, for the present given. */
export type ResolveEnd = (now: number) => number

/** When something ends: a duration from now on, a date whose day (UTC) is the last one, or an instant. */
export const endOption: (text: string) => ResolveEnd = optionParser(
  'It is a duration such as 90d (from 1s to 36525d), a date such as 2027-06-30, or an instant such as ' +
    '2027-06-30T12:00:00Z.',
  (text) => {
    const instant = parseInstant(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T23:59:59.999Z` : text)
    if (instant !== undefined) return () => instant
    const ms = parseDuration(text)
    return ms > 0 ? (now) => now + ms : undefined
  },
)

/**
 * A parser of `POLICY=QUOTA/SECONDS`, or `POLICY=0` for one that is off. A repeated option adds to those
 * before it; the last word on a policy counts.
 */
export function limitParser<N extends LimitName>(
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
          `${joinList(names, 'or')} and SECONDS 1 to ${MAX_WINDOW_SECONDS}.`,
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
  return command.option('--limit <policy=quota/seconds>', help, limitParser(OVERRIDABLE_LIMITS))
}

/** What the options ask for, `undefined` when it is nothing. @throws {Failure} exit code 2 when they contradict. */
export function limitChange({ limit = {}, clearLimit = [] }: LimitOptions): LimitChange | undefined {
  const both = clearLimit.filter((policy) => policy in limit)
  if (both.length > 0) {
    throw usageError(`--limit and --clear-limit both name ${joinList(both)}: which one is meant?`)
  }
  const isEmpty = clearLimit.length === 0 && Object.keys(limit).length === 0
  return isEmpty ? undefined : { set: limit, clear: clearLimit }
}

/** The settings of a service that its OpenAPI document tells of. */
export interface ServiceOptions {
  readonly serviceName: string
  readonly limit?: Partial<Record<LimitName, Limit>>
  readonly maxStaleness: number
  readonly allowBrowsers?: boolean
  readonly problemBase?: string
  readonly title?: string
  readonly contact?: string
  readonly publicUrl?: readonly string[]
}

/** Adds the options of {@linkcode ServiceOptions}. */
export function addServiceOptions(command: Command): Command {
  return command
    .option('--service-name <name>', 'Its own name, in paths and headers', serviceNameOption, 'service')
    .option(
      '--limit <policy=quota/seconds>',
      `${LIMIT_NAMES.join(', ')}; =0 turns one off (repeatable)`,
      limitParser(LIMIT_NAMES),
    )
    .option(
      '--max-staleness <ms>',
      'How late a change made elsewhere may bind here, 0 to 10000',
      integerBetween(0, 10_000),
      1_000,
    )
    .option('--allow-browsers', 'Answer requests that come from browsers, and log them')
    .option('--problem-base <url>', 'What the type of every problem starts with', httpUrlOption)
    .option('--title <text>', 'Title of the OpenAPI document and the reference page', labelOption)
    .option('--contact <email-or-url>', 'Whom users of the API write to, in the same', labelOption)
    .option(
      '--public-url <url>',
      'Address of this deployment, in the same (repeatable)',
      (url, before: readonly string[] = []) => [...before, httpUrlOption(url)],
    )
}

/** The part of the options that only the documents show. */
export function deploymentInfo({ title, contact, publicUrl }: ServiceOptions): DeploymentInfo {
  return {
    ...(title && { title }),
    ...(contact !== undefined && { contact: { [contact.includes('://') ? 'url' : 'email']: contact } }),
    ...(publicUrl !== undefined && { servers: publicUrl.map((url) => ({ url })) }),
  }
}

const labelOption = optionParser(
  'It must not be empty, nor hold control characters or line breaks.',
  (text) => text.trim() === '' || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(text) ? undefined : text,
)

const httpUrlOption = optionParser(
  'It has to be an http:// or https:// address without query and fragment.',
  (text) => {
    const { protocol, search, hash, username } = URL.parse(text) ?? {}
    const isBase = (protocol === 'https:' || protocol === 'http:') && !search && !hash && !username
    return isBase ? text.replace(/(?<!\/)\/+$/, '') : undefined
  },
)
