import type { PartnerApiOptions } from './api.ts'
import { drawId } from './draw-id.ts'
import { DEFAULT_PROBLEM_BASE } from './http/problem.ts'
import { DEFAULT_LIMITS, LIMIT_NAMES, MAX_QUOTA, MAX_WINDOW_SECONDS } from './limits/policies.ts'
import type { Limit, LimitName } from './model.ts'
import type { DeploymentInfo } from './openapi/model.ts'
import { nameService, type ServiceNames } from './service-names.ts'

/** The longest that known keys may go on working while the store does not answer: an hour. */
export const MAX_STALE_IF_ERROR_SECONDS = 3_600

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
export function settle(options: PartnerApiOptions): Settings {
  const { problemBase = DEFAULT_PROBLEM_BASE, logLevel = 'errors' } = options
  if (!URL.canParse(problemBase)) {
    throw new RangeError(`problemBase must be a URL, and ${problemBase} is none.`)
  }
  if (logLevel !== 'errors' && logLevel !== 'all') {
    throw new RangeError(`logLevel must be errors or all, not ${JSON.stringify(logLevel)}.`)
  }
  return {
    names: nameService(options.serviceName ?? 'service'),
    maxStalenessMs: whole('maxStalenessMs', options.maxStalenessMs ?? 1_000, 0, 10_000),
    storeTimeoutMs: whole('storeTimeoutMs', options.storeTimeoutMs ?? 5_000, 1, 60_000),
    lookUpTimeoutMs: whole('lookUpTimeoutMs', options.lookUpTimeoutMs ?? 1_000, 1, 60_000),
    staleIfErrorSeconds: whole(
      'staleIfErrorSeconds',
      options.staleIfErrorSeconds ?? 0,
      0,
      MAX_STALE_IF_ERROR_SECONDS,
    ),
    sharesLimits: options.sharedLimits ?? true,
    replicaName: nameOf(options.replicaName ?? drawId('rep_')),
    limits: limitsOf(options.limits ?? {}),
    trustedProxies: whole('trustedProxies', options.trustedProxies ?? 0, 0, 100),
    allowBrowsers: options.allowBrowsers ?? false,
    problemBase: problemBase.replace(/\/+$/, ''),
    replyCacheBytes: whole('replyCacheBytes', options.replyCacheBytes ?? 32 * 1024 * 1024, 0, 2 ** 40),
    keepUsageDays: whole(
      'keepUsageDays',
      options.keepUsageDays ?? DEFAULT_KEEP_USAGE_DAYS,
      1,
      MAX_KEEP_USAGE_DAYS,
    ),
    logsAll: logLevel === 'all',
    ...deploymentInfo(options.deployment ?? {}),
  }
}

function deploymentInfo(info: DeploymentInfo): DeploymentInfo {
  if (info.title !== undefined && info.title.trim() === '') {
    throw new RangeError('deployment.title must not be empty.')
  }
  for (const url of [info.contact?.url, ...info.servers?.map(({ url }) => url) ?? []]) {
    if (url === undefined || URL.canParse(url, 'http://relative.example')) continue
    throw new RangeError(`deployment: ${url} is not a URL.`)
  }
  return info
}

function limitsOf(given: Partial<Record<LimitName, Limit>>): Record<LimitName, Limit> {
  const limits: Record<LimitName, Limit> = { ...DEFAULT_LIMITS }
  for (const [name, limit] of Object.entries(given)) {
    if (!isLimitName(name)) {
      throw new RangeError(`limits: there is no policy ${name}; they are ${LIMIT_NAMES.join(', ')}.`)
    }
    if (limit === undefined) continue
    whole(`limits.${name}.quota`, limit.quota, 0, MAX_QUOTA)
    whole(`limits.${name}.windowSeconds`, limit.windowSeconds, 1, MAX_WINDOW_SECONDS)
    limits[name] = limit
  }
  return limits
}

function nameOf(name: string): string {
  if (name.length > 0 && name.length <= 200) return name
  throw new RangeError(`replicaName must have 1 to 200 characters, and it has ${name.length}.`)
}

function isLimitName(name: string): name is LimitName {
  return (LIMIT_NAMES as readonly string[]).includes(name)
}

function whole(name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new RangeError(`${name} must be an integer from ${min} to ${max}, and ${value} is not.`)
}
