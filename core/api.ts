import { createFreshness } from './cache/freshness.ts'
import { createReplies } from './cache/replies.ts'
import { createTimetable } from './content/timetable.ts'
import { afterAll } from './after.ts'
import { guardDirectory, guardFacts, guardOffers, guardReports, guardSignups } from './guard.ts'
import { createCursors } from './http/cursor.ts'
import type { Answer, Exchange } from './http/exchange.ts'
import { createFetch } from './http/fetch.ts'
import { DEFAULT_PROBLEM_BASE, type ProblemCode } from './http/problem.ts'
import { createRepresentation } from './http/representation.ts'
import { createAuthenticator } from './keys/authenticate.ts'
import { preparePrincipal } from './keys/principal.ts'
import { createPrincipals } from './keys/principals.ts'
import { createKeyUses } from './keys/uses.ts'
import { DEFAULT_LIMITS, policiesFor } from './limits/policies.ts'
import { createLimiter } from './limits/window.ts'
import { createJournal, type LogEvent } from './log.ts'
import type { Limit, LimitName } from './model.ts'
import { createDocuments } from './openapi/documents.ts'
import { createPipeline } from './pipeline.ts'
import type { Directory, FactSource, MaybePromise, Revision, Store } from './ports.ts'
import { createUsageCounter } from './reports/counter.ts'
import type { Endpoint } from './routes/route.ts'
import { compileRoutes } from './routes/router.ts'
import { ROUTES } from './routes/table.ts'
import { nameService } from './service-names.ts'

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
  /** How many proxies stand in front and add to `X-Forwarded-For`, default 0. */
  readonly trustedProxies?: number
  /** Answer requests that a browser's script sent, and log them, instead of refusing them; default false. */
  readonly allowBrowsers?: boolean
  /** Base of the `type` of problems, default `https://partner-api.example/problems`. */
  readonly problemBase?: string
  /** Bytes of replies that are kept ready, default 32 MiB. */
  readonly replyCacheBytes?: number
  /** Gets an event for each answer that `logLevel` names. */
  readonly log?: (event: LogEvent) => void
  /** `errors` (default): refused credentials, and answers of 500 and above. `all`: every answer. */
  readonly logLevel?: 'errors' | 'all'
}

/** The service, ready to be mounted. */
export interface PartnerApi {
  /** Answers a request. Never throws and never rejects. */
  handle(exchange: Exchange): MaybePromise<Answer>
  /** The same as a fetch handler, for Bun, Deno, Workers and frameworks. Needs no `this`. */
  fetch(request: Request): Promise<Response>
  /** The answer to a request that never became an exchange: bad framing, too large, too slow. */
  refuse(code: ProblemCode): Answer
  /** Every endpoint with its complete path. */
  readonly routes: readonly Endpoint[]
  /** Writes down what is held in memory. The store stays open. */
  close(): Promise<void>
}

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
  const names = nameService(options.serviceName ?? 'service')
  const maxStalenessMs = integer('maxStalenessMs', options.maxStalenessMs ?? 1000, 10_000)
  const trustedProxies = integer('trustedProxies', options.trustedProxies ?? 0, 100)
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  for (const [name, { quota, windowSeconds }] of Object.entries(limits)) {
    integer(`limits.${name}.quota`, quota, Number.MAX_SAFE_INTEGER)
    if (integer(`limits.${name}.windowSeconds`, windowSeconds, 86_400) === 0) {
      throw new RangeError(`limits.${name}.windowSeconds must be 1 or more.`)
    }
  }
  const elapsed = (): number => performance.now()
  const limiter = createLimiter()
  const facts = guardFacts(store)
  const offers = guardOffers(store)
  const reports = guardReports(store)
  const profiles = guardDirectory(directory)
  const revision = directory === store ? facts.revision : combinedRevision(facts, profiles)
  const paths = compileRoutes(ROUTES, names.name)
  const principals = createPrincipals(facts, (found) => preparePrincipal(found, policiesFor(limits, found)))
  const { problemBase = DEFAULT_PROBLEM_BASE, allowBrowsers = false } = options
  const representation = createRepresentation(names, problemBase, store.sha256)
  const settings = { names, problemBase, limits, maxStalenessMs, allowBrowsers }
  const uses = createKeyUses(facts)
  const usage = createUsageCounter(reports)
  const handle = createPipeline({
    names,
    paths,
    trustedProxies,
    allowBrowsers,
    authfail: policiesFor(limits).authfail,
    elapsed,
    freshness: createFreshness(revision, maxStalenessMs),
    authenticator: createAuthenticator(principals, store.sha256, store.settings.keyPrefix),
    limiter,
    replies: createReplies(options.replyCacheBytes ?? 32 * 1024 * 1024),
    timetable: createTimetable(profiles, offers),
    keepsReplies: directory === store || directory.directoryRevision !== undefined,
    representation,
    uses,
    usage,
    journal: createJournal(options.log, options.logLevel === 'all', elapsed),
    handlers: {
      directory: profiles,
      offers,
      signups: guardSignups(store),
      reports,
      sha256: store.sha256,
      cursors: createCursors(store.sha256, store.settings.cursorSecret),
      limiter,
      elapsed,
      documents: createDocuments(ROUTES, settings, store.sha256),
      endpoints: paths.endpoints,
      maxStalenessMs,
      checkStore: facts.revision,
    },
  })
  return {
    handle,
    fetch: createFetch(handle),
    refuse: representation.refuse,
    routes: paths.endpoints,
    async close() {
      await Promise.all([uses.flush(), usage.flush()])
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

function integer(name: string, value: number, max: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= max) return value
  throw new RangeError(`${name} must be an integer from 0 to ${max}, and ${value} is not.`)
}
