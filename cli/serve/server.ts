import { hostname } from 'node:os'
import process from 'node:process'
import { setInterval, setTimeout } from 'node:timers'
import { setTimeout as delay } from 'node:timers/promises'
import type { ListenOptions, RunningServer, ServableApi } from '../../adapters/runtimes/server.ts'
import { startWebhooks, type WebhookOptions } from '../../adapters/webhooks/deliverer.ts'
import { createPartnerApi } from '../../core/api.ts'
import { createServiceNames } from '../../core/http/headers.ts'
import { createRequestIds } from '../../core/lib/ids.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'
import type { LogEvent } from '../../core/log.ts'
import type { Observer } from '../../core/ports/observer.ts'
import type { Replica } from '../../core/ports/replicas.ts'
import type { Store } from '../../core/ports/store.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { API_VERSION } from '../../core/wire.ts'
import { CliError } from '../errors.ts'
import { createLog, createServeLogger, type ServeEvent } from './log.ts'
import type { StoreAddress } from '../store/url.ts'
import type { WorkerChannel } from './worker.ts'

/** Seconds after which a server ends whose file was deleted or replaced: it may be put back. */
const lostAfterSeconds = 5
/** Milliseconds for pending requests when the server stops. */
const drainTimeoutMs = 7_000
/** Milliseconds after which the process exits, even if work is left. */
const stopTimeoutMs = 9_000
export const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/**
 * Serves a store until SIGTERM, SIGINT or SIGHUP, then lets pending requests finish, for up to 7 s.
 *
 * @param settings With `opened`, the log starts with that event and ends with `stopped`.
 */
export async function serveUntilStopped(
  store: Store,
  settings: {
    readonly port: number
    readonly host: string
    readonly log: 'off' | 'errors' | 'all'
    readonly opened?: Partial<ServeEvent>
    readonly api: PartnerApiOptions
    /** Where metrics and readiness are served; default nowhere. */
    readonly metrics?: { readonly host: string; readonly port: number; readonly by: 'partner' | undefined }
    /** Seconds from the signal until connections are refused. */
    readonly drainDelay?: number
    /** This process as one of several that share the port. */
    readonly worker?: WorkerChannel
    /** Whether to end when the store has become unusable, as a file does that was replaced. Default false. */
    readonly endsWhenLost?: boolean
    /** Without them, nothing is delivered. */
    readonly webhooks?: WebhookOptions
  },
  onListening: (url: string, metricsUrl?: string) => Promise<void>,
): Promise<void> {
  const { port, host, log: level, opened, api: options, metrics: metricsAddress, worker } = settings
  let isStopping = false
  const stopped = new Promise<void>((resolve) => {
    const stop = (): void => {
      isStopping = true
      resolve()
    }
    const stopOnSignal = (): void => {
      // Without a handler left, a second signal ends the process at once.
      for (const signal of signals) process.off(signal, stopOnSignal)
      stop()
    }
    for (const signal of signals) process.on(signal, stopOnSignal)
    // A signal to the whole group may arrive later.
    worker?.stop.then(stop)
  })
  const { replicaName = `${hostname()}:${process.pid}` } = options
  const log = createLog()
  const logEvent = createServeLogger(log, opened === undefined ? 'off' : level)
  logEvent('store_opened', opened)
  const metrics = metricsAddress && (await import('../../adapters/metrics.ts')).createMetrics(metricsAddress)
  const { registeringStore, registered } = registerAtOnce(store)
  const api = createPartnerApi(
    { store: registeringStore },
    {
      ...options,
      replicaName,
      ...(level !== 'off' && { log: log.write, logLevel: level }),
      observers: [...options.observers ?? [], ...metrics ? [metrics.observer] : []],
    },
  )
  await registered()
  const rootApi = withRootRedirect(api, options, level === 'all' ? log.write : () => {})
  const server = await listen(rootApi, '--port', {
    port,
    host,
    drainTimeoutMs,
    reusePort: worker !== undefined,
  }).catch(async (error) => {
    // --wait would wait for it.
    await api.close()
    throw error
  })
  let listener: RunningServer | undefined
  const webhooks = settings.webhooks && store.webhooks &&
    startWebhooks(store, {
      ...(level !== 'off' && { log: log.write }),
      maxStalenessMs: options.maxStalenessMs,
      ...settings.webhooks,
    })
  try {
    if (metrics) {
      metrics.watch(api, store)
      if (webhooks) {
        const { measureWebhooks } = await import('../../adapters/webhooks/metrics.ts')
        metrics.add(() => measureWebhooks(store, webhooks))
      }
      const { createMetricsApi, isReady } = await import('./metrics-listener.ts')
      const sources = {
        sample: async () => [await metrics.collect()],
        isReady: async () => await isReady(api) && !isStopping,
      }
      worker?.answerSamples(sources)
      if (worker === undefined) listener = await listenForMetrics(createMetricsApi(sources), metricsAddress!)
    }
    await onListening(server.url, listener?.url)
    await (settings.endsWhenLost ? Promise.race([stopped, untilLost(store)]) : stopped)
    const drainDelay = delay((settings.drainDelay ?? 0) * 1000, undefined, { ref: false })
    const delayed = Promise.race([drainDelay, ...worker ? [worker.orphaned] : []])
    void server.drain(delayed)
    await delayed
  } finally {
    setTimeout(() => {
      log.flush()
      process.exit()
    }, stopTimeoutMs).unref()
    await Promise.all([server.drain(), webhooks?.close(drainTimeoutMs)])
    await listener?.drain()
    logEvent('stopped')
    log.flush()
  }
}

/** Rejects when the revision has been unreadable for some seconds, so that a supervisor starts the server again. */
function untilLost(store: Store): Promise<never> {
  return new Promise((_, reject) => {
    let failures = 0
    setInterval(async () => {
      try {
        await store.revision()
        failures = 0
      } catch (error) {
        if (++failures === lostAfterSeconds) reject(error)
      }
    }, 1_000).unref()
  })
}

/** Traces, if an OpenTelemetry SDK has registered itself in this process. Loads nothing otherwise. */
export async function importTracing(store: StoreAddress['kind']): Promise<readonly Observer[]> {
  const registered = Reflect.get(globalThis, Symbol.for('opentelemetry.js.api.1'))
  if (registered?.trace === undefined) return []
  const { createTracing } = await import('../../adapters/opentelemetry.ts')
  const databaseSystem = { memory: undefined, sqlite: 'sqlite', postgres: 'postgresql' }[store]
  return [createTracing({ databaseSystem, scheme: 'http' })]
}

/** Redirects `/` to the reference page. A service that is mounted elsewhere leaves `/` to its host. */
function withRootRedirect(
  api: ServableApi,
  { serviceName = 'service', deployment }: PartnerApiOptions,
  write: (event: LogEvent) => void,
): ServableApi {
  const [{ url } = { url: '/' }] = deployment?.servers ?? []
  const base = new URL(url, 'http://localhost').pathname.replace(/\/+$/, '')
  const nextRequestId = createRequestIds()
  const { versionHeader, versionHeaderLowerCase } = createServiceNames(serviceName)
  const allow = ['Allow', 'GET, HEAD, OPTIONS']
  const common = ['X-Content-Type-Options', 'nosniff', versionHeader, API_VERSION]
  const headers = [
    ...['Location', `${base}/${serviceName}/docs`],
    ...['Cache-Control', 'no-store'],
    ...['Content-Length', '0'],
    ...common,
  ]
  return {
    ...api,
    handle(request) {
      const { method, target } = request
      const isRoot = target === '/' || target.startsWith('/?')
      if (!isRoot) return api.handle(request)
      const version = request.header(versionHeaderLowerCase)
      const isGet = method === 'GET' || method === 'HEAD'
      if (isGet ? version !== undefined && version !== API_VERSION : method !== 'OPTIONS') {
        const refused = api.refuse(isGet ? 'unknown_version' : 'method_not_allowed', request.address)
        const body = method === 'HEAD' ? undefined : refused.body
        return isGet ? { ...refused, body } : { ...refused, headers: [...refused.headers, ...allow] }
      }
      const id = nextRequestId()
      if (!isGet) return { status: 204, headers: [...allow, ...common, 'X-Request-Id', id], body: undefined }
      const time = new Date().toISOString()
      write({ time, level: 'info', event: 'request', request_id: id, method, path: '/', status: 302 })
      return { status: 302, headers: [...headers, 'X-Request-Id', id], body: undefined }
    },
  }
}

/**
 * Registers the server before its first request: commands with --wait name it, and it fails early. With a read-only role it
 * would report itself healthy, and answer 503 to every key.
 */
function registerAtOnce(store: Store) {
  const { replicas } = store
  let registered: MaybePromise<void>
  const register = (replica: Replica) => {
    const registration = replicas!.register(replica)
    registered = registration.registered()
    return registration
  }
  const registeringStore = replicas === undefined ? store : { ...store, replicas: { ...replicas, register } }
  return { registeringStore, registered: () => registered }
}

async function listen(api: ServableApi, option: string, address: ListenOptions): Promise<RunningServer> {
  const { serve } = await importAdapter()
  return await serve(api, address).catch((error) => {
    throw listenFailure(error.cause ?? error, option, address)
  })
}

export function listenForMetrics(api: ServableApi, address: ListenOptions): Promise<RunningServer> {
  return listen(api, '--metrics', { ...address, drainTimeoutMs: 500 })
}

function importAdapter() {
  if (process.versions['bun'] !== undefined) return import('../../adapters/runtimes/bun.ts')
  if (process.versions['deno'] !== undefined) return import('../../adapters/runtimes/deno.ts')
  return import('../../adapters/runtimes/node.ts')
}

export function listenFailure(
  error: { readonly code?: string },
  option: string,
  address: ListenOptions,
): unknown {
  const { code } = error
  if (code === undefined) return error
  return new CliError(1, 'address_unavailable', describeListenError(code, option, address))
}

function describeListenError(code: string, option: string, { host, port }: ListenOptions): string {
  const address = `Port ${port} on ${host}`
  if (code === 'EADDRINUSE') {
    return `${address} is in use. Choose another one with ${option}; ${option} 0 takes a free one.`
  }
  if (code === 'EACCES') return `${address} needs more permissions. This account can use ports from 1024 up.`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `This machine has no address ${host}.`
  return `${address} can't be listened on (${code}).`
}
