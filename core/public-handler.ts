import { prefersGzip } from './http/headers.ts'
import type { CachedBody, HttpResponse } from './http/message.ts'
import { readParameters } from './http/query.ts'
import type { ResponseWriter } from './http/response.ts'
import { andThen, type MaybePromise } from './lib/promise.ts'
import { queryOf, type RequestContext, requestMetaOf } from './request-context.ts'
import type { HandlerContext } from './routes/context.ts'
import type { DocumentRoute, OpenRoute } from './routes/route.ts'

/**
 * Serves what needs no key: small replies, and documents, which are made once and kept as bytes.
 *
 * @returns The second half of the pipeline for these routes.
 */
export function createPublicHandler(
  handlers: HandlerContext,
  writer: ResponseWriter,
): (call: RequestContext, route: OpenRoute | DocumentRoute) => MaybePromise<HttpResponse> {
  const plain = memoize((route) =>
    andThen(
      route.createDocument(handlers),
      (publication) => writer.toCachedDocument(publication, route.contentType),
    )
  )
  const compressed = memoize((route) => andThen(plain(route), writer.compress))

  return (call, route) => {
    readParameters(queryOf(call), {}, undefined)
    if ('contentType' in route) {
      const document = prefersGzip(call.request.header('accept-encoding')) ? compressed : plain
      // Without the stem: what is compressed must not be sent as text.
      return andThen(document(route), (made) => ({
        ...writer.respond(made, requestMetaOf(call), []),
        stem: undefined,
      }))
    }
    return andThen(
      route.handle(handlers),
      (reply) => writer.respondUncached(reply, 200, requestMetaOf(call), []),
    )
  }
}

/** Makes each document once. One that could not be made is made anew for the next request. */
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
