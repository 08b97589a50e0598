/** The listener of `serve --metrics`: `/metrics`, and `/ready` and `/live` for supervisors. */
import type { MetricsSample } from '../../adapters/metrics.ts'
import type { RunningServer, ServableApi } from '../../adapters/runtimes/server.ts'
import { byteLength, type HttpRequest, type HttpResponse } from '../../core/http/message.ts'
import { PROBLEMS } from '../../core/http/problem.ts'
import { INTERNALS, type Servable } from '../../core/internals.ts'
import { listen } from './listen.ts'

/** Where metrics and readiness are served. */
export interface MetricsAddress {
  readonly host: string
  readonly port: number
}

/** What the listener of metrics reads. */
export interface Measured {
  sample(): Promise<MetricsSample>
  /** Whether requests are accepted, and the store responds, or what is cached may be used without it. */
  isReady(): Promise<boolean>
}

/** @throws {CliError} `address_unavailable` */
export async function listenForMetrics(
  { sample, isReady }: Measured,
  { host, port }: MetricsAddress,
): Promise<RunningServer> {
  const { renderMetrics } = await import('../../adapters/metrics.ts')

  async function answer({ method, target }: HttpRequest): Promise<HttpResponse> {
    if (method !== 'GET' && method !== 'HEAD') return respond(405, 'The methods are GET and HEAD.\n')
    const path = target.replace(/\?.*/s, '')
    if (path === '/live') return respond(200, 'live\n')
    if (path === '/ready') return await isReady() ? respond(200, 'ready\n') : respond(503, 'not ready\n')
    if (path !== '/metrics') return respond(404, 'The paths are /metrics, /ready and /live.\n')
    const { text, type } = await renderMetrics(await sample())
    return respond(200, text, type)
  }

  const api: ServableApi & Servable = {
    async handle(request) {
      const response = await answer(request).catch((error) => respond(500, `${error}\n`))
      return request.method === 'HEAD' ? { ...response, body: undefined } : response
    },
    async close() {},
    [INTERNALS]: {
      refuse: (code) => respond(PROBLEMS[code].status, `${PROBLEMS[code].detail}\n`),
      connectionsRefused() {},
    },
  }
  return await listen(api, '--metrics', { host, port, drainTimeoutMs: 500 })
}

function respond(status: number, body: string, type = 'text/plain; charset=utf-8'): HttpResponse {
  const length = String(byteLength(body))
  const headers = ['Content-Type', type, 'Content-Length', length, 'Cache-Control', 'no-store']
  if (status === 405) headers.push('Allow', 'GET, HEAD')
  return { status, headers, body }
}
