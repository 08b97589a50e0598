import type { Command } from 'commander'
import { LIMIT_NAMES } from '../../core/limits/policies.ts'
import type { Limit, LimitName } from '../../core/model.ts'
import type { DeploymentInfo } from '../../core/openapi/model.ts'
import { integerBetween, parserOf, serviceName } from './arguments.ts'
import { limitsOf } from './limits.ts'

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
    .option('--service-name <name>', 'Its own name, in paths and headers', serviceName, 'service')
    .option(
      '--limit <policy=quota/seconds>',
      `${LIMIT_NAMES.join(', ')}; =0 turns one off (repeatable)`,
      limitsOf(LIMIT_NAMES),
    )
    .option(
      '--max-staleness <ms>',
      'How late a change made elsewhere may bind here, 0 to 10000',
      integerBetween(0, 10_000),
      1_000,
    )
    .option('--allow-browsers', 'Answer requests that come from browsers, and log them')
    .option('--problem-base <url>', 'What the type of every problem starts with', httpUrl)
    .option('--title <text>', 'Title of the OpenAPI document and the reference page', label)
    .option('--contact <email-or-url>', 'Whom users of the API write to, in the same', label)
    .option(
      '--public-url <url>',
      'Address of this deployment, in the same (repeatable)',
      (url, before: readonly string[] = []) => [...before, httpUrl(url)],
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

const label = parserOf(
  'It must not be empty, nor hold control characters or line breaks.',
  (text) => text.trim() === '' || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(text) ? undefined : text,
)

const httpUrl = parserOf(
  'It has to be an http:// or https:// address without query and fragment.',
  (text) => {
    const { protocol, search, hash, username } = URL.parse(text) ?? {}
    const isBase = (protocol === 'https:' || protocol === 'http:') && !search && !hash && !username
    return isBase ? text.replace(/(?<!\/)\/+$/, '') : undefined
  },
)
