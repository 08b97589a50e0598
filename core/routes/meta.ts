import { array, literal, looseObject, metadata, object, pipe, strictObject, string } from 'valibot'
import { after } from '../after.ts'
import type { DocumentRoute, Route } from './route.ts'

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
      strictObject({ status: pipe(literal('ok'), metadata({ description: 'Anything else is a problem.' })) }),
      metadata({ title: 'Health', description: 'That the service can work.' }),
    ),
  }),
  handle: (ports) => after(ports.checkStore(), () => ({ data: { status: 'ok' } })),
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
