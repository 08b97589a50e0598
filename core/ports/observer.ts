import type { HttpRequest, HttpResponse } from '../http/message.ts'
import type { ProblemCode } from '../http/problem.ts'
import { ignoreFailure, type MaybePromise } from '../lib/promise.ts'
import type { PolicyName } from '../model.ts'
import type { Store } from './store.ts'

/** A service as its observers see it. */
export interface ObservedService {
  /** The store of the service. */
  readonly store: Store
  /** What it counted since it was created, and its state. Confirms the revision first, as a request does. */
  measurements(): Promise<Measurements>
}

/** Observes a service, its requests and its calls of the store, for metrics and traces. */
export interface Observer {
  /** Called once for each service that has this observer, before its first request. */
  serviceCreated?(service: ObservedService): void
  /** Runs the handling of a request, for instance inside a span, and returns its response. Never throws. */
  request?(request: HttpRequest, handle: () => MaybePromise<HttpResponse>): MaybePromise<HttpResponse>
  /** Called inside `request` when the response is ready, and on its own for a request that could not be parsed. */
  requestCompleted?(completed: CompletedRequest): void
  /**
   * Runs a call of the store or directory, and returns its result.
   * @param operation Name of the port's method.
   * @throws only what the call throws.
   */
  storeCall?<T>(operation: string, call: () => MaybePromise<T>): MaybePromise<T>
  /** Trace id of a request's span, for the log. */
  traceId?(request: HttpRequest): string | undefined
}

/** A request that has its response. */
export interface CompletedRequest {
  /** Absent for a request that could not be parsed. */
  readonly request?: HttpRequest
  /** `X-Request-Id` of the response. */
  readonly requestId: string
  /** A registered method; absent for any other. */
  readonly method?: string | undefined
  /** The endpoint; absent when the path or the method has none. */
  readonly route?: { readonly name: string; readonly path: string } | undefined
  /** Status of the response. */
  readonly status: number
  /** Code of the problem. */
  readonly code?: ProblemCode | undefined
  /** Milliseconds from the arrival of the headers to the response, with a fraction. */
  readonly durationMs: number
  /** Slug of the partner that owns the key. */
  readonly partner?: string | undefined
  /** Whether the response cache had the response; absent for responses that are never cached, and for problems. */
  readonly responseCache?: 'hit' | 'miss' | undefined
}

/** Counters since the start, and the state of the service. */
export interface Measurements {
  /** Authentications that the cache of keys decided, and look-ups in the store. */
  readonly keyCache: { readonly hit: number; readonly miss: number }
  /** Milliseconds since the store last confirmed the revision; absent before the first time. */
  readonly revisionAgeMs: number | undefined
  /** Milliseconds for which the revision is used: `maxStalenessMs`, and `staleIfErrorSeconds` during an outage. */
  readonly maxRevisionAgeMs: number
  /** Whether the last read of the revision succeeded. */
  readonly isStoreAvailable: boolean
  /** Decisions of the limiter by policy. */
  readonly limits: Readonly<Record<PolicyName, { readonly allowed: number; readonly refused: number }>>
  /** How often a row of a custom directory was left out because it is invalid. */
  readonly invalidRows: number
  /**
   * What was not recorded because its partner had used up its share of a bounded buffer: requests in reports,
   * problems that partners see, and last uses of keys.
   */
  readonly dropped: { readonly requests: number; readonly problems: number; readonly uses: number }
  /** The last known number of replicas, this one included. */
  readonly replicas: number
}

/** A failing observer never fails a request. */
export function notifyCompleted(observer: Observer, completed: CompletedRequest): void {
  ignoreFailure(() => observer.requestCompleted?.(completed))
}

/** Several observers as one; the first is the outermost. `undefined` without any. */
export function composeObservers(observers: readonly Observer[]): Observer | undefined {
  return observers.reduceRight<Observer | undefined>((inner, outer) => {
    if (inner === undefined) return outer
    return {
      serviceCreated(service) {
        inner.serviceCreated?.(service)
        outer.serviceCreated?.(service)
      },
      request: (request, handle) => {
        const next = () => inner.request?.(request, handle) ?? handle()
        return outer.request?.(request, next) ?? next()
      },
      requestCompleted(completed) {
        notifyCompleted(inner, completed)
        notifyCompleted(outer, completed)
      },
      storeCall: (operation, call) => {
        const next = () => inner.storeCall === undefined ? call() : inner.storeCall(operation, call)
        return outer.storeCall === undefined ? next() : outer.storeCall(operation, next)
      },
      traceId: (request) => outer.traceId?.(request) ?? inner.traceId?.(request),
    }
  }, undefined)
}
