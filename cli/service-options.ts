/** Options that are settings of the service: those of `openapi`, which `serve` has too, and further ones of `serve`. */
import { Option } from 'commander'
import { validateName } from '../core/admin/validate.ts'
import { MS_PER_DAY } from '../core/lib/time.ts'
import { LIMIT_NAMES } from '../core/limits/policies.ts'
import type { Limit, LimitName } from '../core/model.ts'
import { INTEGERS, type PartnerApiOptions } from '../core/settings.ts'
import type { CliCommand } from './command.ts'
import { durationOption, integerBetween, limitParser, optionParser, serviceNameOption } from './options.ts'

/** The settings that the OpenAPI document describes. */
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

export function addServiceOptions(command: CliCommand): CliCommand {
  return command
    .option('--service-name <name>', 'Name in paths and headers', serviceNameOption, 'service')
    .option(
      '--limit <policy=quota/seconds>',
      `${LIMIT_NAMES.join(', ')}; =0 turns one off (repeatable)`,
      limitParser(LIMIT_NAMES),
    )
    .addOption(
      integerOption(
        '--max-staleness <ms>',
        'Delay until changes made elsewhere take effect',
        'maxStalenessMs',
      ),
    )
    .option('--allow-browsers', 'Answer requests from browsers, and log them')
    .option('--problem-base <url>', 'Base URL of problem types', httpUrlOption)
    .option('--title <text>', 'Title of the OpenAPI document and the reference page', labelOption)
    .option('--contact <email-or-url>', 'Contact in the OpenAPI document and the reference page', labelOption)
    .option(
      '--public-url <url>',
      'Address of this deployment, also shown there (repeatable)',
      (url, before: readonly string[] = []) => [...before, httpUrlOption(url)],
    )
}

export function serviceSettings(options: ServiceOptions) {
  const { serviceName, limit = {}, maxStaleness, allowBrowsers = false, problemBase } = options
  const { title, contact, publicUrl } = options
  return {
    serviceName,
    limits: limit,
    maxStalenessMs: maxStaleness,
    allowBrowsers,
    ...(problemBase !== undefined && { problemBase }),
    deployment: {
      ...(title && { title }),
      ...(contact !== undefined && { contact: { [contact.includes('://') ? 'url' : 'email']: contact } }),
      ...(publicUrl !== undefined && { servers: publicUrl.map((url) => ({ url })) }),
    },
  } satisfies PartnerApiOptions
}

/** All settings of a server. */
export interface ServerOptions extends ServiceOptions {
  readonly staleIfError: number
  readonly limitsPerProcess?: true
  readonly replicaName?: string
  readonly trustProxies: number
  readonly keepUsage: number
}

export function addServerOptions(command: CliCommand): CliCommand {
  const [keepUsageDays] = INTEGERS.keepUsageDays
  return addServiceOptions(command)
    .addOption(
      integerOption(
        '--stale-if-error <seconds>',
        'How long known keys work while the store is unavailable',
        'staleIfErrorSeconds',
      ),
    )
    .option('--limits-per-process', 'Do not share limits with other servers')
    .option(
      '--replica-name <name>',
      'Name of this server in the output of --wait (default: HOSTNAME:PID)',
      replicaNameOption,
    )
    .addOption(
      integerOption(
        '--trust-proxies <n>',
        'Number of proxies in front that add to X-Forwarded-For',
        'trustedProxies',
      ),
    )
    .addOption(
      new Option('--keep-usage <days>', 'How long reports include requests and signups')
        .argParser(daysOption).default(keepUsageDays, `${keepUsageDays}d`),
    )
}

export function serverSettings(options: ServerOptions) {
  return {
    ...serviceSettings(options),
    staleIfErrorSeconds: options.staleIfError,
    sharedLimits: !options.limitsPerProcess,
    ...(options.replicaName !== undefined && { replicaName: options.replicaName }),
    trustedProxies: options.trustProxies,
    keepUsageDays: options.keepUsage,
  } satisfies PartnerApiOptions
}

function integerOption(flags: string, description: string, setting: keyof typeof INTEGERS): Option {
  const [defaultValue, min, max] = INTEGERS[setting]
  return new Option(flags, `${description}, ${min} to ${max}`)
    .argParser(integerBetween(min, max)).default(defaultValue)
}

const [, minKeepUsageDays, maxKeepUsageDays] = INTEGERS.keepUsageDays
const daysOption = optionParser(
  `It must be whole days, ${minKeepUsageDays}d to ${maxKeepUsageDays}d.`,
  (text) => {
    const days = durationOption(text) / MS_PER_DAY
    return Number.isInteger(days) && days >= minKeepUsageDays && days <= maxKeepUsageDays ? days : undefined
  },
)

const replicaNameOption = optionParser(
  'It must have 1 to 200 characters and no control characters or line breaks.',
  (text) => validateName(text) === undefined && text.length <= 200 ? text : undefined,
)

const labelOption = optionParser(
  'It must not be empty or contain control characters or line breaks.',
  (text) => text.trim() === '' || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(text) ? undefined : text,
)

const httpUrlOption = optionParser(
  'It must be an http:// or https:// address without query and fragment.',
  (text) => {
    const { protocol, search, hash, username } = URL.parse(text) ?? {}
    const isBase = (protocol === 'https:' || protocol === 'http:') && !search && !hash && !username
    return isBase ? text.replace(/(?<!\/)\/+$/, '') : undefined
  },
)
