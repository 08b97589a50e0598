/**
 * Serves in a Worker, on Cloudflare or workerd.
 *
 * @module
 */
import type { PartnerApi } from '../../core/api.ts'
import { createResponseConverter, FetchRequest } from '../../core/http/fetch.ts'
import type { HttpResponse } from '../../core/http/message.ts'
import { internalsOf } from '../../core/internals.ts'
import { completesWithin, delay } from '../../core/lib/promise.ts'
import { assertKind, assertOptions } from '../../core/lib/options.ts'
import type { WebRequest, WebResponse } from '../../core/lib/web-globals.ts'

/** The context of a request in a Worker, or the state of a Durable Object. */
export interface WorkerContext {
  /** Keeps the isolate running until the work is done. */
  waitUntil(work: Promise<unknown>): void
}

/** Settings of a Worker. */
export interface WorkerOptions {
  /**
   * Use `CF-Connecting-IP` as the client's address, default false. Cloudflare sets it; without Cloudflare in front,
   * clients can forge it. Without a client address (see also `trustedProxies` of the service), IP allow-lists reject
   * every request and failed authentications are not rate-limited.
   */
  readonly trustConnectingIp?: boolean
}

/** The default export of a Worker. */
export interface WorkerHandler<Env> {
  /** Answers a request. Rejects only when the service can't be created. */
  fetch(request: WebRequest, env: Env, context: WorkerContext): Promise<WebResponse>
}

/** How long usage is collected before it is written, in milliseconds. */
const flushDelayMs = 1_000
/** How long a request waits for another one to create the service before it creates it itself, in milliseconds. */
const initTimeoutMs = 5_000

/**
 * Creates the service at the first request, since a Worker may not do I/O before, and keeps each request's context
 * alive while the service writes usage after the response.
 *
 * A Worker runs in any number of isolates, and each counts limits on its own. Requests of one isolate can't share
 * connections. A store that keeps a connection open, such as the Postgres store, and limits across isolates require a
 * Durable Object whose `fetch` calls this handler, with its state as the context.
 *
 * @param createApi Called again by the next request after a failure, and by a request that has waited for 5 s.
 * @example
 * ```ts
 * export default createWorker((env: Env) => createPartnerApi({ store: myStore(env) }), { trustConnectingIp: true })
 * ```
 */
export function createWorker<Env>(
  createApi: (env: Env) => PartnerApi | Promise<PartnerApi>,
  options: WorkerOptions = {},
): WorkerHandler<Env> {
  assertKind('createWorker: the first argument', createApi, 'a function')
  assertOptions('createWorker', options, { trustConnectingIp: 'true or false' })
  const { trustConnectingIp = false } = options
  const respond = createResponseConverter((error): HttpResponse =>
    internalsOf(api!).refuse('internal', undefined, error)
  )
  let api: PartnerApi | undefined
  let creating: Promise<PartnerApi> | undefined
  let flushed: Promise<void> | undefined
  let flushScheduledAt = -Infinity

  function startCreating(env: Env): Promise<PartnerApi> {
    const started = createOnce(env).finally(() => {
      // Another request may have started since then.
      if (creating === started) creating = undefined
    })
    return creating = started
  }

  async function createOnce(env: Env): Promise<PartnerApi> {
    const created = await createApi(env)
    return api ??= created
  }

  /**
   * Stops waiting after a while: if the runtime cancels the request that creates the service,
   * its promise never settles.
   */
  async function waitForApi(env: Env): Promise<PartnerApi> {
    while (api === undefined) {
      const pending = creating
      if (pending === undefined) return startCreating(env)
      if (!await completesWithin(initTimeoutMs, pending) && creating === pending) creating = undefined
    }
    return api
  }

  async function handleRequest(request: Request, env: Env): Promise<Response> {
    const { handle } = api ?? await waitForApi(env)
    const hostname = trustConnectingIp ? request.headers.get('cf-connecting-ip') ?? undefined : undefined
    return respond(await handle(new FetchRequest(request, { remoteAddr: { hostname } })))
  }

  /** All requests that arrive before the write share it. */
  function scheduleFlush(): Promise<void> | undefined {
    const now = Date.now()
    // By the clock: when the runtime evicts the isolate, the promise never settles.
    if (now >= flushScheduledAt && now - flushScheduledAt < flushDelayMs) return flushed
    flushScheduledAt = now
    return flushed = delay(flushDelayMs).then(() => api?.flush())
  }

  return {
    fetch(request, env, context) {
      const responding = handleRequest(request, env)
      // Work that outlives its request would be cancelled, also for the requests that share it.
      context.waitUntil(responding.then(scheduleFlush, () => undefined))
      return responding
    },
  }
}
