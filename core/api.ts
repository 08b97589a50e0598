import { createTrailWatch } from './audit/watch.ts'
import { createFreshness, type Freshness, type Outage } from './cache/freshness.ts'
import { createKeeper } from './cache/keep.ts'
import { createReplies } from './cache/replies.ts'
import { createClock } from './clock.ts'
import { checkedDirectory } from './content/own-directory.ts'
import { createTimetable } from './content/timetable.ts'
import { after, afterAll } from './after.ts'
import { createGuard } from './guard.ts'
import { createCursors } from './http/cursor.ts'
import type { Answer, Exchange } from './http/exchange.ts'
import { createFetch, type RequestInfo } from './http/fetch.ts'
import { Problem, type ProblemCode } from './http/problem.ts'
import { createRepresentation } from './http/representation.ts'
import type { WebRequest, WebResponse } from './http/web.ts'
import { createAuthenticator } from './keys/authenticate.ts'
import { preparePrincipal } from './keys/principal.ts'
import { createPrincipals } from './keys/principals.ts'
import { createKeyUses } from './keys/uses.ts'
import { policiesFor } from './limits/policies.ts'
import { createSharedLimiter } from './limits/shared-limiter.ts'
import { createLimiter } from './limits/window.ts'
import { createJournal, type LogEvent, silentJournal } from './log.ts'
import type { Limit, LimitName } from './model.ts'
import { createDocuments } from './openapi/documents.ts'
import type { DeploymentInfo } from './openapi/model.ts'
import { createPipeline } from './pipeline.ts'
import type { Directory, FactSource, MaybePromise, Revision, Store } from './ports.ts'
import { becomeReplica, revisionAs } from './replicas/replica.ts'
import { createUsageCounter } from './reports/counter.ts'
import { msPerDay } from './reports/period.ts'
import { dayOf } from './reports/usage.ts'
import type { Endpoint } from './routes/route.ts'
import { compileRoutes } from './routes/router.ts'
import { ROUTES } from './routes/table.ts'
import { settle } from './settings.ts'

/** What the service works on. */
export interface PartnerApiPorts {
  /** Partners, keys and, unless there is a directory of your own, profiles. */
  readonly store: Store
  /** Where profiles and industries come from instead of the store. */
  readonly directory?: Directory
}

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

/** The service, ready to be mounted. */
export interface PartnerApi {
  /** Answers a request. Never throws and never rejects. */
  handle(exchange: Exchange): MaybePromise<Answer>
  /**
   * The same as a fetch handler, for Bun, Deno, Workers and frameworks. Needs no `this`.
   *
   * A `Request` does not tell whose it is. As `Deno.serve` does, pass that as the second argument, or set
   * `trustedProxies`: without an address, allow-lists include nobody, and failures are not counted.
   */
  fetch(request: WebRequest, info?: RequestInfo): Promise<WebResponse>
  /**
   * The answer to a request that never became an exchange: bad framing, too large, too slow.
   * @param address The peer's, for the log.
   */
  refuse(code: ProblemCode, address?: string): Answer
  /** Logs that the server refuses connections beyond `limit`. */
  connectionsRefused(limit: number): void
  /** Every endpoint with its complete path. */
  readonly routes: readonly Endpoint[]
  /**
   * Writes down what requests noted, and waits for what they asked of a store behind their answers. That happens by
   * itself within seconds; for runtimes that end a request's work with its answer. Never rejects.
   */
  flush(): Promise<void>
  /**
   * Writes down what is held in memory, and takes leave of the other replicas: whatever is asked on a store that has
   * some is a 503 from then on. The store stays open.
   */
  close(): Promise<void>
}

/** Milliseconds that clocks may differ whatever the max staleness: a slow round trip looks the same. */
const leastSkewMs = 100

/**
 * Makes the service.
 *
 * @throws {RangeError} for a setting out of its range.
 * @example
 * ```ts
 * const api = createPartnerApi({ store: await openSqliteStore('partner-api.db') })
 * ```
 */
export function createPartnerApi(ports: PartnerApiPorts, options: PartnerApiOptions = {}): PartnerApi {
  const { store, directory = store } = ports
  const settings = settle(options)
  const { names, limits, maxStalenessMs, staleIfErrorSeconds, trustedProxies, allowBrowsers } = settings
  const elapsed = (): number => performance.now()
  const clock = createClock(() => store.clock?.())
  const guard = createGuard(settings.storeTimeoutMs)
  const lookUps = createGuard(settings.lookUpTimeoutMs)
  const facts = lookUps.facts(store)
  const offers = guard.offers(store)
  const reports = guard.reports(store)
  const guarded = guard.directory(directory)
  // The log has the error of the request.
  const profiles = directory === store
    ? guarded
    : checkedDirectory(guarded, options.log === undefined ? console.error : undefined)
  const paths = compileRoutes(ROUTES, names.name)
  const principals = createPrincipals(facts, (found) => preparePrincipal(found, policiesFor(limits, found)))
  const representation = createRepresentation(names, settings.problemBase, store.sha256)
  const journal = options.log === undefined
    ? silentJournal
    : createJournal(options.log, settings.logsAll, elapsed, trustedProxies)
  const watch = options.log === undefined ? undefined : createTrailWatch(store, journal.administered)
  const bounds = { maxStalenessMs, staleIfErrorMs: staleIfErrorSeconds * 1000 }
  let isSkewed = false
  const replica = becomeReplica(
    store.replicas,
    lookUps,
    settings.replicaName,
    bounds,
    () => after(freshness.renew(elapsed()), ofStore),
    () => {
      const skewMs = clockSkewMs()
      if (skewMs !== undefined && !isSkewed) journal.clockSkewed(skewMs)
      isSkewed = skewMs !== undefined
      return skewMs ?? 0
    },
  )
  const revision = directory === store ? facts.revision : combinedRevision(facts, profiles)
  const freshness: Freshness = createFreshness(revisionAs(replica, revision), bounds, {
    changed: () => watch?.wake(),
    silent: journal.storeSilent,
    answering: journal.storeAnswering,
  }, clock.now)
  const limiter = store.quotas === undefined || !settings.sharesLimits
    ? createLimiter()
    : createSharedLimiter(lookUps.quotas(store.quotas), {
      replicas: replica.size,
      elapsed,
      standsAlone: staleIfErrorSeconds > 0,
    })
  const replies = createReplies(settings.replyCacheBytes)
  const tellsRevision = directory === store || directory.directoryRevision !== undefined
  const uses = createKeyUses(facts)
  const usage = createUsageCounter({
    recordUsage: (counts, batch) =>
      reports.recordUsage(counts, batch, dayOf(clock.now() - settings.keepUsageDays * msPerDay)),
  }, journal.writeFailed)
  const handle = createPipeline({
    names,
    paths,
    trustedProxies,
    allowBrowsers,
    authfail: policiesFor(limits).authfail,
    elapsed,
    clock,
    freshness,
    authenticator: createAuthenticator(principals, store.sha256, store.settings.keyPrefix),
    limiter,
    replies,
    keep: tellsRevision ? createKeeper(replies, createTimetable(profiles, offers)) : () => undefined,
    representation,
    uses,
    usage,
    journal,
    handlers: {
      directory: profiles,
      offers,
      signups: guard.signups(store),
      reports,
      sha256: store.sha256,
      cursors: createCursors(store.sha256, store.settings.cursorSecret),
      limiter,
      elapsed,
      documents: createDocuments(ROUTES, settings, store.sha256),
      endpoints: paths.endpoints,
      staleness: {
        ...bounds,
        outage: () => onCalendar(freshness.outage(elapsed()), clock.now() - elapsed()),
      },
      clockSkewMs,
      checkStore: facts.check,
    },
  })

  function clockSkewMs(): number | undefined {
    const ms = clock.skewMs()
    return Math.abs(ms) > Math.max(maxStalenessMs, leastSkewMs) ? ms : undefined
  }

  function refuse(code: ProblemCode, address?: string): Answer {
    const requestId = representation.nextRequestId()
    journal.refused(code, requestId, address)
    return representation.problem(new Problem(code), { requestId, method: 'GET' }, '/', [])
  }

  return {
    handle,
    fetch: createFetch(handle, () => refuse('internal')),
    refuse,
    connectionsRefused: journal.connectionsRefused,
    routes: paths.endpoints,
    async flush() {
      await Promise.all([uses.flush(), usage.flush(), guard.settled(), lookUps.settled()])
    },
    async close() {
      const left = replica.leave()
      // Nobody waits for this replica any more to hear of a change.
      freshness.forget(elapsed())
      await Promise.all([uses.flush(), usage.flush(), left])
    },
  }
}

/** The revision of the store, and with it that of a directory of one's own. */
function combinedRevision(store: FactSource, directory: Required<Directory>): () => MaybePromise<Revision> {
  return () =>
    afterAll<[Revision, string], Revision>(
      [store.revision(), directory.directoryRevision()],
      ([{ facts, content }, own]) => ({ facts, content: `${content} ${own}` }),
    )
}

/** The store's part of a revision. */
function ofStore({ facts, content }: Revision): Revision {
  return { facts, content: content.split(' ', 1)[0]! }
}

function onCalendar(outage: Outage | undefined, start: number): Outage | undefined {
  const onClock = (instant: number): number => Math.round(start + instant)
  return outage && { since: onClock(outage.since), until: onClock(outage.until) }
}
