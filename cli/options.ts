/** Options of several commands, and parsers of their values. */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import type { DetailsChange, LimitChange } from '../core/admin/validate.ts'
import { createServiceNames } from '../core/http/headers.ts'
import { parseDuration, parseInstant } from '../core/lib/time.ts'
import {
  countsPerPartner,
  isPartnerQuota,
  KEY_POLICY_NAMES,
  MAX_QUOTA,
  MAX_QUOTA_SECONDS,
  maxWindowSeconds,
  PARTNER_POLICY_NAMES,
} from '../core/limits/policies.ts'
import {
  type KeyDetails,
  type Limit,
  type LimitOverrides,
  type PartnerDetails,
  type PolicyName,
  SELF_SERVICE,
  TAG_PATTERN,
} from '../core/model.ts'
import { CONTENT_KINDS } from '../core/ports/content.ts'
import { WEBHOOK_EVENT_TYPES } from '../core/ports/webhooks.ts'
import { usageError } from './errors.ts'
import { joinList } from './output/text.ts'
import { suggest } from './suggest.ts'

const slugHelp = "The partner's slug"

/** A parser that reports `rule` when `parse` throws or returns `undefined`. */
export function optionParser<T>(rule: string, parse: (text: string) => T | undefined): (text: string) => T {
  return (text) => {
    try {
      const value = parse(text)
      if (value !== undefined) return value
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
    }
    throw new InvalidArgumentError(rule)
  }
}

export function integerBetween(min: number, max: number): (text: string) => number {
  return optionParser(`It must be a whole number from ${min} to ${max}.`, (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN
    return value >= min && value <= max ? value : undefined
  })
}

export const serviceNameOption: (text: string) => string = optionParser(
  'It must consist of lower-case letters, digits and -, and start with a letter.',
  (text) => createServiceNames(text).name,
)

/** Parses a duration to milliseconds. */
export const durationOption: (text: string) => number = optionParser(
  'It must be 0, or a whole number followed by s, m, h or d, such as 24h, up to 36525d.',
  parseDuration,
)

/** An option with a duration. @param ms The default, whole hours. */
export function durationDefault(name: string, help: string, ms: number): Option {
  return new Option(`${name} <duration>`, help).argParser(durationOption).default(ms, `${ms / 3_600_000}h`)
}

/** Computes the instant of an end from the current time, both in milliseconds since the epoch. */
export type ResolveEnd = (now: number) => number

/** Parses the end of something: a duration from now, a date (the end of that day, UTC), or an instant. */
export const endOption: (text: string) => ResolveEnd = optionParser(
  'It must be a duration such as 90d (from 1s to 36525d), a date such as 2027-06-30, or an instant such as ' +
    '2027-06-30T12:00:00Z.',
  (text) => {
    const instant = parseInstant(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T23:59:59.999Z` : text)
    if (instant !== undefined) return () => instant
    const ms = parseDuration(text)
    return ms ? (now) => now + ms : undefined
  },
)

/** A parser of `POLICY=QUOTA/SECONDS`, `month=QUOTA`, or `POLICY=0` for none, each policy once. */
export function limitParser<N extends PolicyName>(
  names: readonly N[],
): (text: string, previous?: Partial<Record<N, Limit>>) => Partial<Record<N, Limit>> {
  return (text, previous) => {
    const [, given, digits = '0', seconds] = /^([a-z]+)=(?:0|(\d{1,10})(?:\/(\d{1,7}))?)$/.exec(text) ?? []
    const name = names.find((known) => known === given)
    const quota = Number(digits)
    const windowSeconds = name === 'month' ? MAX_QUOTA_SECONDS : Number(seconds ?? 60)
    const word = text.split('=')[0]!
    if (names.every((known) => known !== word) && countsPerPartner(word)) {
      const command = `partner-api partners update SLUG --limit ${text.replace(/[^a-z0-9=/]/g, '')}`
      throw new InvalidArgumentError(`Only a partner has this limit, for all of its keys: ${command}`)
    }
    if (/=0+(?:\/|0$)/.test(text)) {
      const advice = `${name ?? names[0]}=0 turns the limit off; to refuse every request, disable the key.`
      throw new InvalidArgumentError(`A quota must be at least 1. ${advice}`)
    }
    const isComplete = quota === 0 || (seconds === undefined) === (name === 'month')
    const most = maxWindowSeconds(name ?? 'key')
    if (name === undefined || !isComplete || quota > MAX_QUOTA || windowSeconds < 1 || windowSeconds > most) {
      const form = `POLICY=QUOTA/SECONDS, such as ${names[0]}=600/60, or POLICY=0 for none`
      const longest = maxWindowSeconds(name === 'partner' ? name : 'key')
      const where = `where POLICY is ${joinList(names, 'or')} and SECONDS 1 to ${longest}`
      const months = names.some(isPartnerQuota) ? ' For a calendar month, it is month=QUOTA.' : ''
      throw new InvalidArgumentError(`A limit is ${form}, ${where}.${months}`)
    }
    if (previous?.[name] !== undefined) throw new InvalidArgumentError(`The limit ${name} is set twice.`)
    const limit = name === 'month' ? { quota } : { quota, windowSeconds }
    return { ...previous, [name]: limit } as Partial<Record<N, Limit>>
  }
}

export interface LimitOptions {
  readonly limit?: LimitOverrides
  readonly clearLimit?: readonly string[]
}

/** @returns `undefined` for no change. @throws {CliError} exit code 2 when the options contradict each other. */
export function limitChange({ limit = {}, clearLimit = [] }: LimitOptions): LimitChange | undefined {
  const both = clearLimit.filter((policy) => policy in limit)
  if (both.length > 0) {
    throw usageError(`--limit and --clear-limit contradict each other about ${joinList(both)}.`)
  }
  const isEmpty = clearLimit.length === 0 && Object.keys(limit).length === 0
  return isEmpty ? undefined : { set: limit, clear: clearLimit }
}

const detailOptions = {
  contact: ['--contact <email>', 'E-mail address for notices about its keys'],
  tag: ['--tag <tag...>', 'Its tags, which lists can be filtered by'],
  'external-id': ['--external-id <id>', 'Its id in another system'],
  note: ['--note <text>', 'A note for operators'],
  'self-service': ['--self-service <action...>', 'What it may do with its keys itself: rotate, revoke'],
  owner: ['--owner <owner>', 'Who is responsible for the key'],
} as const

/** What options say about details; `false` removes one. */
export type DetailOptions =
  & { readonly [Name in 'contact' | 'externalId' | 'note' | 'owner']?: string | false }
  & { readonly tag?: readonly string[] | false; readonly selfService?: PartnerDetails['selfService'] | false }

/** Parses a tag to filter by. */
export const tagOption: (text: string) => string = optionParser(
  'It must be 1–40 of a-z, 0-9, -, _ and ., a letter or digit first.',
  (text) => TAG_PATTERN.test(text) ? text : undefined,
)

/** Adds options of details. @param isUpdate Adds options that remove them. */
export function withDetails<C extends Command>(
  command: C,
  names: readonly (keyof typeof detailOptions)[],
  isUpdate: boolean,
): C {
  for (const name of names) {
    const [flags, help] = detailOptions[name]
    command.option(flags, help)
    if (isUpdate) {
      command.option(`--no-${name}`, `Remove the ${name === 'tag' ? 'tags' : name.replace('-', ' ')}`)
    }
  }
  return command
}

/** The details that options set, and `null` for those that they remove. */
export function detailsChange({ contact, tag: tags, externalId, note, selfService, owner }: DetailOptions) {
  const options = { contact, tags, externalId, note, selfService, owner }
  // A key has no contact: a member that is not given must not be there.
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  const changes = given.map(([name, value]) => [name, value === false ? null : value])
  return Object.fromEntries(changes) as DetailsChange<PartnerDetails & KeyDetails>
}

/** Adds the options of a list. @param position What `--after` takes. */
export function withPages<C extends Command>(
  command: C,
  position: string,
  parse: (text: string) => unknown = (text) => text,
): C {
  const limitHelp = 'Number of rows, 1 to 100000 (default: 100 on a terminal, else all)'
  return command
    .option('--limit <n>', limitHelp, integerBetween(1, 100_000))
    .option(`--after <${position}>`, 'Continue after this row, the last one of the previous page', parse)
}

export interface PageOptions<Position> {
  readonly limit?: number
  readonly after?: Position
}

/** Adds how a secret that is made is printed. @param what The secret. */
export function withSecret<C extends Command>(command: C, what: string): C {
  const rule = `It must be the path of a new file; without --out, the ${what} is printed on standard output.`
  return command
    .option(
      '--out <file>',
      `Write the ${what} to a new file of mode 0600 instead of printing it`,
      optionParser(rule, (text) => text === '' || text === '-' ? undefined : text),
    )
    .option('-q, --quiet', `Print only the ${what}`)
}

interface Placeholder {
  /** Help of an argument. */
  readonly help?: string
  readonly choices?: readonly string[]
  parse?(text: string, previous: unknown): unknown
}

/** What the names of arguments, and of the values of options, mean in every command. */
const placeholders: Readonly<Record<string, Placeholder>> = {
  slug: { help: slugHelp },
  partner: { help: slugHelp },
  key: { help: "The key's id, see keys list" },
  claim: { help: "The claim's id, see claims list" },
  webhook: { help: "The webhook's id, see webhooks list" },
  kind: { help: 'Kind of content', choices: CONTENT_KINDS },
  module: { help: 'Names of modules, see modules list' },
  scope: { help: 'Names of scopes, see scopes list' },
  type: { choices: WEBHOOK_EVENT_TYPES },
  policy: { choices: KEY_POLICY_NAMES },
  limit: { choices: PARTNER_POLICY_NAMES },
  action: { choices: SELF_SERVICE },
  duration: { parse: durationOption },
  when: { parse: endOption },
  // With white space around it, the URL of a store would be that of another, empty one.
  url: { parse: (text) => text.trim() },
  'policy=quota/seconds': { parse: limitParser(KEY_POLICY_NAMES) },
  'policy=quota': { parse: limitParser(PARTNER_POLICY_NAMES) },
}

export function createArgument(name: string, description: string | undefined): Argument {
  const argument = new Argument(name, description)
  const { help = '', choices } = placeholders[argument.name()] ?? {}
  argument.description ||= help
  return choices ? suggestChoices(argument.choices(choices)) : argument
}

/** Lets the error of a value that is not among the choices suggest one. */
export function suggestChoices<T extends Argument | Option>(target: T): T {
  const { argChoices: choices, parseArg } = target
  if (choices === undefined || parseArg === undefined) return target
  target.argParser((text: string, previous: unknown) => {
    if (choices.includes(text)) return parseArg(text, previous)
    throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.${suggest(text, choices)}`)
  })
  return target
}

export function createOption(flags: string, description: string | undefined): Option {
  const option = new Option(flags, description)
  const [, name = ''] = /<([^.>]+)/.exec(flags) ?? []
  const { choices, parse } = placeholders[name] ?? {}
  if (choices) return option.choices(choices)
  return parse ? option.argParser(parse) : option
}
