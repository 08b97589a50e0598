/** The headers of responses, with examples that the service sends: mocks and readers take them at their word. */
import { limitItem, policyItem } from '../limits/rate-limit-fields.ts'
import type { Limit, ServicePolicyName } from '../model.ts'
import type { Route } from '../routes/route.ts'
import type { ByName, DocumentSettings, HeaderObject, Reference } from './model.ts'

/** The seconds in the examples of a refusal for a limit. */
const waitSeconds = 12

/**
 * Refers to the headers of `components`, and repeats those of which the service sends another value.
 *
 * @param shared Those of `components`.
 */
export function describeHeaders(
  names: readonly string[],
  route: Route,
  status: number,
  settings: DocumentSettings,
  shared: ByName<HeaderObject>,
): ByName<HeaderObject | Reference> {
  return Object.fromEntries(names.map((name) => {
    const { example: usual, ...header } = shared[name]!
    const example = exampleOf(name, route, status, settings, usual)
    if (example === usual) return [name, { $ref: `#/components/headers/${name}` }]
    return [name, example === undefined ? header : { ...header, example }]
  }))
}

/** @returns `undefined` where no value is known. */
function exampleOf(
  name: string,
  route: Route,
  status: number,
  settings: DocumentSettings,
  usual: unknown,
): unknown {
  const policies = route.access === 'key' ? policiesOf(route.limits, settings) : []
  const isRefused = status === 429
  const fields: Readonly<Record<string, () => unknown>> = {
    'Cache-Control': () => cacheControlOf(route, status),
    'Vary': () => varyOf(route, usual),
    'Link': () => linkOf(route),
    'WWW-Authenticate': () => {
      const scope = status === 403 && route.access === 'key' ? route.scope : undefined
      return scope === undefined ? usual : `${usual}, error="insufficient_scope", scope="${scope}"`
    },
    'RateLimit-Policy': () => listOf(policies, policyItem),
    'RateLimit': () => listOf(policies, isRefused ? refusedItem : allowedItem),
  }
  return Object.hasOwn(fields, name) ? fields[name]!() : usual
}

type PolicyEntry = readonly [name: string, limit: Limit]

/** The policies of a route that are on. A partner or a key may have others. */
function policiesOf(names: readonly string[], { limits }: DocumentSettings): readonly PolicyEntry[] {
  return names.map((name): PolicyEntry => [name, limits[name as ServicePolicyName]])
    .filter(([, limit]) => limit.quota > 0)
}

function allowedItem(policy: string, { quota, windowSeconds }: Limit): string {
  return limitItem(policy, { remaining: quota - 1, resetSeconds: windowSeconds })
}

function refusedItem(policy: string, { windowSeconds }: Limit): string {
  return limitItem(policy, { remaining: 0, resetSeconds: Math.min(waitSeconds, windowSeconds) })
}

function listOf(policies: readonly PolicyEntry[], write: (name: string, limit: Limit) => string) {
  return policies.length === 0 ? undefined : policies.map(([name, limit]) => write(name, limit)).join(', ')
}

function cacheControlOf(route: Route, status: number): string {
  if (status >= 400) return 'no-store'
  if ('isDocument' in route) return 'no-cache'
  if (route.access === 'key' && route.method === 'GET') return 'private, no-cache'
  return route.access === 'key' && route.selfService !== undefined ? 'private, no-store' : 'no-store'
}

function varyOf(route: Route, usual: unknown): unknown {
  if (!('isDocument' in route)) return usual
  return route.mediaTypes.includes('text/markdown') ? 'Accept, Accept-Encoding' : 'Accept-Encoding'
}

function linkOf(route: Route): string | undefined {
  if (route.access === 'key') {
    const segment = route.path.slice(route.path.lastIndexOf('/') + 1).replace(':', '')
    return `<${segment}?partner=demo&limit=20&cursor=WyJub3Jk>; rel="next"`
  }
  const links: Readonly<Record<string, string>> = {
    'docs': '<docs.md>; rel="alternate"; type="text/markdown"',
    'docs-markdown': '<docs>; rel="alternate"; type="text/html"',
    'endpoint-markdown': '<../docs#signUp>; rel="alternate"; type="text/html"',
  }
  return links[route.name]
}
