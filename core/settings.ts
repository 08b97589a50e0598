import { createServiceNames, type ServiceNames } from './http/headers.ts'
import { DEFAULT_PROBLEM_BASE } from './http/problem.ts'
import { drawId } from './lib/ids.ts'
import { assertInteger, assertOptions, kindOf, type OptionKinds } from './lib/options.ts'
import { DEFAULT_LIMITS, MAX_QUOTA, MAX_WINDOW_SECONDS } from './limits/policies.ts'
import type { LogEvent } from './log.ts'
import type { Limit, ServicePolicyName } from './model.ts'
import { MAX_STALE_IF_ERROR_SECONDS } from './cache/revision-cache.ts'
import type { DeploymentInfo } from './openapi/model.ts'
import type { Observer } from './ports/observer.ts'
import type { OwnEndpoint } from './routes/host-endpoints.ts'

/** Settings of the service. All have defaults. */
export interface PartnerApiOptions {
  /** Name in paths and headers: lower-case letters, digits and `-`, a letter first; default `service`. */
  readonly serviceName?: string
  /**
   * Path that all paths of the service begin with, such as `/api`: segments of `A-Za-z0-9._~-`, default none. Give
   * it to services in a host that has them below a path, and pass requests with their complete path.
   */
  readonly basePath?: string
  /** Milliseconds, 0–10,000, default 1,000: how long changes in the store may take to become effective. */
  readonly maxStalenessMs?: number
  /** Overrides of the default limits; a quota of 0 turns a policy off. */
  readonly limits?: Readonly<Partial<Record<ServicePolicyName, Limit>>>
  /**
   * Milliseconds, 1–60,000, default 5,000: how long the store or directory may take before the response is 503.
   * Looking up keys and checking for changes, which other requests wait for, may take a fifth of it.
   */
  readonly storeTimeoutMs?: number
  /**
   * Seconds, 0–3,600, default 0: how long beyond `maxStalenessMs` cached keys keep working while the store is
   * unavailable. Keys that are revoked in that time work as long; `verify-key` and `health` report the outage.
   */
  readonly staleIfErrorSeconds?: number
  /**
   * Milliseconds since the epoch, in place of the store's clock and this machine's: what expires, opens or falls due
   * follows it, as do limits; time limits and staleness do not. For tests, with the same option of `openSqliteStore`; a
   * store that servers share has a clock of its own, and takes none.
   */
  readonly clock?: () => number
  /** Name of this replica in receipts: 1–200 characters, default random. */
  readonly replicaName?: string
  /** Endpoints of your own, see `defineEndpoint`. */
  readonly endpoints?: readonly OwnEndpoint[]
  /** Milliseconds, 1–60,000, default 10,000: how long a handler of your own may take before the response is 503. */
  readonly handlerTimeoutMs?: number
  /** Number of trusted proxies that append to `X-Forwarded-For`, 0–100, default 0. */
  readonly trustedProxies?: number
  /** Whether to allow and log requests from browser scripts instead of rejecting them, default false. */
  readonly allowBrowsers?: boolean
  /** Base of the `type` of problems, default `https://partner-api.example/problems`. */
  readonly problemBase?: string
  /** Deployment details for the OpenAPI document and the reference page: title, logo, contact, terms, servers. */
  readonly deployment?: DeploymentInfo
  /** Size of the response cache in bytes, default 32 MiB; 0 turns it off. */
  readonly responseCacheBytes?: number
  /** Days, 1–36,525, default 400: how long usage and signup counts remain in reports. */
  readonly keepUsageDays?: number
  /**
   * Days, 0–36,525, default 0: how long the store keeps signups; 0 for ever. They are deleted at the end of a day,
   * UTC, if the program runs for a minute or longer. Those in a destination of your own are yours to delete.
   */
  readonly keepSignupsDays?: number
  /**
   * What an invalid row of a custom directory does: `skip` (default) leaves it out, `fail` makes the response a 500.
   */
  readonly onInvalidRow?: 'skip' | 'fail'
  /**
   * Receives the events selected by `logLevel`. Without it, those with the level `error` and invalid rows of a
   * directory are lines of JSON on `console.error`; `() => {}` drops all.
   */
  readonly log?: (event: LogEvent) => void
  /** `errors` (default): rejected credentials, statuses from 500, administrative changes. `all`: every response too. */
  readonly logLevel?: 'errors' | 'all'
  /** Observe requests and calls of the store, for metrics and traces; default none. */
  readonly observers?: readonly Observer[]
}

/** Default, minimum and maximum of each option that is an integer. */
export const INTEGERS = {
  maxStalenessMs: [1_000, 0, 10_000],
  storeTimeoutMs: [5_000, 1, 60_000],
  handlerTimeoutMs: [10_000, 1, 60_000],
  staleIfErrorSeconds: [0, 0, MAX_STALE_IF_ERROR_SECONDS],
  trustedProxies: [0, 0, 100],
  responseCacheBytes: [32 * 1024 * 1024, 0, 2 ** 40],
  // A report covers up to 366 days.
  keepUsageDays: [400, 1, 36_525],
  keepSignupsDays: [0, 0, 36_525],
} as const satisfies { readonly [Name in keyof PartnerApiOptions]?: readonly [number, number, number] }

const optionKinds: OptionKinds<PartnerApiOptions> = {
  serviceName: 'a text',
  basePath: 'a text',
  maxStalenessMs: 'a number',
  limits: 'an object',
  storeTimeoutMs: 'a number',
  staleIfErrorSeconds: 'a number',
  clock: 'a function',
  replicaName: 'a text',
  endpoints: 'a list',
  handlerTimeoutMs: 'a number',
  trustedProxies: 'a number',
  allowBrowsers: 'true or false',
  problemBase: 'a text',
  deployment: 'an object',
  responseCacheBytes: 'a number',
  keepUsageDays: 'a number',
  keepSignupsDays: 'a number',
  onInvalidRow: 'a text',
  log: 'a function',
  logLevel: 'a text',
  observers: 'a list',
}

const limitKinds: OptionKinds<PartnerApiOptions['limits'] & object> = {
  key: 'an object',
  signup: 'an object',
  verify: 'an object',
  rotate: 'an object',
  authfail: 'an object',
}

/** The options with all defaults filled in. */
export interface Settings extends DeploymentInfo, Readonly<Record<keyof typeof INTEGERS, number>> {
  readonly names: ServiceNames
  /** The path below which the service is mounted, without a trailing slash; empty at the root of the origin. */
  readonly basePath: string
  readonly replicaName: string
  readonly limits: Readonly<Record<ServicePolicyName, Limit>>
  readonly allowBrowsers: boolean
  /** The base of the `type` of problems, without a trailing slash. */
  readonly problemBase: string
  readonly logsAll: boolean
  readonly failsOnInvalidRow: boolean
}

/**
 * @throws {RangeError} for an invalid option; the message names it.
 * @throws {TypeError} for an option that does not exist, and for a value of another kind.
 */
export function resolveSettings(options: PartnerApiOptions): Settings {
  assertOptions('createPartnerApi', options, optionKinds)
  const {
    serviceName = 'service',
    basePath: givenBasePath = '',
    replicaName = drawId('rep_'),
    allowBrowsers = false,
    problemBase = DEFAULT_PROBLEM_BASE,
    logLevel = 'errors',
    onInvalidRow = 'skip',
    limits = {},
    deployment = {},
    endpoints = [],
    observers = [],
  } = options
  endpoints.forEach(assertEndpoint)
  observers.forEach(assertObserver)
  if (!URL.canParse(problemBase)) throw new RangeError(`problemBase must be a URL, not ${problemBase}.`)
  assertOneOf('logLevel', logLevel, ['errors', 'all'])
  assertOneOf('onInvalidRow', onInvalidRow, ['skip', 'fail'])
  if (replicaName.length < 1 || replicaName.length > 200) {
    throw new RangeError(`replicaName must have 1 to 200 characters, not ${replicaName.length}.`)
  }
  const integers = Object.entries(INTEGERS).map(([name, [fallback, min, max]]) =>
    [name, assertInteger(name, options[name as keyof typeof INTEGERS] ?? fallback, min, max)] as const
  )
  const basePath = resolveBasePath(givenBasePath)
  return {
    ...Object.fromEntries(integers) as Record<keyof typeof INTEGERS, number>,
    ...assertDeployment(deployment, basePath),
    names: createServiceNames(serviceName),
    basePath,
    limits: resolveLimits(limits),
    problemBase: problemBase.replace(/\/+$/, ''),
    logsAll: logLevel === 'all',
    failsOnInvalidRow: onInvalidRow === 'fail',
    replicaName,
    allowBrowsers,
  }
}

function assertEndpoint(endpoint: OwnEndpoint, index: number): void {
  if (typeof endpoint?.addTo === 'function') return
  throw new TypeError(
    `createPartnerApi: endpoints[${index}] must be what defineEndpoint returned, not ${kindOf(endpoint)}.`,
  )
}

/** Refuses metrics in place of their observer, and values without members. Observers may have any methods. */
function assertObserver(observer: Observer, index: number): void {
  if (typeof observer === 'object' && observer !== null && !('observer' in observer)) return
  throw new TypeError(
    `createPartnerApi: observers[${index}] must be an object with methods such as requestCompleted; ` +
      'of metrics, pass metrics.observer.',
  )
}

function assertOneOf(name: string, value: string, values: readonly string[]): void {
  if (values.includes(value)) return
  throw new RangeError(`${name} must be ${values.join(' or ')}, not ${JSON.stringify(value)}.`)
}

/** @throws {RangeError} for a path that clients would change or encode, such as one with dot segments. */
export function resolveBasePath(given: string): string {
  const path = given === '/' ? '' : given
  if (/^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)*$/.test(path)) return path
  const rule =
    'use / and segments of A-Z, a-z, 0-9, ".", "_", "~" and "-", as in /api, without a slash at the end'
  throw new RangeError(`basePath cannot be ${JSON.stringify(given)}: ${rule}.`)
}

/** Whether a URL can be that of a service: what comes before the base path, a proxy removes. */
export function endsWithBasePath(url: string, basePath: string): boolean {
  return new URL(url, 'http://relative.example').pathname.replace(/\/+$/, '').endsWith(basePath)
}

function assertDeployment(info: DeploymentInfo, basePath: string): DeploymentInfo {
  assertOptions('deployment', info, {
    title: 'a text',
    logo: 'a text',
    contact: 'an object',
    terms: 'a text',
    servers: 'a list',
  })
  assertOptions('deployment.contact', info.contact ?? {}, { name: 'a text', url: 'a text', email: 'a text' })
  for (const [index, server] of info.servers?.entries() ?? []) {
    assertOptions(`deployment.servers[${index}]`, server, { url: 'a text', description: 'a text' })
  }
  if (info.title !== undefined && info.title.trim() === '') {
    throw new RangeError('deployment.title must not be empty.')
  }
  if (
    info.logo !== undefined &&
    (info.logo.length > 45_000 || !/^data:image\/(?:png|svg\+xml|webp|jpeg)[;,]/.test(info.logo))
  ) {
    throw new RangeError(
      'deployment.logo must be a data: URL of a PNG, SVG, WebP or JPEG image of at most 32 KiB.',
    )
  }
  // The page links to them, so `javascript:` is refused.
  for (const url of [info.contact?.url, info.terms, ...info.servers?.map(({ url }) => url) ?? []]) {
    if (url === undefined || URL.parse(url, 'http://relative.example')?.protocol.match(/^https?:$/)) continue
    throw new RangeError(`deployment: ${url} is not an http:, https: or relative URL.`)
  }
  for (const { url } of info.servers ?? []) {
    if (endsWithBasePath(url, basePath)) continue
    throw new RangeError(`deployment.servers: ${url} must end with the basePath, ${basePath}.`)
  }
  return info
}

function resolveLimits(given: Partial<Record<ServicePolicyName, Limit>>): Record<ServicePolicyName, Limit> {
  assertOptions('limits', given, limitKinds)
  for (const [name, limit] of Object.entries(given)) {
    if (limit === undefined) continue
    assertOptions(`limits.${name}`, limit, { quota: 'a number', windowSeconds: 'a number' })
    assertInteger(`limits.${name}.quota`, limit.quota, 0, MAX_QUOTA)
    assertInteger(`limits.${name}.windowSeconds`, limit.windowSeconds, 1, MAX_WINDOW_SECONDS)
  }
  const set = Object.entries(given).filter(([, limit]) => limit !== undefined)
  return { ...DEFAULT_LIMITS, ...Object.fromEntries(set) }
}
