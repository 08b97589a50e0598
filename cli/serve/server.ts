import { once } from 'node:events'
import { hostname } from 'node:os'
import process from 'node:process'
import { setTimeout } from 'node:timers'
import { setTimeout as delay } from 'node:timers/promises'
import type { RunningServer } from '../../adapters/runtimes/server.ts'
import { startWebhooks, type WebhookOptions } from '../../adapters/webhooks/deliverer.ts'
import { createPartnerApi } from '../../core/api.ts'
import { internalsOf } from '../../core/internals.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'
import type { LogEvent } from '../../core/log.ts'
import type { Observer } from '../../core/ports/observer.ts'
import type { Replica } from '../../core/ports/replicas.ts'
import type { Store } from '../../core/ports/store.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { interrupts } from '../files.ts'
import { BLOCKED_PORTS } from './blocked-ports.ts'
import { listen } from './listen.ts'
import { createLog, type ServeEvent } from './log.ts'
import { listenForMetrics, type Measured, type MetricsAddress } from './metrics-listener.ts'
import { withRootRedirect } from './root-redirect.ts'
import type { StoreAddress } from '../store/url.ts'

/** Seconds after which a server ends whose file was deleted or replaced: it may be put back. */
const lostAfterSeconds = 5
const drainTimeoutMs = 7_000
/** Milliseconds after which the process exits, even if work is left. */
const stopTimeoutMs = 9_000

export interface ServerSettings {
  readonly port: number
  readonly host: string
  readonly log: 'off' | 'errors' | 'all'
  /** The event with which the log starts; with it, the log has administrative changes, and ends with `stopped`. */
  readonly opened?: Partial<ServeEvent>
  readonly api: PartnerApiOptions
  /** Where metrics and readiness are served; default nowhere. */
  readonly metrics?: MetricsAddress & { readonly by: 'partner' | undefined }
  /** Seconds from the signal until connections are refused. */
  readonly drainDelay?: number
  /** Share the port with other processes, default false. */
  readonly reusePort?: boolean
  /** Whether to end when the store has become unusable, as a file does that was replaced. Default false. */
  readonly endsWhenLost?: boolean
  /** The settings of deliveries; without them, nothing is delivered. */
  readonly webhooks?: WebhookOptions
}

/** Serves a store until SIGTERM, SIGINT or SIGHUP, then lets pending requests finish, for up to 7 s. */
export async function serveUntilStopped(
  store: Store,
  settings: ServerSettings,
  onListening: (url: string, metricsUrl?: string) => Promise<void>,
): Promise<void> {
  const { api, opened, drainDelay = 0 } = settings
  const { replicaName = `${hostname()}:${process.pid}` } = api
  const stop = createStopSignal()
  const stopped = once(stop, 'abort')
  const log = createLog(opened === undefined ? 'off' : settings.log)
  const { server, webhooks, measured } = await startServer(
    store,
    { ...settings, api: { ...api, replicaName } },
    opened === undefined ? withoutChanges(log.write) : log.write,
    stop,
  )
  // Not before: a server that cannot listen ends with one sentence.
  log.event('store_opened', opened)
  if (BLOCKED_PORTS.has(server.port)) {
    const warning =
      `Browsers and fetch refuse to connect to port ${server.port}. Choose another one with --port.`
    log.event('port_blocked', { level: 'warn', warning })
  }
  let listener: RunningServer | undefined
  try {
    if (measured) listener = await listenForMetrics(measured, settings.metrics!)
    await onListening(server.url, listener?.url)
    await (settings.endsWhenLost ? Promise.race([stopped, untilLost(store)]) : stopped)
    const pause = delay(drainDelay * 1000, undefined, { ref: false })
    void server.close(pause)
    await pause
  } finally {
    setTimeout(() => {
      log.flush()
      process.exit()
    }, stopTimeoutMs).unref()
    await Promise.all([server.close(), webhooks?.close(drainTimeoutMs)])
    await listener?.close()
    log.event('stopped')
    log.flush()
  }
}

/** The demo prints what it changes. */
function withoutChanges(write: (event: LogEvent) => void): (event: LogEvent) => void {
  return (event) => {
    if (event.event !== 'administration') write(event)
  }
}

/** Aborted by the first signal, after which a second one ends the process at once. */
function createStopSignal(): AbortSignal {
  const controller = new AbortController()
  const stopOnSignal = (): void => {
    for (const signal of interrupts) process.off(signal, stopOnSignal)
    controller.abort()
  }
  for (const signal of interrupts) process.on(signal, stopOnSignal)
  return controller.signal
}

/** Starts the service and, with a key for their secrets, the delivery of webhooks. */
async function startServer(
  store: Store,
  { port, host, log: level, api: options, metrics: metricsAddress, reusePort = false, webhooks: given }:
    ServerSettings,
  write: (event: LogEvent) => void,
  stop: AbortSignal,
) {
  const metricsModule = metricsAddress && await import('../../adapters/metrics.ts')
  const metrics = metricsModule?.createMetrics({ by: metricsAddress?.by })
  const { registeringStore, registered } = registerAtOnce(store)
  const observers = [...options.observers ?? []]
  if (metrics !== undefined) observers.push(metrics.observer)
  const log = level === 'off' ? () => {} : write
  const logLevel = level === 'all' ? 'all' : 'errors'
  const api = createPartnerApi({ store: registeringStore }, { ...options, log, logLevel, observers })
  await registered()
  const rootApi = withRootRedirect(api, options, level === 'all' ? write : () => {})
  const address = { port, host, drainTimeoutMs, reusePort }
  const server = await listen(rootApi, '--port', address).catch(async (error) => {
    // --wait would wait for it.
    await api.close()
    throw error
  })
  const { maxStalenessMs } = options
  const webhooks = given && startWebhooks(store, { ...given, log, maxStalenessMs })
  if (metrics === undefined) return { server, webhooks }
  if (webhooks) metrics.add(() => metricsModule!.measureWebhooks(store, webhooks))
  const measured: Measured = {
    sample: metrics.collect,
    async isReady() {
      const { isStoreAvailable, revisionAgeMs = Infinity, maxRevisionAgeMs } = await internalsOf(api)
        .measurements()
      return (isStoreAvailable || revisionAgeMs < maxRevisionAgeMs) && !stop.aborted
    },
  }
  return { server, webhooks, measured }
}

/** Rejects when the revision has been unreadable for some seconds, so that a supervisor starts the server again. */
async function untilLost(store: Store): Promise<never> {
  for (let failures = 0;;) {
    await delay(1_000, undefined, { ref: false })
    try {
      await store.revision()
      failures = 0
    } catch (error) {
      if (++failures === lostAfterSeconds) throw error
    }
  }
}

/** Traces, if an OpenTelemetry SDK has registered itself in this process. Loads nothing otherwise. */
export async function importTracing(store: StoreAddress['kind']): Promise<readonly Observer[]> {
  const registered = Reflect.get(globalThis, Symbol.for('opentelemetry.js.api.1'))
  if (registered?.trace === undefined) return []
  const { createTracing } = await import('../../adapters/opentelemetry.ts')
  const databaseSystem = store === 'postgres' ? 'postgresql' : 'sqlite'
  return [createTracing({ databaseSystem, scheme: 'http' })]
}

/**
 * Registers the server before its first request: commands with --wait name it, and it fails early. With a read-only
 * role it would report itself healthy, and answer 503 to every key.
 */
function registerAtOnce(store: Store) {
  const { replicas } = store
  let registered: MaybePromise<void>
  const register = (replica: Replica) => {
    const registration = replicas.register(replica)
    registered = registration.registered()
    return registration
  }
  const registeringStore = { ...store, replicas: { ...replicas, register } }
  return { registeringStore, registered: () => registered }
}
