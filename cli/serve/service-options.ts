/** Options that are settings of the service: those of `openapi`, which `serve` has too, and further ones of `serve`. */
import { readFileSync, statSync } from 'node:fs'
import { Option } from 'commander'
import { findNameProblem } from '../../core/admin/validate.ts'
import { MS_PER_DAY } from '../../core/lib/time.ts'
import { SERVICE_POLICY_NAMES } from '../../core/limits/policies.ts'
import { endsWithBasePath, INTEGERS, type PartnerApiOptions, resolveBasePath } from '../../core/settings.ts'
import type { CliCommand } from '../command.ts'
import { usageError } from '../errors.ts'
import { durationOption, integerBetween, limitParser, optionParser, serviceNameOption } from '../options.ts'

/** The settings that options of other names set. */
const settingNames = {
  limit: 'limits',
  maxStaleness: 'maxStalenessMs',
  staleIfError: 'staleIfErrorSeconds',
  trustProxies: 'trustedProxies',
  keepUsage: 'keepUsageDays',
  keepSignups: 'keepSignupsDays',
} as const satisfies Readonly<Record<string, keyof PartnerApiOptions>>

type RenamedOptions = {
  readonly [Name in keyof typeof settingNames]?: PartnerApiOptions[(typeof settingNames)[Name]]
}

/** The options of `openapi` and `serve`. Those that are settings have their values. */
export interface ServiceOptions extends PartnerApiOptions, RenamedOptions {
  readonly title?: string
  readonly logo?: string
  readonly contact?: string
  readonly terms?: string
  readonly publicUrl?: readonly string[]
}

export function addServiceOptions(command: CliCommand): CliCommand {
  const names = SERVICE_POLICY_NAMES.join(', ')
  return command
    .option('--service-name <name>', 'Name in paths and headers', serviceNameOption, 'service')
    .option('--base-path <path>', 'Path that all paths begin with, such as /api', basePathOption)
    .addOption(
      new Option('--limit <policy=quota/seconds>', `${names}; =0 turns one off (repeatable)`)
        .argParser(limitParser(SERVICE_POLICY_NAMES)),
    )
    .addOption(
      integerSetting(
        'maxStalenessMs',
        '--max-staleness <ms>',
        'Delay until changes made elsewhere take effect',
      ),
    )
    .option('--allow-browsers', 'Answer requests from browsers, and log them')
    .option('--problem-base <url>', 'Base URL of problem types', httpUrlOption)
    .option('--title <text>', 'Title of the OpenAPI document and the reference page', labelOption)
    .option(
      '--contact <email-or-url>',
      'Contact in the OpenAPI document and the reference page',
      contactOption,
    )
    .option('--terms <url>', 'Terms of service in the OpenAPI document and the reference page', linkOption)
    .option(
      '--public-url <url...>',
      'Address of this deployment, with the base path, also shown there (repeatable)',
      (url, before: readonly string[] = []) => [...before, httpUrlOption(url)],
    )
}

export function addServerOptions(command: CliCommand): CliCommand {
  const outageHelp = 'How long known keys work while the store is unavailable'
  const proxiesHelp = 'Number of proxies in front that add to X-Forwarded-For'
  return addServiceOptions(command)
    .option('--logo <file>', 'Logo of the reference page: PNG, SVG, WebP or JPEG, up to 32 KiB', logoOption)
    .addOption(integerSetting('staleIfErrorSeconds', '--stale-if-error <seconds>', outageHelp))
    .option('--limits-per-process', 'Do not share limits with other servers')
    .option(
      '--replica-name <name>',
      'Name of this server in the output of --wait (default: HOSTNAME:PID)',
      replicaNameOption,
    )
    .addOption(integerSetting('trustedProxies', '--trust-proxies <n>', proxiesHelp))
    .addOption(
      daysSetting('keepUsageDays', '--keep-usage <days>', 'How long reports include requests and signups'),
    )
    .addOption(
      daysSetting('keepSignupsDays', '--keep-signups <days>', 'Delete signups that are older, such as 365d'),
    )
}

export function toSettings(options: ServiceOptions): PartnerApiOptions {
  const { title, logo, contact, terms, publicUrl, ...others } = options
  const { basePath = '' } = others
  const other = publicUrl?.find((url) => !endsWithBasePath(url, basePath))
  if (other !== undefined) {
    throw usageError(`--public-url ${other} must end with the --base-path, ${basePath}.`)
  }
  const names: Readonly<Record<string, string>> = settingNames
  const renamed = Object.entries(others).map(([name, value]) => [names[name] ?? name, value])
  const settings: PartnerApiOptions = Object.fromEntries(renamed)
  return {
    ...settings,
    deployment: {
      ...(title && { title }),
      ...(logo && { logo }),
      ...(terms && { terms }),
      ...(contact !== undefined && { contact: { [contact.includes('://') ? 'url' : 'email']: contact } }),
      ...(publicUrl !== undefined && { servers: publicUrl.map((url) => ({ url })) }),
    },
  }
}

function integerSetting(name: keyof typeof INTEGERS, flags: string, description: string): Option {
  const [defaultValue, min, max] = INTEGERS[name]
  return new Option(flags, `${description}, ${min} to ${max}`)
    .argParser(integerBetween(min, max)).default(defaultValue)
}

function daysSetting(name: 'keepUsageDays' | 'keepSignupsDays', flags: string, description: string): Option {
  const [defaultValue, min, max] = INTEGERS[name]
  const zero = min === 0 ? '; 0 keeps all' : ''
  const parse = optionParser(`It must be whole days, ${min || 1}d to ${max}d${zero}.`, (text) => {
    const days = durationOption(text) / MS_PER_DAY
    return Number.isInteger(days) && days >= min && days <= max ? days : undefined
  })
  return new Option(flags, description).argParser(parse)
    .default(defaultValue, defaultValue === 0 ? 'keep all' : `${defaultValue}d`)
}

const basePathOption = optionParser(
  'It must be / and segments of letters, digits, ., _, ~ and -, as in /api, without a slash at the end.',
  resolveBasePath,
)

const replicaNameOption = optionParser(
  'It must have 1 to 200 characters and no control characters or line breaks.',
  (text) => findNameProblem(text) === undefined && text.length <= 200 ? text : undefined,
)

const parseLabel = (text: string) =>
  text.trim() === '' || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(text) ? undefined : text
const labelRule = 'It must not be empty or contain control characters or line breaks.'
const labelOption = optionParser(labelRule, parseLabel)

const logoOption = optionParser(
  'It must be the name of a readable PNG, SVG, WebP or JPEG file of at most 32 KiB.',
  (file) => {
    const [, type] = /\.(png|svg|webp|jpe?g)$/i.exec(file) ?? []
    try {
      const stats = statSync(file)
      if (type === undefined || !stats.isFile() || stats.size > 32_768) return undefined
      const subtype = type.toLowerCase().replace('svg', 'svg+xml').replace('jpg', 'jpeg')
      return `data:image/${subtype};base64,${readFileSync(file, 'base64')}`
    } catch {
      return undefined
    }
  },
)

const parseLink = (text: string) =>
  /^https?:$/.test(URL.parse(text)?.protocol ?? '') ? parseLabel(text) : undefined
const linkOption = optionParser('It must be an http:// or https:// address.', parseLink)

const contactOption = optionParser(
  'It must be an e-mail address, or an http:// or https:// address.',
  (text) => {
    if (text.includes('://')) return parseLink(text)
    return /^[^\s@]+@[^\s@]+$/.test(text) ? parseLabel(text) : undefined
  },
)

export const httpUrlOption: (text: string) => string = optionParser(
  'It must be an http:// or https:// address without query and fragment.',
  (text) => {
    const { protocol, search, hash, username } = URL.parse(text) ?? {}
    const isBase = (protocol === 'https:' || protocol === 'http:') && !search && !hash && !username
    return isBase ? text.replace(/(?<!\/)\/+$/, '') : undefined
  },
)
