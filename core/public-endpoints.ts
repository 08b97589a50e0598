/** The endpoints that need no key: health, claims, and documents, which are made once. */
import { admitLookUp, rejectCredential, requireUnblocked } from './authenticate-request.ts'
import { prefers, prefersGzip } from './http/headers.ts'
import type { HandlerResult, HttpResponse } from './http/message.ts'
import { type InputError, MAX_BODY_BYTES, Problem } from './http/problem.ts'
import { respondCached } from './http/response.ts'
import type { Sha256 } from './lib/digest.ts'
import { andThen, type MaybePromise } from './lib/promise.ts'
import type { DocumentSettings } from './openapi/model.ts'
import { parseQuery, type RequestContext, type Service } from './request-context.ts'
import { readParameters } from './routes/input.ts'
import { docs } from './routes/open.ts'
import { type DocumentRoute, type OpenRoute, operationIdOf, type Route } from './routes/route.ts'
import type { OpenRequest } from './routes/route.ts'

export function createPublicHandler({ handlers, writer, loadDocument }: Service) {
  const plain = memoize((route, endpoint) =>
    loadDocument(route, endpoint).then((document) => writer.toCachedDocument(document, route.contentType))
  )
  const compressed = memoize((route, endpoint) => andThen(plain(route, endpoint), writer.compress))

  return (context: RequestContext, route: OpenRoute | DocumentRoute): MaybePromise<HttpResponse> => {
    const { params, request, service: { clock } } = context
    const errors: InputError[] = []
    // Mailers add parameters to links.
    if (!('hasPage' in route)) readParameters(parseQuery(context), {}, false, errors)
    if (errors.length > 0) throw new Problem('invalid_parameter', { errors })
    if ('contentType' in route) {
      const { mediaType, alternate } = route
      const isAlternate = alternate && prefers(request.header('accept'), alternate.mediaType, mediaType)
      const document = prefersGzip(request.header('accept-encoding')) ? compressed : plain
      return andThen(
        document(isAlternate ? alternate : route, params['endpoint']),
        (body) => respondCached(body, context),
      )
    }
    const opened: OpenRequest = {
      params,
      now: () => clock.now(),
      lookUp: async (problem, find) =>
        await admitLookUp(context, async () => {
          requireUnblocked(context)
          const found = await find() ?? await rejectCredential(context, problem)
          if (request.isAborted) throw new Problem('malformed_request')
          return found
        }),
    }
    const respond = (result: HandlerResult) => writer.respondUncached(result, route.status ?? 200, context)
    return route.hasPage
      ? showPage(context, route, opened).then(respond)
      : andThen(route.handle(handlers, opened), respond)
  }

  async function showPage(context: RequestContext, route: OpenRoute, opened: OpenRequest) {
    const { request, startedAt } = context
    const accept = request.header('accept')
    const isJson = prefers(accept, 'application/json', 'text/html')
    // First: a page that cannot be loaded must not cost the key.
    const page = isJson ? undefined : await import('./openapi/claim-page.ts')
    // A problem is a page only for those who ask for one.
    if (page !== undefined && prefers(accept, 'text/html', 'application/json')) {
      context.problemPage = (problem, id) => page.createProblemPage(problem, id, handlers.sha256)
    }
    requireUnblocked(context, startedAt)
    if (route.method === 'POST') await request.body(MAX_BODY_BYTES)
    const result = await route.handle(handlers, opened)
    return page?.createClaimPage(result, handlers.sha256) ?? result
  }
}

type MakeDocument<T> = (route: DocumentRoute, endpoint: string | undefined) => MaybePromise<T>

/** Makes each document once; one that failed is made again for the next request. */
function memoize<T>(make: MakeDocument<T>): MakeDocument<T> {
  const cache = new Map<string, MaybePromise<T>>()
  return (route, endpoint) => {
    const name = `${route.name} ${endpoint}`
    const known = cache.get(name)
    if (known !== undefined) return known
    const made = make(route, endpoint)
    cache.set(name, made)
    if (made instanceof Promise) made.then((ready) => cache.set(name, ready), () => cache.delete(name))
    return made
  }
}

/**
 * Makes a function that makes documents. Their code is loaded with the first one: most services need neither the memory nor
 * the time at their start. The reference is kept, which the page and all Markdown are made from.
 */
export function createDocumentLoader(
  routes: readonly Route[],
  settings: DocumentSettings,
  sha256: Sha256,
): Service['loadDocument'] {
  const describe = async () => (await import('./openapi/document.ts')).createDocument(routes, settings)
  const loadReference = memoize(async () => {
    const described = await describe()
    const { createReference } = await import('./openapi/reference.ts')
    return createReference(described, settings)
  })

  return async ({ name }, endpoint) => {
    if (endpoint !== undefined && !routes.some((route) => operationIdOf(route) === endpoint)) {
      throw new Problem('route_not_found')
    }
    if (name === 'api-catalog') return (await import('./openapi/document.ts')).createApiCatalog(settings)
    if (name === 'openapi') return { text: JSON.stringify(await describe()) }
    const reference = await loadReference(docs, undefined)
    if (name === 'docs') {
      const { createReferencePage } = await import('./openapi/reference-page.ts')
      return createReferencePage(reference, settings, sha256)
    }
    const { createMarkdown } = await import('./openapi/markdown.ts')
    return createMarkdown(reference, endpoint)
  }
}
