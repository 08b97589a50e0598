/**
 * Serves in a Worker, on Cloudflare or on workerd.
 *
 * @module
 */
import type { PartnerApi } from '../../core/api.ts'
import { createResponseConverter, FetchRequest } from '../../core/http/fetch.ts'
import type { HttpResponse } from '../../core/http/message.ts'
import { completesWithin } from '../../core/lib/promise.ts'
import type { WebRequest, WebResponse } from '../../core/lib/web.ts'

/** What a Worker is told of a request beside it. A Durable Object's state has the same method. */
export interface WorkerContext {
  /** Keeps what the request began going until the work is done. */
  waitUntil(work: Promise<unknown>): void
}

/** Settings of a Worker. */
export interface WorkerOptions {
  /**
   * Take `CF-Connecting-IP` for the client's address, default false. Cloudflare writes it; where something else stands
   * in front, anybody may. Without an address, allow-lists include nobody, and failures are not counted, unless
   * `trustedProxies` of the service says otherwise.
   */
  readonly trustConnectingIp?: boolean
}

/** What a Worker exports. */
export interface WorkerHandler<Env> {
  /** Answers a request. Rejects only when the service can't be made. */
  fetch(request: WebRequest, env: Env, context: WorkerContext): Promise<WebResponse>
}

/** How long what requests noted waits for more before it is written, in milliseconds. */
const flushDelayMs = 1_000
/** How long a request waits for the service that another one makes before it makes one itself, in milliseconds. */
const initTimeoutMs = 5_000

/**
 * Makes the service at the first request, because a Worker may ask for nothing before, and lends each request the time
 * that its work takes beyond the answer.
 *
 * A Worker runs in any number of isolates, and each counts limits by itself. An isolate's requests can't use each
 * other's connections: a store that keeps one open, as the Postgres store does, and limits that hold for all need a
 * Durable Object whose `fetch` passes requests on to this one, with its state as the context.
 *
 * @param createApi Called again for the next request when it fails, and for one that has waited for 5 s.
 * @example
 * ```ts
 * export default createWorker((env: Env) => createPartnerApi({ store: myStore(env) }), { trustConnectingIp: true })
 * ```
 */
export function createWorker<Env>(
  createApi: (env: Env) => PartnerApi | Promise<PartnerApi>,
  { trustConnectingIp = false }: WorkerOptions = {},
): WorkerHandler<Env> {
  const respond = createResponseConverter((): HttpResponse => api!.refuse('internal'))
  let api: PartnerApi | undefined
  let creating: Promise<PartnerApi> | undefined
  let flushed: Promise<void> | undefined
  let flushScheduledAt = -Infinity

  function startCreating(env: Env): Promise<PartnerApi> {
    const started = createOnce(env).finally(() => {
      // Another may have begun meanwhile.
      if (creating === started) creating = undefined
    })
    return creating = started
  }

  async function createOnce(env: Env): Promise<PartnerApi> {
    const created = await createApi(env)
    return api ??= created
  }

  /** Not for good: when the runtime has given up the request that makes the service, that never ends. */
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
    return respond(await handle(new WorkerHttpRequest(request, trustConnectingIp)))
  }

  /** One write for all who come while it waits. */
  function scheduleFlush(): Promise<void> | undefined {
    const now = Date.now()
    // By the clock, and not by its end, which never comes when the runtime gives the isolate up.
    if (now >= flushScheduledAt && now - flushScheduledAt < flushDelayMs) return flushed
    flushScheduledAt = now
    return flushed = new Promise<void>((resolve) => setTimeout(resolve, flushDelayMs)).then(() =>
      api?.flush()
    )
  }

  return {
    fetch(request, env, context) {
      const responding = handleRequest(request, env)
      // What a request began ends with it, and so would the requests that wait for the same.
      context.waitUntil(responding.then(scheduleFlush, () => undefined))
      return responding
    },
  }
}

class WorkerHttpRequest extends FetchRequest {
  readonly #hasAddress: boolean

  constructor(request: Request, hasAddress: boolean) {
    super(request)
    this.#hasAddress = hasAddress
  }

  override get address(): string | undefined {
    return this.#hasAddress ? this.header('cf-connecting-ip') : undefined
  }
}
