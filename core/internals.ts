/** What the servers, the middleware and the metrics of this package need of a service, and hosts do not. */
import type { HttpResponse } from './http/message.ts'
import type { ProblemCode } from './http/problem.ts'
import type { Measurements } from './ports/observer.ts'
import type { CheckRoute, ProtectedRoute } from './protect.ts'
import type { Endpoint } from './routes/route.ts'

/** Registered: a bundler may give each entry of the package a copy of this module. */
export const INTERNALS: unique symbol = Symbol.for('partner-api.internals')

/** The members of a service that hosts do not see. */
export interface Internals {
  /**
   * Makes the response to a request that could not be parsed: bad framing, too large, too slow.
   * @param address The address of the peer, for the log.
   * @param error Why a response could not be sent, for the log.
   */
  refuse(code: ProblemCode, address?: string, error?: unknown): HttpResponse
  /** Logs that the server refuses connections beyond `limit`. */
  connectionsRefused(limit: number): void
  /** Adds a route that the host serves. @param where The function that takes it, for errors. */
  checkRoute(where: string, route: ProtectedRoute): CheckRoute
  /** Every endpoint with its complete path, those of `protect` last. */
  readonly routes: readonly Endpoint[]
  /** What the service counted since it was created, and its state. Confirms the revision first, as a request does. */
  measurements(): Promise<Measurements>
}

/** What takes the place of a service in a server. */
export interface Servable {
  readonly [INTERNALS]: Pick<Internals, 'refuse' | 'connectionsRefused'>
}

/** @throws {TypeError} for what `createPartnerApi` has not made. */
export function internalsOf(api: object): Internals {
  const internals = (api as { readonly [INTERNALS]?: Internals } | undefined)?.[INTERNALS]
  if (internals !== undefined) return internals
  throw new TypeError('This is no service: pass what createPartnerApi returned.')
}
