import { array, literal, looseObject, metadata, object, pipe, strictObject, string, union } from 'valibot'
import { rfc3339 } from '../http/time.ts'
import type { DocumentRoute, Reply, Route } from './route.ts'
import { instantShape } from './shapes.ts'

export const health: Route = {
  name: 'health',
  access: 'open',
  method: 'GET',
  path: '/health',
  summary: 'Whether the service and its store answer',
  description: 'For load balancers and monitors.',
  problems: ['store_unavailable'],
  reply: object({
    data: pipe(
      union([
        strictObject({ status: pipe(literal('ok'), metadata({ description: 'Service and store answer.' })) }),
        strictObject({
          status: pipe(
            literal('stale'),
            metadata({ description: 'The store does not answer, and known keys go on working for a while.' }),
          ),
          since: instantShape('When the store answered last.', '2026-11-20T09:00:00.000Z'),
          until: instantShape('Until when known keys work.', '2026-11-20T09:00:31.000Z'),
        }),
      ]),
      metadata({
        title: 'Health',
        description: 'That the service can work. `stale` is told only where the operator has chosen it.',
      }),
    ),
  }),
  handle: ({ checkStore, staleness }) => {
    const healthy: Reply = { data: { status: 'ok' } }
    const sick = (error: unknown): Reply => {
      const outage = staleness.outage()
      if (outage === undefined) throw error
      return {
        data: { status: 'stale', since: rfc3339(outage.since), until: rfc3339(outage.until) },
      }
    }
    try {
      const checked = checkStore()
      return checked instanceof Promise ? checked.then(() => healthy, sick) : healthy
    } catch (error) {
      return sick(error)
    }
  },
}

export const openapi: DocumentRoute = {
  name: 'openapi',
  access: 'open',
  method: 'GET',
  path: '/openapi.json',
  summary: 'OpenAPI document',
  description: 'The document that describes this service: OpenAPI 3.1, made from its route table.',
  mediaType: 'application/json',
  contentType: 'application/json; charset=utf-8',
  reply: pipe(
    looseObject({
      openapi: pipe(string(), metadata({ pattern: '^3\\.1\\.', maxLength: 10 })),
      info: looseObject({}),
      paths: looseObject({}),
    }),
    metadata({
      description: 'An OpenAPI 3.1 document.',
      examples: [{ openapi: '3.1.1', info: { title: 'Partner API', version: '2026-11-20' }, paths: {} }],
    }),
  ),
  publish: ({ documents }) => documents.openapi(),
}

export const docs: DocumentRoute = {
  name: 'docs',
  access: 'open',
  method: 'GET',
  path: '/docs',
  summary: 'Reference page',
  description: 'The same for people: one page that asks for nothing else.',
  mediaType: 'text/html',
  contentType: 'text/html; charset=utf-8',
  reply: pipe(
    string(),
    metadata({
      description: 'An HTML document.',
      maxLength: 4_194_304,
      examples: ['<!doctype html><html lang="en"><title>Partner API</title></html>'],
    }),
  ),
  publish: ({ documents }) => documents.reference(),
}

/** RFC 9727 §4.2: what tells a catalog from other sets of links. */
const catalogProfile = 'https://www.rfc-editor.org/info/rfc9727'

export const apiCatalog: DocumentRoute = {
  name: 'api-catalog',
  access: 'open',
  method: 'GET',
  path: '/.well-known/api-catalog',
  atRoot: true,
  summary: 'API catalog',
  description: 'Where the documents of this service are (RFC 9727), as a set of links (RFC 9264).',
  mediaType: 'application/linkset+json',
  contentType: `application/linkset+json; profile="${catalogProfile}"`,
  reply: pipe(
    object({
      linkset: pipe(
        array(
          looseObject({ anchor: pipe(string(), metadata({ format: 'uri-reference', maxLength: 2048 })) }),
        ),
        metadata({ maxItems: 100 }),
      ),
    }),
    metadata({
      description: 'A set of links.',
      examples: [{
        linkset: [{
          anchor: '/service',
          'service-desc': [{ href: '/service/openapi.json', type: 'application/json' }],
        }],
      }],
    }),
  ),
  publish: ({ documents }) => documents.catalog(),
}
