import { MAX_STALE_IF_ERROR_SECONDS } from './cache/revision-cache.ts'
import { createServiceNames, type ServiceNames } from './http/headers.ts'
import { DEFAULT_PROBLEM_BASE } from './http/problem.ts'
import { drawId } from './lib/ids.ts'
import { assertInteger } from './lib/validate.ts'
import { DEFAULT_LIMITS, LIMIT_NAMES, MAX_QUOTA, MAX_WINDOW_SECONDS } from './limits/policies.ts'
import type { LogEvent } from './log.ts'
import type { Limit, LimitName } from './model.ts'
import type { DeploymentInfo } from './openapi/model.ts'

/** Settings of the service. All have defaults. */
export interface PartnerApiOptions {
  /** Lower-case letters, digits and `-`, a letter first; default `service`. Stands in paths and headers. */
  readonly serviceName?: string
  /** Milliseconds, 0–10,000, default 1,000: how old a fact or a piece of content may be that is still used. */
  readonly maxStalenessMs?: number
  /** Quotas that differ from the defaults; a quota of 0 turns a policy off. */
  readonly limits?: Readonly<Partial<Record<LimitName, Limit>>>
  /** Milliseconds, 1–60,000, default 5,000: how long a store or directory may take to answer, or it is a 503. */
  readonly storeTimeoutMs?: number
  /** Milliseconds, 1–60,000, default 1,000: how long it may take to look up a key, or to confirm what is known. */
  readonly lookUpTimeoutMs?: number
  /**
   * Seconds, 0–3,600, default 0: for how long beyond `maxStalenessMs` known keys go on working when the store does not
   * answer. What is revoked meanwhile may go on for that long, too; `verify-key` and `health` say when it is so.
   */
  readonly staleIfErrorSeconds?: number
  /** Share quotas with the other replicas of a store that can, default true; otherwise this process counts alone. */
  readonly sharedLimits?: boolean
  /** What receipts call this replica: 1–200 characters, drawn unless given. */
  readonly replicaName?: string
  /** How many proxies stand in front and add to `X-Forwarded-For`, default 0. */
  readonly trustedProxies?: number
  /** Answer requests that a browser's script sent, and log them, instead of refusing them; default false. */
  readonly allowBrowsers?: boolean
  /** Base of the `type` of problems, default `https://partner-api.example/problems`. */
  readonly problemBase?: string
  /** What the OpenAPI document and the reference page say of this deployment: title, contact, servers. */
  readonly deployment?: DeploymentInfo
  /** Bytes of replies that are kept ready, default 32 MiB. */
  readonly replyCacheBytes?: number
  /** Days, 1–36,525, default 400: for how long requests and signups stay counted in reports. Signups stay. */
  readonly keepUsageDays?: number
  /** Gets an event for each answer that `logLevel` names. */
  readonly log?: (event: LogEvent) => void
  /**
   * `errors` (default): refused credentials, answers of 500 and above, and what operators decide. `all`: every
   * answer too.
   */
  readonly logLevel?: 'errors' | 'all'
}

/** Days for which counts are kept. A report reaches back 366 days. */
export const DEFAULT_KEEP_USAGE_DAYS = 400

/** A hundred years. */
export const MAX_KEEP_USAGE_DAYS = 36_525

/** The options of the service with every default filled in. */
export interface Settings extends DeploymentInfo {
  readonly names: ServiceNames
  readonly maxStalenessMs: number
  readonly storeTimeoutMs: number
  readonly lookUpTimeoutMs: number
  readonly staleIfErrorSeconds: number
  readonly sharesLimits: boolean
  readonly replicaName: string
  readonly limits: Readonly<Record<LimitName, Limit>>
  readonly trustedProxies: number
  readonly allowBrowsers: boolean
  /** Without a slash at its end. */
  readonly problemBase: string
  readonly replyCacheBytes: number
  readonly keepUsageDays: number
  readonly logsAll: boolean
}

/** @throws {RangeError} for an option out of its range; the message names it. */
export function resolveSettings(options: PartnerApiOptions): Settings {
  const { problemBase = DEFAULT_PROBLEM_BASE, logLevel = 'errors' } = options
  if (!URL.canParse(problemBase)) {
    throw new RangeError(`problemBase must be a URL, and ${problemBase} is none.`)
  }
  if (logLevel !== 'errors' && logLevel !== 'all') {
    throw new RangeError(`logLevel must be errors or all, not ${JSON.stringify(logLevel)}.`)
  }
  return {
    names: createServiceNames(options.serviceName ?? 'service'),
    maxStalenessMs: assertInteger('maxStalenessMs', options.maxStalenessMs ?? 1_000, 0, 10_000),
    storeTimeoutMs: assertInteger('storeTimeoutMs', options.storeTimeoutMs ?? 5_000, 1, 60_000),
    lookUpTimeoutMs: assertInteger('lookUpTimeoutMs', options.lookUpTimeoutMs ?? 1_000, 1, 60_000),
    staleIfErrorSeconds: assertInteger(
      'staleIfErrorSeconds',
      options.staleIfErrorSeconds ?? 0,
      0,
      MAX_STALE_IF_ERROR_SECONDS,
    ),
    sharesLimits: options.sharedLimits ?? true,
    replicaName: validateReplicaName(options.replicaName ?? drawId('rep_')),
    limits: resolveLimits(options.limits ?? {}),
    trustedProxies: assertInteger('trustedProxies', options.trustedProxies ?? 0, 0, 100),
    allowBrowsers: options.allowBrowsers ?? false,
    problemBase: problemBase.replace(/\/+$/, ''),
    replyCacheBytes: assertInteger(
      'replyCacheBytes',
      options.replyCacheBytes ?? 32 * 1024 * 1024,
      0,
      2 ** 40,
    ),
    keepUsageDays: assertInteger(
      'keepUsageDays',
      options.keepUsageDays ?? DEFAULT_KEEP_USAGE_DAYS,
      1,
      MAX_KEEP_USAGE_DAYS,
    ),
    logsAll: logLevel === 'all',
    ...validateDeployment(options.deployment ?? {}),
  }
}

function validateDeployment(info: DeploymentInfo): DeploymentInfo {
  if (info.title !== undefined && info.title.trim() === '') {
    throw new RangeError('deployment.title must not be empty.')
  }
  for (const url of [info.contact?.url, ...info.servers?.map(({ url }) => url) ?? []]) {
    if (url === undefined || URL.canParse(url, 'http://relative.example')) continue
    throw new RangeError(`deployment: ${url} is not a URL.`)
  }
  return info
}

function resolveLimits(given: Partial<Record<LimitName, Limit>>): Record<LimitName, Limit> {
  const limits: Record<LimitName, Limit> = { ...DEFAULT_LIMITS }
  for (const [name, limit] of Object.entries(given)) {
    if (!isLimitName(name)) {
      throw new RangeError(`limits: there is no policy ${name}; they are ${LIMIT_NAMES.join(', ')}.`)
    }
    if (limit === undefined) continue
    assertInteger(`limits.${name}.quota`, limit.quota, 0, MAX_QUOTA)
    assertInteger(`limits.${name}.windowSeconds`, limit.windowSeconds, 1, MAX_WINDOW_SECONDS)
    limits[name] = limit
  }
  return limits
}

function validateReplicaName(name: string): string {
  if (name.length > 0 && name.length <= 200) return name
  throw new RangeError(`replicaName must have 1 to 200 characters, and it has ${name.length}.`)
}

function isLimitName(name: string): name is LimitName {
  return (LIMIT_NAMES as readonly string[]).includes(name)
}
