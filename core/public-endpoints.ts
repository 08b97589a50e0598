/** The endpoints that need no key: health, and documents, which are made once. */
import { prefersGzip } from './http/headers.ts'
import type { CachedBody, HttpResponse, StaticDocument } from './http/message.ts'
import { type InputError, Problem } from './http/problem.ts'
import { respondCached } from './http/response.ts'
import type { Sha256 } from './lib/digest.ts'
import { andThen, type MaybePromise } from './lib/promise.ts'
import type { DocumentSettings } from './openapi/model.ts'
import { parseQuery, type RequestContext, type Service } from './request-context.ts'
import { readParameters } from './routes/input.ts'
import type { DocumentRoute, OpenRoute, Route } from './routes/route.ts'

export function createPublicHandler({ handlers, writer, loadDocument }: Service) {
  const plain = memoize((route) =>
    loadDocument(route).then((document) => writer.toCachedDocument(document, route.contentType))
  )
  const compressed = memoize((route) => andThen(plain(route), writer.compress))

  return (context: RequestContext, route: OpenRoute | DocumentRoute): MaybePromise<HttpResponse> => {
    const errors: InputError[] = []
    readParameters(parseQuery(context), {}, false, errors)
    if (errors.length > 0) throw new Problem('invalid_parameter', { errors })
    if ('contentType' in route) {
      const document = prefersGzip(context.request.header('accept-encoding')) ? compressed : plain
      return andThen(document(route), (body) => respondCached(body, context))
    }
    return andThen(
      route.handle(handlers),
      (result) => writer.respondUncached(result, 200, context),
    )
  }
}

/** Makes each document once; one that failed is made again for the next request. */
function memoize(
  make: (route: DocumentRoute) => MaybePromise<CachedBody>,
): (route: DocumentRoute) => MaybePromise<CachedBody> {
  const cache = new Map<DocumentRoute, MaybePromise<CachedBody>>()
  return (route) => {
    const known = cache.get(route)
    if (known !== undefined) return known
    const made = make(route)
    cache.set(route, made)
    if (made instanceof Promise) made.then((ready) => cache.set(route, ready), () => cache.delete(route))
    return made
  }
}

/** Its code is loaded with the first document: most services need neither the memory nor the time at their start. */
export async function loadDocument(
  name: DocumentRoute['name'],
  routes: readonly Route[],
  settings: DocumentSettings,
  sha256: Sha256,
): Promise<StaticDocument> {
  const { createApiCatalog, createDocument } = await import('./openapi/document.ts')
  if (name === 'api-catalog') return createApiCatalog(settings)
  const described = createDocument(routes, settings)
  if (name === 'openapi') return { text: JSON.stringify(described) }
  const { createReferencePage } = await import('./openapi/reference.ts')
  return createReferencePage(described, settings, sha256)
}
