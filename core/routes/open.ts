/** The endpoints that need no key: health, and the documents. */
import type { HandlerResult } from '../http/message.ts'
import { rfc3339 } from '../lib/time.ts'
import type { DocumentRoute, Route } from './route.ts'

export const health: Route = {
  name: 'health',
  access: 'open',
  method: 'GET',
  path: '/health',
  summary: 'Check health',
  problems: ['store_unavailable'],
  handle: ({ checkStore, staleness, clockSkewMs }, request) => {
    request.requireNoParameters()
    const healthy = (isComplete: boolean): HandlerResult => ({
      data: { status: 'ok', ...(isComplete ? {} : { directory: 'unavailable' }), ...skew() },
    })
    const skew = () => {
      const ms = clockSkewMs()
      return ms === undefined ? {} : { clock_skew_ms: ms }
    }
    const unhealthy = (error: unknown): HandlerResult => {
      const outage = staleness.staleWindow()
      if (outage === undefined) throw error
      return {
        data: { status: 'stale', since: rfc3339(outage.since), until: rfc3339(outage.until), ...skew() },
      }
    }
    try {
      const checked = checkStore()
      return checked instanceof Promise ? checked.then(healthy, unhealthy) : healthy(checked)
    } catch (error) {
      return unhealthy(error)
    }
  },
}

export const openapi: DocumentRoute = {
  name: 'openapi',
  access: 'open',
  method: 'GET',
  path: '/openapi.json',
  summary: 'Get the OpenAPI document',
  isDocument: true,
  mediaTypes: ['application/json'],
}

export const docsMarkdown: DocumentRoute = {
  name: 'docs-markdown',
  access: 'open',
  method: 'GET',
  path: '/docs.md',
  summary: 'Get the reference as Markdown',
  isDocument: true,
  mediaTypes: ['text/markdown'],
  headers: ['Link'],
}

export const endpointMarkdown: DocumentRoute = {
  ...docsMarkdown,
  name: 'endpoint-markdown',
  path: '/docs/:endpoint.md',
  summary: 'Get an endpoint as Markdown',
  problems: ['route_not_found'],
}

export const docs: DocumentRoute = {
  name: 'docs',
  access: 'open',
  method: 'GET',
  path: '/docs',
  summary: 'Get the reference page',
  isDocument: true,
  mediaTypes: ['text/html', 'text/markdown'],
  headers: ['Content-Security-Policy', 'Referrer-Policy', 'Link'],
}

/** Marks a linkset as an API catalog (RFC 9727 §4.2). */
const catalogProfile = 'https://www.rfc-editor.org/info/rfc9727'

export const apiCatalog: DocumentRoute = {
  name: 'api-catalog',
  access: 'open',
  method: 'GET',
  path: '/.well-known/api-catalog',
  atRoot: true,
  summary: 'Get the API catalog',
  isDocument: true,
  mediaTypes: ['application/linkset+json'],
  typeParameters: `profile="${catalogProfile}"`,
  headers: ['Link'],
}
