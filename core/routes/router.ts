import { Router } from 'itty-router/Router'
import { banner } from './banner.ts'
import type { Endpoint } from './context.ts'
import { countries, industries, plans } from './lists.ts'
import { apiCatalog, docs, health, openapi } from './meta.ts'
import { directory, profileDetail, recentProfiles } from './profiles.ts'
import { reportActivity, reportSummary } from './reports.ts'
import type { Route } from './route.ts'
import { signups } from './signups.ts'
import { verifyKey } from './verify-key.ts'
import { widget } from './widget.ts'

/** Every endpoint of the service. Of two paths that cover one request, the first counts. */
export const ROUTES: readonly Route[] = [
  verifyKey,
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

  apiCatalog,
]

/** A route that a path leads to. */
export interface RouteMatch {
  readonly routes: readonly Route[]
  /** The path's `:slug`, still percent-encoded; empty for a path without one. */
  readonly slug: string
}

/** Finds routes by path. */
export interface RouteTable {
  /** The routes of the first path that covers `path` exactly, whatever their methods, or `undefined`. */
  match(path: string): RouteMatch | undefined
  readonly endpoints: readonly Endpoint[]
}

/**
 * Compiles the route table. itty-router makes the expressions; its list of routes is walked over the path alone,
 * because its own `fetch` builds a URL, decodes nothing and knows no 405.
 */
export function compileRoutes(routes: readonly Route[], serviceName: string): RouteTable {
  const byPath = Map.groupBy(routes, (route) => completePath(route, serviceName))
  const router = Router()
  for (const path of byPath.keys()) router.all?.(path)
  const compiled = [...byPath.values()].map((routes, index) => {
    const expression = router.routes?.[index]?.[1]
    if (expression === undefined) throw new Error('The route table was not compiled.')
    return { expression, routes }
  })
  return {
    match(path) {
      // The router's expressions admit trailing slashes, and dot segments as slugs; the contract does not.
      if (emptyOrDotSegment.test(path)) return undefined
      for (const { expression, routes } of compiled) {
        const match = expression.exec(path)
        if (match !== null) return { routes, slug: match.groups?.['slug'] ?? '' }
      }
      return undefined
    },
    endpoints: routes.map((route) => ({
      name: route.name,
      method: route.method,
      path: endpointPath(route, serviceName),
      access: route.access,
      scope: route.access === 'key' ? route.scope : undefined,
      summary: route.summary,
    })),
  }
}

function completePath(route: Route, serviceName: string): string {
  return 'atRoot' in route ? route.path : `/${serviceName}${route.path}`
}

/** The complete path of a route, `{slug}` for a parameter. */
export function endpointPath(route: Route, serviceName: string): string {
  return completePath(route, serviceName).replace(/:(\w+)/g, '{$1}')
}

const emptyOrDotSegment = /\/\.{0,2}$/
