import { hostname } from 'node:os'
import process from 'node:process'
import { setTimeout } from 'node:timers'
import type { ListenOptions, RunningServer, ServableApi } from '../adapters/runtimes/server.ts'
import { createPartnerApi } from '../core/api.ts'
import { API_VERSION, createServiceNames } from '../core/http/headers.ts'
import { createRequestIds } from '../core/lib/ids.ts'
import type { LogEvent } from '../core/log.ts'
import type { Store } from '../core/ports/store.ts'
import type { PartnerApiOptions } from '../core/settings.ts'
import { CliError } from './errors.ts'
import { createLog, type ServeEvent } from './output/log.ts'

/** Where to listen, and how to serve. */
export interface ServeSettings {
  readonly port: number
  readonly host: string
  readonly log: 'off' | 'errors' | 'all'
  /** What the log says of the store before anything else. */
  readonly opened?: Partial<ServeEvent>
  readonly api: PartnerApiOptions
}

/** Milliseconds for requests that are under way when the server stops. */
const drainTimeoutMs = 7_000
/** Milliseconds after which the process ends, whatever is still written down or keeps the runtime alive. */
const stopTimeoutMs = 9_000

/**
 * Serves a store until SIGTERM or SIGINT, then lets requests under way end, for 10 s at most.
 *
 * @param onListening Called with the address once connections are accepted.
 * @throws {CliError} `address_unavailable` when the address can't be had.
 * @throws what the store throws, when it does not take in this server.
 */
export async function serveUntilStopped(
  store: Store,
  { port, host, log: level, opened, api: options }: ServeSettings,
  onListening: (url: string) => Promise<void>,
): Promise<void> {
  const stopped = new Promise<void>((resolve) => {
    // A second signal finds the default again, and ends the process at once.
    process.once('SIGTERM', resolve)
    process.once('SIGINT', resolve)
  })
  const { replicaName = `${hostname()}:${process.pid}` } = options
  await checkCanJoin(store, replicaName)
  const log = createLog()
  const logEvent = (event: ServeEvent['event'], more: Partial<ServeEvent> = {}) => {
    if (opened === undefined || level === 'off') return
    log.write({ time: new Date().toISOString(), level: 'info', event, ...more })
  }
  logEvent('store_opened', opened)
  const api = createPartnerApi(
    { store },
    {
      ...options,
      replicaName,
      ...(level !== 'off' && { log: log.write, logLevel: level }),
    },
  )
  const serve = await loadAdapter()
  const rootApi = withRootRedirect(api, options.serviceName, level === 'all' ? log.write : () => {})
  const server = await startListening(() => serve(rootApi, { port, host, drainTimeoutMs }), port, host)
  try {
    await onListening(server.url)
    await stopped
  } finally {
    setTimeout(() => {
      log.flush()
      process.exit()
    }, stopTimeoutMs).unref()
    await server.drain()
    logEvent('stopped')
    log.flush()
  }
}

/** `GET /` leads to the reference page. A service that is mounted elsewhere leaves `/` to its host. */
function withRootRedirect(
  api: ServableApi,
  serviceName = 'service',
  write: (event: LogEvent) => void,
): ServableApi {
  const nextRequestId = createRequestIds()
  const { versionHeader } = createServiceNames(serviceName)
  const redirectHeaders = [
    'Location',
    `/${serviceName}/docs`,
    'Cache-Control',
    'no-store',
    'Content-Length',
    '0',
  ]
  const commonHeaders = ['X-Content-Type-Options', 'nosniff', versionHeader, API_VERSION]
  return {
    ...api,
    handle(exchange) {
      const { method, target } = exchange
      const isRoot = target === '/' || target.startsWith('/?')
      if (!isRoot || method !== 'GET' && method !== 'HEAD') return api.handle(exchange)
      const id = nextRequestId()
      const time = new Date().toISOString()
      write({ time, level: 'info', event: 'request', request_id: id, method, path: '/', status: 302 })
      return {
        status: 302,
        headers: [...redirectHeaders, ...commonHeaders, 'X-Request-Id', id],
        body: undefined,
      }
    },
  }
}

/** With a role that may only read, a server would listen, call itself healthy, and answer 503 to every key. */
async function checkCanJoin({ replicas, revision }: Store, name: string): Promise<void> {
  const confirm = async () => await revision()
  const membership = replicas?.register({ name, leaseMs: 1, revalidateEveryMs: 1_000, revalidate: confirm })
  try {
    await membership?.registered()
  } finally {
    await membership?.deregister()
  }
}

type Serve = (api: ServableApi, options: ListenOptions) => Promise<RunningServer>

/** The adapter of the runtime that this program runs on; no other one is loaded. */
async function loadAdapter(): Promise<Serve> {
  if (process.versions['bun'] !== undefined) return (await import('../adapters/runtimes/bun.ts')).serve
  if (process.versions['deno'] !== undefined) return (await import('../adapters/runtimes/deno.ts')).serve
  return (await import('../adapters/runtimes/node.ts')).serve
}

async function startListening<T>(start: () => Promise<T>, port: number, host: string): Promise<T> {
  try {
    return await start()
  } catch (error) {
    const cause = error instanceof Error ? error.cause as NodeJS.ErrnoException | undefined : undefined
    if (cause?.code === undefined) throw error
    throw new CliError(1, 'address_unavailable', describeListenError(cause.code, port, host))
  }
}

function describeListenError(code: string, port: number, host: string): string {
  const address = `Port ${port} on ${host}`
  if (code === 'EADDRINUSE') {
    return `${address} is in use. Choose another one with --port, or --port 0 for any that is free.`
  }
  if (code === 'EACCES') return `${address} may not be used by this account. Ports from 1024 up may.`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `This machine has no address ${host}.`
  return `${address} can't be listened on (${code}).`
}
