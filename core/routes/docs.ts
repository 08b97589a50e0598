import type { DocumentRoute } from './route.ts'

export const openapi: DocumentRoute = {
  name: 'openapi',
  access: 'open',
  method: 'GET',
  path: '/openapi.json',
  summary: 'Get the OpenAPI document',
  mediaType: 'application/json',
  contentType: 'application/json; charset=utf-8',
  createDocument: ({ documents }) => documents.openapi(),
}

export const docs: DocumentRoute = {
  name: 'docs',
  access: 'open',
  method: 'GET',
  path: '/docs',
  summary: 'Get the reference page',
  mediaType: 'text/html',
  contentType: 'text/html; charset=utf-8',
  headers: ['Content-Security-Policy', 'Referrer-Policy'],
  createDocument: ({ documents }) => documents.reference(),
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
  mediaType: 'application/linkset+json',
  contentType: `application/linkset+json; profile="${catalogProfile}"`,
  headers: ['Link'],
  createDocument: ({ documents }) => documents.catalog(),
}
