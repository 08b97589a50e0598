import { IttyRouter } from 'itty-router/IttyRouter'
import {
  banner,
  countries,
  directory,
  industries,
  plans,
  profileDetail,
  recentProfiles,
  widget,
} from './content.ts'
import { apiCatalog, docs, docsMarkdown, endpointMarkdown, health, openapi } from './open.ts'
import { problems } from './problems.ts'
import { reportActivity, reportSummary } from './reports.ts'
import { Problem } from '../http/problem.ts'
import {
  allowedMethods,
  completePath,
  type Endpoint,
  endpointPath,
  NO_PARAMS,
  type PathValues,
  type Route,
} from './route.ts'
import { revokeKey, rotateKey, showClaimRoute, useClaimRoute } from './key-changes.ts'
import { signups } from './signups.ts'
import { verifyKey } from './verify-key.ts'

/** Every endpoint of the service. If two paths match a request, the first one wins. */
export const ROUTES: readonly Route[] = [
  verifyKey,
  problems,
  rotateKey,
  revokeKey,
  widget,
  recentProfiles,
  directory,
  profileDetail,
  banner,
  countries,
  industries,
  plans,
  reportSummary,
  reportActivity,
  signups,
  health,
  openapi,
  docs,
  docsMarkdown,
  endpointMarkdown,
  apiCatalog,
  showClaimRoute,
  useClaimRoute,
]

/** The routes of a service. */
export interface RouteTable {
  /** Every endpoint; another list after each `add`. */
  readonly endpoints: readonly Endpoint[]
  match(path: string): RouteMatch | undefined
  endpointOf(route: Route): Endpoint | undefined
  /** Adds a route that is matched elsewhere. */
  add(route: Route): void
}

/** What a path matches. */
export interface RouteMatch {
  /** The routes of the first matching path, whatever their methods. */
  readonly routes: readonly Route[]
  /** The parameters of the path, percent-encoded. */
  readonly params: PathValues
}

/** Compiles the route table. Only itty-router's expressions are used: its `fetch` builds a URL and has no 405. */
export function compileRoutes(routes: readonly Route[], serviceName: string, basePath = ''): RouteTable {
  const byPath = Map.groupBy(routes, (route) => completePath(route, serviceName, basePath))
  for (const route of routes) if (route.atRoot && basePath !== '') byPath.set(basePath + route.path, [route])
  const router = IttyRouter()
  for (const path of byPath.keys()) router.all?.(path)
  const compiled = [...byPath.values()].map((routes, index) => {
    const expression = router.routes?.[index]?.[1]
    if (expression === undefined) throw new Error('The route table was not compiled.')
    return { expression, routes }
  })
  const findMatch = (path: string): RouteMatch | undefined => {
    for (const { expression, routes } of compiled) {
      const match = expression.exec(path)
      if (match !== null) return { routes, params: match.groups ?? NO_PARAMS }
    }
    return undefined
  }
  // Found once: a request for one of them need not try the expressions before its own.
  const fixed = new Map<string, RouteMatch>()
  for (const path of byPath.keys()) {
    const match = findMatch(path)
    if (match?.params === NO_PARAMS) fixed.set(path, match)
  }
  const describe = (route: Route): Endpoint => ({
    name: route.name,
    method: route.method,
    path: endpointPath(route, serviceName, basePath),
    access: route.access,
    ...(route.access === 'key'
      ? { scope: route.scope, limits: route.limits }
      : { scope: undefined, limits: [] }),
    summary: route.summary,
  })
  const endpoints = new Map(routes.map((route) => [route, describe(route)]))
  let list: readonly Endpoint[] = [...endpoints.values()]
  return {
    match(path) {
      // The router's expressions accept trailing slashes, and dot segments as slugs; the contract does not.
      if (emptyOrDotSegment.test(path)) return undefined
      return fixed.get(path) ?? findMatch(path)
    },
    get endpoints() {
      return list
    },
    endpointOf: (route) => endpoints.get(route),
    add(route) {
      endpoints.set(route, describe(route))
      list = [...endpoints.values()]
    },
  }
}

/** The methods of the server as a whole (RFC 9110 §9.3.7). */
export const SERVER_METHODS = 'GET, HEAD, POST, OPTIONS'

/**
 * Selects the route of a method from those of a path.
 *
 * @returns For OPTIONS, the methods that the path has.
 * @throws {Problem} `method_not_allowed`.
 */
export function selectRoute(routes: readonly Route[], method: string): Route | string {
  // The host may serve HEAD itself.
  const served = routes.find((route) => route.method === method) ??
    routes.find((route) => method === 'HEAD' && route.method === 'GET')
  if (served !== undefined) return served
  const allow = [...allowedMethods(routes), 'OPTIONS'].join(', ')
  if (method === 'OPTIONS') return allow
  throw new Problem('method_not_allowed', { allow })
}

const emptyOrDotSegment = /\/\.{0,2}(?:\/|$)/
