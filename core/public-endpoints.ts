/** The endpoints that need no key: health, claims, and documents, which are made once. */
import { admitLookUp, rejectCredential, requireUnblocked } from './authenticate-request.ts'
import { prefers, prefersGzip } from './http/headers.ts'
import type { HttpResponse } from './http/message.ts'
import { type InputError, Problem } from './http/problem.ts'
import { MAX_BODY_BYTES } from './http/body.ts'
import { respondCached } from './http/response.ts'
import type { Sha256 } from './lib/digest.ts'
import { andThen, type MaybePromise } from './lib/promise.ts'
import type { DocumentSettings } from './openapi/model.ts'
import { parseQuery, type RequestContext, type Service } from './request-context.ts'
import { readParameters } from './routes/read-input.ts'
import {
  type DocumentRoute,
  type OpenRequest,
  type OpenRoute,
  operationIdOf,
  type Route,
} from './routes/route.ts'

/** Answers a request for an endpoint without a key. */
export type PublicHandler = (
  context: RequestContext,
  route: OpenRoute | DocumentRoute,
) => MaybePromise<HttpResponse>

export function createPublicHandler({ handlerContext, writer, loadDocument }: Service): PublicHandler {
  const plain = memoize((type: string, endpoint) => {
    const mediaType = type.slice(0, type.indexOf(';'))
    return loadDocument(mediaType, endpoint).then((document) => writer.toCachedDocument(document, type))
  })
  const compressed = memoize((type: string, endpoint) => andThen(plain(type, endpoint), writer.compress))

  function respondDocument(context: RequestContext, route: DocumentRoute): MaybePromise<HttpResponse> {
    requireNoParameters(context)
    const { request, params } = context
    const { mediaTypes: [usual, ...others], typeParameters = 'charset=utf-8' } = route
    const mediaType = others.find((other) => prefers(request.header('accept'), other, usual)) ?? usual
    const makeDocument = prefersGzip(request.header('accept-encoding')) ? compressed : plain
    const document = makeDocument(`${mediaType}; ${typeParameters}`, params['endpoint'])
    return andThen(document, (body) => respondCached(body, context))
  }

  return (context, route) => {
    if ('isDocument' in route) return respondDocument(context, route)
    return andThen(
      route.handle(handlerContext, openRequest(context)),
      (result) => writer.respondUncached(result, route.status ?? 200, context),
    )
  }
}

/** The request as endpoints without a key get it. */
function openRequest(context: RequestContext): OpenRequest {
  const { params, request, startedAt, service: { clock } } = context
  return {
    params,
    now: () => clock.now(),
    prefers: (type, other) => prefers(request.header('accept'), type, other),
    requireNoParameters: () => requireNoParameters(context),
    requireUnblocked: () => requireUnblocked(context, startedAt),
    skipBody: async () => void await request.body(MAX_BODY_BYTES),
    showProblems: (page) => void (context.problemPage = page),
    lookUp: async (problem, find) =>
      await admitLookUp(context, async () => {
        requireUnblocked(context)
        const found = await find() ?? await rejectCredential(context, problem)
        if (request.isAborted) throw new Problem('malformed_request')
        return found
      }),
  }
}

function requireNoParameters(context: RequestContext): void {
  const errors: InputError[] = []
  readParameters(parseQuery(context), {}, false, errors)
  if (errors.length > 0) throw new Problem('invalid_parameter', { errors })
}

type MakeDocument<T> = (type: string, endpoint: string | undefined) => MaybePromise<T>

/** Makes each document once; one that failed is made again for the next request. */
function memoize<T>(make: MakeDocument<T>): MakeDocument<T> {
  const cache = new Map<string, MaybePromise<T>>()
  return (type, endpoint) => {
    const name = `${type} ${endpoint}`
    const known = cache.get(name)
    if (known !== undefined) return known
    const made = make(type, endpoint)
    cache.set(name, made)
    if (made instanceof Promise) made.then((ready) => cache.set(name, ready), () => cache.delete(name))
    return made
  }
}

/**
 * Makes a function that makes documents. Their code is loaded with the first one: most services need neither the
 * memory nor the time at their start. The reference is kept, which the page and all Markdown are made from.
 */
export function createDocumentLoader(
  routes: readonly Route[],
  settings: DocumentSettings,
  sha256: Sha256,
): Service['loadDocument'] {
  const describe = async () => (await import('./openapi/document.ts')).createDocument(routes, settings)
  const references = memoize(async () => {
    const described = await describe()
    const { createReference } = await import('./openapi/reference.ts')
    return createReference(described, settings)
  })
  const loadReference = () => references('', undefined)

  return async (mediaType, endpoint) => {
    if (endpoint !== undefined && !routes.some((route) => operationIdOf(route) === endpoint)) {
      throw new Problem('route_not_found')
    }
    switch (mediaType) {
      case 'application/linkset+json':
        return (await import('./openapi/document.ts')).createApiCatalog(settings)
      case 'application/json':
        return { text: JSON.stringify(await describe()) }
      case 'text/html': {
        const { createReferencePage } = await import('./openapi/reference-page.ts')
        return createReferencePage(await loadReference(), settings, sha256)
      }
      default: {
        const { createMarkdown } = await import('./openapi/markdown.ts')
        return createMarkdown(await loadReference(), endpoint)
      }
    }
  }
}
