import {
  assertInteger,
  assertKind,
  assertOptions,
  MAX_TIMER_MS,
  type OptionKinds,
} from '../../core/lib/options.ts'
import { API_VERSION } from '../../core/model.ts'
import type * as wire from '../../core/wire.ts'
import { ServiceUnreachableError } from './errors.ts'
import type {
  CallOptions,
  ListPage,
  PagedList,
  PartnerClient,
  PartnerClientOptions,
  RequestOptions,
  ResponseBody,
  Route,
} from './endpoints.ts'
import { attachResponse } from './response.ts'
import { createRequestBuilder, sendWithRetries, type TransportOptions } from './transport.ts'

/** The version of this package, which a test compares with package.json. */
const PACKAGE_VERSION = '0.1.0'

const callOptionKinds: OptionKinds<CallOptions> = {
  timeoutMs: 'a number',
  retries: 'a number',
  signal: 'an object',
  headers: 'an object',
}

const requestOptionKinds: OptionKinds<RequestOptions> = {
  ...callOptionKinds,
  params: 'an object',
  query: 'an object',
  body: 'an object',
  idempotencyKey: 'a text',
}

const clientOptionKinds: OptionKinds<PartnerClientOptions> = {
  url: 'anything',
  key: 'anything',
  partner: 'anything',
  serviceName: 'a text',
  timeoutMs: 'a number',
  retries: 'a number',
  maxRetryAfterSeconds: 'a number',
  userAgent: 'a text',
  onRequest: 'a function',
  onResponse: 'a function',
  fetch: 'a function',
}

/**
 * Makes a client.
 *
 * @throws {Error} in a browser, where every visitor could read the key.
 * @throws {TypeError} for an invalid `url`, `key` or `partner`, and for an unknown option.
 * @throws {RangeError} for a number out of its range.
 * @example
 * ```ts
 * const client = createPartnerClient({ url: 'https://api.example', key, partner: 'acme' })
 * for await (const { name } of client.profiles({ country: 'DE' })) console.log(name)
 * ```
 */
export function createPartnerClient(options: PartnerClientOptions): PartnerClient {
  const { request, read, list, paginate, below, useKey } = createCalls(options)
  let isRotating = false
  return {
    verifyKey: (options) => read('POST /developer/verify-key', options),
    problems: (query, options) => list('GET /developer/problems', query, options),
    async rotateKey(given) {
      assertOptions('rotateKey', given, { ...callOptionKinds, overlapSeconds: 'a number', store: 'anything' })
      const { overlapSeconds, store, ...options } = given
      assertKind('rotateKey: store', store, 'a function')
      if (isRotating) throw new Error('The key is being rotated.')
      isRotating = true
      try {
        const body = { overlap_seconds: overlapSeconds }
        const rotated = await read<wire.KeyRotation>('POST /developer/rotate-key', options, { body })
        const { key, ...rotation } = rotated
        if (!key) throw new ServiceUnreachableError('The response has no key.', rotated.response)
        await store(key)
        useKey(key)
        return attachResponse(rotation, rotated.response)
      } finally {
        isRotating = false
      }
    },
    revokeKey: (options) => read('POST /developer/revoke-key', options),
    widget: (options) => read('GET /partner-widget', options),
    recentProfiles: (query, options) => read('GET /public/profiles/recent', options, { query }),
    profiles: (query, options) => list('GET /public/profiles', query, options),
    profile: (slug, options) => read('GET /public/profiles/{slug}', options, { params: { slug } }),
    banner: (options) => read('GET /public/banner', options),
    countries: (query, options) => read('GET /public/countries', options, { query }),
    industries: (query, options) => read('GET /public/industries', options, { query }),
    plans: (options) => read('GET /public/plans', options),
    reportSummary: (query, options) => read('GET /partner/reports/summary', options, { query }),
    reportActivity: (query, options) => list('GET /partner/reports/activity', query, options),
    signUp: async (body, given = {}) => {
      assertOptions('signUp', given, { ...callOptionKinds, idempotencyKey: 'a text' })
      const { idempotencyKey = crypto.randomUUID(), ...options } = given
      return await read('POST /partner/signups', options, { body, idempotencyKey })
    },
    request: async (route, options) => await request(below(route), options),
    paginate: (route, options) => paginate(below(route), options),
  }
}

/** The kinds of calls: for a whole body, for its `data`, and for a paged list. Paths are relative to the service. */
function createCalls(options: PartnerClientOptions) {
  const { url, key, partner, serviceName, ownHeaders, transport } = parseOptions(options)
  let build = createRequestBuilder(url, serviceName, key)
  const pathname = new URL(url).pathname.replace(/\/+$/, '')

  async function request<Data>(
    route: Route,
    options: RequestOptions = {},
  ): Promise<ResponseBody<Data>> {
    assertOptions('The request', options, requestOptionKinds)
    const { params, query = {}, body, idempotencyKey, signal, headers } = options
    const { timeoutMs = transport.timeoutMs, retries = transport.retries } = options
    const path = fillPath(route, params)
    const isPost = route.startsWith('POST')
    if (body && !isPost) throw new TypeError(`body is for POST only, not for ${route}.`)
    const search = new URLSearchParams(isPost ? {} : { partner })
    for (const [name, value] of Object.entries(query)) {
      for (const item of [value].flat()) if (item != null) search.append(name, String(item))
    }
    const built = build({
      target: `/${serviceName}${path}${search.size > 0 ? `?${search}` : ''}`,
      headers: {
        ...headers && Object.fromEntries(new Headers(headers)),
        ...ownHeaders,
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      body: isPost ? { ...body, partner } : undefined,
    })
    const limits = checkLimits(timeoutMs, retries)
    const isSafe = !isPost || idempotencyKey || /^\/developer\/(verify|rotate)-key$/.test(path)
    if (!isSafe) limits.retries = 0
    const received = await sendWithRetries(built, { ...transport, ...limits }, signal)
    return attachResponse(received.body, received.response) as unknown as ResponseBody<Data>
  }

  async function* readPages<Row>(route: Route, options: RequestOptions = {}) {
    let query: { readonly cursor?: unknown } = options.query ?? {}
    const seen = new Set([query.cursor])
    for (;;) {
      const body = await request<readonly Row[]>(route, { ...options, query })
      if (!body.page || !Array.isArray(body.data)) {
        throw new ServiceUnreachableError('The response is not a page.', body.response)
      }
      yield body as ListPage<Row>
      const { has_more, next_cursor: cursor } = body.page
      if (has_more === false) return
      // A cache that ignores queries would return the same pages forever.
      if (typeof cursor !== 'string' || seen.has(cursor)) {
        throw new ServiceUnreachableError('The list does not advance.')
      }
      seen.add(cursor)
      query = { ...query, cursor }
    }
  }

  function paginate<Row>(route: Route, options?: RequestOptions): PagedList<Row> {
    let first: Promise<ListPage<Row>> | undefined
    const readFirst = () => first ??= readPages<Row>(route, options).next().then(({ value }) => value!)
    return {
      then: (...handlers) => readFirst().then(...handlers),
      catch: (...handlers) => readFirst().catch(...handlers),
      pages: () => readPages(route, options),
      async *[Symbol.asyncIterator]() {
        for await (const { data } of readPages<Row>(route, options)) yield* data
      },
    }
  }

  return {
    /** Documents show paths with the name of the service, and `verifyKey` with the base path, too. */
    below(route: Route): Route {
      const start = route.indexOf('/')
      const end = route.indexOf(`/${serviceName}/`)
      if (end < 0 || !pathname.endsWith(route.slice(start, end))) return route
      return `${route.slice(0, start)}${route.slice(end + serviceName.length + 1)}` as Route
    },
    useKey(key: string): void {
      build = createRequestBuilder(url, serviceName, key)
    },
    request,
    async read<Data extends object>(route: Route, options: CallOptions = {}, more?: RequestOptions) {
      assertOptions('The request', options, callOptionKinds)
      const { data, response } = await request<Data>(route, { ...options, ...more })
      // Another server may send a primitive value.
      return attachResponse<Data>(Object(data), response)
    },
    /** A paged list of the service's own. */
    list<Row>(route: Route, query: object | undefined, options: CallOptions = {}): PagedList<Row> {
      assertOptions('The request', options, callOptionKinds)
      return paginate(route, { ...options, query })
    },
    paginate,
  }
}

/**
 * @returns The path of a route with the values of its parameters.
 * @throws {TypeError} for what a URL would not have as its path, such as `//`, dot segments or a query.
 */
function fillPath(route: Route, params: RequestOptions['params']): string {
  if (!/^(?:GET|POST) (?:\/(?!\.{1,2}(?:\/|$))(?:[\w.~-]+|:\w+|\{\w+\}))+$/.test(route)) {
    throw new TypeError("route must be like 'GET /orders/{id}', with values in params.")
  }
  return route.replace(/^\w+ /, '').replace(/[:{](\w+)\}?/g, (_, name: string) => {
    const value = String(params && Object.hasOwn(params, name) ? params[name] ?? '' : '')
    // The path of an empty or dot segment would be that of another endpoint.
    if (/^\.{0,2}$/.test(value)) throw new TypeError(`${name} must not be '', '.' or '..'.`)
    return encodeURIComponent(value)
  })
}

function checkLimits(timeoutMs: number, retries: number) {
  return {
    timeoutMs: assertInteger('timeoutMs', timeoutMs, 1, MAX_TIMER_MS),
    retries: assertInteger('retries', retries, 0, 100),
  }
}

function parseOptions(options: PartnerClientOptions) {
  // Every browser's user agent starts with Mozilla, in workers too; that of Node, Bun, Deno and Workers does not.
  if (globalThis.navigator?.userAgent?.startsWith('Mozilla/')) {
    throw new Error('A partner key is a secret: use it on your server, never in a browser.')
  }
  assertOptions('createPartnerClient', options, clientOptionKinds)
  const {
    url,
    key: givenKey,
    partner,
    serviceName = 'service',
    timeoutMs = 10_000,
    retries = 2,
    maxRetryAfterSeconds = 60,
    userAgent = '',
    onRequest,
    onResponse,
    fetch: send = (request) => fetch(request),
  } = options
  // Files often end with a line feed, or start with a byte-order mark.
  const key = String(givenKey ?? '').trim()
  // Some runtimes quote a header value that they reject, and this one is a secret.
  if (!/^[!-~]+$/.test(key)) throw new TypeError('key must be one key, and printable ASCII.')
  // The partner is part of URLs, which are logged: a key must not get there by mistake.
  if (!/^[a-z\d-]+$/.test(partner ?? '')) {
    throw new TypeError("partner must be the slug of the key's partner.")
  }
  if (!/^[ -~]*$/.test(userAgent)) throw new TypeError('userAgent must be printable ASCII.')
  if (String(url).replace(/\/+$/, '').endsWith(`/${serviceName}`)) {
    throw new TypeError(`url must be the address without /${serviceName}.`)
  }
  return {
    url,
    key,
    partner,
    serviceName,
    ownHeaders: {
      [`${serviceName}-version`]: API_VERSION,
      'user-agent': `partner-api-client/${PACKAGE_VERSION} ${userAgent}`,
    },
    transport: {
      ...checkLimits(timeoutMs, retries),
      maxRetryAfterSeconds: assertInteger('maxRetryAfterSeconds', maxRetryAfterSeconds, 0, 2_147_483),
      onRequest,
      onResponse,
      fetch: send,
    } satisfies TransportOptions,
  }
}
