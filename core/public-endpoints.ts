/** The endpoints that need no key: health, and documents, which are made once. */
import { prefersGzip } from './http/headers.ts'
import type { CachedBody, HttpResponse } from './http/message.ts'
import { type InputError, Problem } from './http/problem.ts'
import { andThen, type MaybePromise } from './lib/promise.ts'
import { parseQuery, type RequestContext, type Service } from './request-context.ts'
import { readParameters } from './routes/input.ts'
import type { DocumentRoute, OpenRoute } from './routes/route.ts'

export function createPublicHandler({ handlers, writer }: Service) {
  const plain = memoize((route) =>
    andThen(
      route.createDocument(handlers),
      (document) => writer.toCachedDocument(document, route.contentType),
    )
  )
  const compressed = memoize((route) => andThen(plain(route), writer.compress))

  return (context: RequestContext, route: OpenRoute | DocumentRoute): MaybePromise<HttpResponse> => {
    const errors: InputError[] = []
    readParameters(parseQuery(context), {}, false, errors)
    if (errors.length > 0) throw new Problem('invalid_parameter', { errors })
    if ('contentType' in route) {
      const document = prefersGzip(context.request.header('accept-encoding')) ? compressed : plain
      return andThen(document(route), (body) => writer.respond(body, context, []))
    }
    return andThen(
      route.handle(handlers),
      (result) => writer.respondUncached(result, 200, context, []),
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
