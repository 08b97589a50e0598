import { Router } from 'itty-router/Router'
import type { Endpoint, Route } from './route.ts'

/** A route that a path leads to. */
export interface Match {
  readonly routes: readonly Route[]
  /** The path's `:slug`, still percent-encoded; empty for a path without one. */
  readonly slug: string
}

/** Finds routes by path. */
export interface PathTable {
  /** The routes of the first path that covers `path` exactly, whatever their methods, or `undefined`. */
  match(path: string): Match | undefined
  readonly endpoints: readonly Endpoint[]
}

/**
 * Compiles the route table. itty-router makes the expressions; its list of routes is walked over the path alone,
 * because its own `fetch` builds a URL, decodes nothing and knows no 405.
 */
export function compileRoutes(routes: readonly Route[], serviceName: string): PathTable {
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
      if (endsInNothing.test(path)) return undefined
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

const endsInNothing = /\/\.{0,2}$/
