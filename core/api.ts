import { createResponseCache } from './cache/response-cache.ts'
import type { RevisionCache } from './cache/revision-cache.ts'
import { followStore } from './follow-store.ts'
import { createCursors } from './http/cursor.ts'
import { createFetch, type PeerInfo } from './http/fetch.ts'
import type { HttpRequest, HttpResponse } from './http/message.ts'
import { Problem, type ProblemCode, PROBLEMS } from './http/problem.ts'
import { createResponseWriter, type ResponseWriter } from './http/response.ts'
import { INTERNALS, type Internals } from './internals.ts'
import { createAuthenticator } from './keys/authenticator.ts'
import { createLastUsedRecorder, type LastUsedRecorder } from './keys/last-used.ts'
import { createPrincipalCache, type PrincipalCache } from './keys/principal.ts'
import { type Clock, clockOf } from './lib/clock.ts'
import type { WebRequest, WebResponse } from './lib/web-globals.ts'
import { ignoreFailure, type MaybePromise } from './lib/promise.ts'
import { API_VERSION, ENDPOINT_METHODS, modulesWith } from './model.ts'
import { MS_PER_DAY, utcDay } from './lib/time.ts'
import { createFailedAuthentications } from './limits/failed-authentications.ts'
import { followClock, type Limiter, localWindowsOf } from './limits/limiter.ts'
import { policiesFor } from './limits/policies.ts'
import { createSharedLimiter } from './limits/shared-limiter.ts'
import { createAuditWatcher, createRequestLogger, logToConsole, type RequestLogger } from './log.ts'
import { createPipeline } from './pipeline.ts'
import { composeObservers, notifyCompleted, type Observer } from './ports/observer.ts'
import type { QuotaStore } from './ports/quotas.ts'
import type { Store } from './ports/store.ts'
import { createProtect, createRouteChecks, type Protect } from './protect.ts'
import { createDocumentLoader } from './public-endpoints.ts'
import { createUsageCounter, type UsageCounter } from './reports/usage-counter.ts'
import { assertUsable } from './routes/host-code.ts'
import { recordEndpoints } from './routes/recorded-endpoints.ts'
import { compileRoutes, ROUTES, type RouteTable } from './routes/router.ts'
import { deleteOldSignups } from './signups/retention.ts'
import { type PartnerApiOptions, resolveSettings, type Settings } from './settings.ts'
import { assertPorts, createTimedPorts, type PartnerApiPorts } from './timed-ports.ts'
import { createQuotaNotifier } from './webhooks/quota-events.ts'

/** The service, ready to mount. */
export interface PartnerApi {
  /** Handles a request. Never throws and never rejects. */
  handle(request: HttpRequest): MaybePromise<HttpResponse>
  /**
   * Handles a request as a fetch handler, for Bun, Deno, Workers and frameworks. Needs no `this`.
   *
   * A `Request` does not contain the client's address. Pass it as the second argument, as `Deno.serve` does, or set
   * `trustedProxies`: without an address, allow-lists reject every request, and failed authentications are not limited.
   */
  fetch(request: WebRequest, info?: PeerInfo): Promise<WebResponse>
  /** Puts the checks of the service before a route that stays in the router of your program, see `Protect`. */
  protect: Protect
  /**
   * Writes pending usage to the store, and waits for pending store calls. Only needed in runtimes that stop work when a
   * response is sent; otherwise this happens within seconds. Never rejects.
   */
  flush(): Promise<void>
  /**
   * Writes pending usage to the store and deregisters this replica: further requests that need the store get 503. The
   * store stays open.
   */
  close(): Promise<void>
}

/**
 * Creates the service.
 *
 * @throws {RangeError} for an invalid option.
 * @example
 * ```ts
 * const api = createPartnerApi({ store: await openSqliteStore('partner-api.db') })
 * ```
 */
export function createPartnerApi(ports: PartnerApiPorts, options: PartnerApiOptions = {}): PartnerApi {
  assertPorts(ports)
  const { store } = ports
  const settings = resolveSettings(options)
  const { names, limits, trustedProxies, allowBrowsers, logsAll } = settings
  const observer = composeObservers(options.observers ?? [])
  const logger = createRequestLogger(options.log ?? logToConsole, logsAll, elapsed, trustedProxies, observer)
  let invalidRows = 0
  const timed = createTimedPorts(ports, settings, observer, {
    failsOnInvalidRow: settings.failsOnInvalidRow,
    onLeftOut: () => invalidRows++,
    report: logger.directoryInvalid,
  }, { onUnavailable: logger.storeUnavailable, onRecovered: logger.storeRecovered })
  // Before the store knows this service: definitions may be refused.
  const readModules = () => modulesWith(store.knownModules())
  const modules = readModules()
  const routes = [...ROUTES]
  for (const endpoint of options.endpoints ?? []) endpoint.addTo(routes, modules)
  const paths = compileRoutes(routes, names.name, settings.basePath)
  assertOneClock(store, options.clock)
  const clock = clockOf(store, options.clock)
  const givenTime = (options.clock ?? store.now) === undefined ? undefined : clock.now
  const closing = new AbortController()
  const pollAuditLog = options.log === undefined ? undefined : createAuditWatcher(store, logger.auditLogged)
  const { replica, revisionCache, staleness, clockSkewMs } = followStore(
    timed,
    settings,
    clock,
    logger,
    () => pollAuditLog?.(),
    closing.signal,
  )
  const unsubscribe = store.onChange(() => revisionCache.invalidate(elapsed()))
  const principals = createPrincipalCache(timed.store, limits)
  const limiter = createLimiter(timed.quotas, store, settings, replica.replicaCount, givenTime)
  const cacheBytes = timed.hasRevision ? settings.responseCacheBytes : 0
  const writer = createResponseWriter(names, API_VERSION, settings.problemBase, store.sha256)
  const lastUsed = createLastUsedRecorder(timed.store)
  const usage = createUsage(timed.store, settings, clock, logger, paths)
  const hostCode = { handlerTimeoutMs: settings.handlerTimeoutMs, handlerFailed: logger.handlerFailed }
  const retention = settings.keepSignupsDays > 0 &&
    deleteOldSignups(store, settings, clock, logger.writeFailed, closing.signal)
  const handle = createPipeline({
    names,
    routes: paths,
    trustedProxies,
    allowBrowsers,
    elapsed,
    clock,
    revisionCache,
    authenticator: createAuthenticator(principals, store.sha256, store.settings.keyPrefix),
    failures: createFailedAuthentications(limiter, policiesFor(limits).authfail, givenTime),
    limiter,
    quotaCounted: createQuotaNotifier(store),
    responseCache: createResponseCache(cacheBytes, timed.directory, timed.store),
    writer,
    lastUsed,
    usage,
    logger,
    observer,
    loadDocument: createDocumentLoader(routes, { ...settings, modules }, store.sha256),
    handlerContext: {
      directory: timed.directory,
      catalog: timed.store,
      signups: timed.signups,
      reports: timed.store,
      administration: timed.store,
      limits,
      lastUsed,
      revisionCache,
      sha256: store.sha256,
      loadClaimPages: () => import('./openapi/claim-page.ts'),
      ...hostCode,
      cursors: createCursors(store.sha256, store.settings.cursorSecret),
      limiter,
      elapsed,
      get endpoints() {
        return paths.endpoints
      },
      staleness,
      clockSkewMs,
      checkStore: timed.check,
    },
  })

  /** A Worker has no timers before its first request: it flushes. */
  const recordSoon = (): void => ignoreFailure(usage.wake)
  if (options.endpoints || settings.basePath) recordSoon()

  const refuse = createRefusal(writer, logger, observer)

  const measurements = createMeasurements(settings, {
    principals,
    revisionCache,
    limiter,
    usage,
    lastUsed,
    replica,
    invalidRows: () => invalidRows,
  })
  const checkRoute = createRouteChecks(handle, (route) => {
    assertUsable(route, paths.endpoints, readModules(), ENDPOINT_METHODS)
    paths.add(route)
    recordSoon()
  })
  const onInvalid = (error: unknown) => refuse('internal', undefined, error)

  observer?.serviceCreated?.({ store, measurements })
  const internals: Internals = {
    refuse,
    connectionsRefused: logger.connectionsRefused,
    checkRoute,
    get routes() {
      return paths.endpoints
    },
    measurements,
  }
  const api: PartnerApi & { readonly [INTERNALS]: Internals } = {
    [INTERNALS]: internals,
    handle: (request) => handle(request),
    fetch: createFetch(handle, onInvalid),
    protect: createProtect(checkRoute, hostCode, onInvalid),
    async flush() {
      await Promise.all([lastUsed.flush(), usage.flush(), timed.idle()])
    },
    async close() {
      closing.abort()
      unsubscribe()
      const left = [replica.deregister(), retention]
      // Changes no longer wait for this replica, so its cache may be stale from now on.
      revisionCache.invalidate(elapsed())
      await Promise.all([lastUsed.close(), usage.close(), limiter.close(), ...left])
    },
  }
  return api
}

/** Makes the function that answers what the pipeline cannot handle as a request. */
function createRefusal(writer: ResponseWriter, logger: RequestLogger, observer: Observer | undefined) {
  return (code: ProblemCode, address?: string, error?: unknown): HttpResponse => {
    const requestId = writer.nextRequestId()
    logger.requestRejected(code, requestId, address, error)
    const { status } = PROBLEMS[code]
    if (observer !== undefined) notifyCompleted(observer, { requestId, status, code, durationMs: 0 })
    return writer.respondProblem(new Problem(code), { requestId, request: undefined }, '/')
  }
}

/** @throws {RangeError} for a clock beside that of the store. */
function assertOneClock(store: Store, clock: PartnerApiOptions['clock']): void {
  if (clock === undefined || store.clock() === undefined) return
  throw new RangeError(
    'createPartnerApi: the store has a clock of its own, which its servers share; pass no clock.',
  )
}

/** @param givenTime The clock of the options or of the store, if there is one: windows then follow it. */
function createLimiter(
  quotas: QuotaStore,
  store: Store,
  { limits, staleIfErrorSeconds }: Settings,
  replicas: () => number,
  givenTime: (() => number) | undefined,
): Limiter {
  const isClockGiven = givenTime !== undefined
  const limiter = createSharedLimiter(quotas, {
    replicas,
    elapsed: givenTime ?? elapsed,
    isClockGiven,
    localFallback: staleIfErrorSeconds > 0,
    limits,
    // A store that was copied with other members has the same quotas.
    windows: localWindowsOf(store.quotas, limits, isClockGiven),
  })
  return isClockGiven ? followClock(limiter, givenTime) : limiter
}

/** The parts of a service that count what it does. */
interface Measured {
  readonly principals: Pick<PrincipalCache, 'counts'>
  readonly revisionCache: RevisionCache
  readonly limiter: Limiter
  readonly usage: Pick<UsageCounter, 'dropped'>
  readonly lastUsed: Pick<LastUsedRecorder, 'dropped'>
  readonly replica: { replicaCount(): number }
  invalidRows(): number
}

function createMeasurements(
  { maxStalenessMs, staleIfErrorSeconds }: Settings,
  { principals, revisionCache, limiter, usage, lastUsed, replica, invalidRows }: Measured,
): Internals['measurements'] {
  return async () => {
    try {
      // While no request arrives, the revision grows old.
      await revisionCache.get(elapsed())
    } catch {
      // The age and the availability say so.
    }
    return {
      keyCache: principals.counts,
      revisionAgeMs: revisionCache.ageMs(elapsed()),
      maxRevisionAgeMs: maxStalenessMs + staleIfErrorSeconds * 1000,
      isStoreAvailable: revisionCache.isAvailable,
      limits: limiter.decisions,
      invalidRows: invalidRows(),
      dropped: { ...usage.dropped(), uses: lastUsed.dropped() },
      replicas: replica.replicaCount(),
    }
  }
}

function elapsed(): number {
  return performance.now()
}

function createUsage(
  reports: Pick<Store, 'recordUsage' | 'recordEndpoints' | 'listEndpoints'>,
  { keepUsageDays, basePath, names }: Settings,
  clock: Clock,
  { writeFailed }: RequestLogger,
  paths: Pick<RouteTable, 'endpoints'>,
): UsageCounter {
  const firstDay = () => {
    const now = clock.deletionTime()
    return now === undefined ? undefined : utcDay(now - keepUsageDays * MS_PER_DAY)
  }
  // Without a base path, too: the service may have had another one before.
  let recorded = 0
  return createUsageCounter({
    recordUsage: (counts, batch, _keepFrom, problems) =>
      reports.recordUsage(counts, batch, firstDay(), problems),
    recordEndpoints: async () => {
      const { endpoints } = paths
      if (endpoints.length === recorded) return
      const builtIn = endpoints.slice(0, ROUTES.length)
      const own = endpoints.slice(ROUTES.length)
      await recordEndpoints(reports, names.name, builtIn, own, basePath)
      recorded = endpoints.length
    },
  }, writeFailed)
}
