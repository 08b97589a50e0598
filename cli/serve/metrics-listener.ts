import { type MetricsSample, renderMetrics } from '../../adapters/metrics.ts'
import type { ServableApi } from '../../adapters/runtimes/server.ts'
import type { PartnerApi } from '../../core/api.ts'
import { byteLength, type HttpRequest, type HttpResponse } from '../../core/http/message.ts'
import { PROBLEMS } from '../../core/http/problem.ts'
import type { MaybePromise } from '../../core/lib/promise.ts'

/** What the listener of metrics reads: of one server, or of the workers of a supervisor. */
export interface MetricsListenerSources {
  /** The metrics of each process. */
  sample(): Promise<readonly MetricsSample[]>
  /** Whether requests are accepted and can be answered. */
  isReady(): MaybePromise<boolean>
}

/** Answers `/metrics`, `/ready` and `/live`, for a listener of its own. */
export function createMetricsApi({ sample, isReady }: MetricsListenerSources): ServableApi {
  async function answer(request: HttpRequest): Promise<HttpResponse> {
    const { method, target } = request
    if (method !== 'GET' && method !== 'HEAD') return respond(405, 'The methods are GET and HEAD.\n')
    const path = target.replace(/\?.*/s, '')
    if (path === '/live') return respond(200, 'live\n')
    if (path === '/ready') return await isReady() ? respond(200, 'ready\n') : respond(503, 'not ready\n')
    if (path !== '/metrics') return respond(404, 'The paths are /metrics, /ready and /live.\n')
    const { text, type } = await renderMetrics(await sample())
    return respond(200, text, type)
  }

  return {
    async handle(request) {
      const response = await answer(request).catch((error) => respond(500, `${error}\n`))
      return request.method === 'HEAD' ? { ...response, body: undefined } : response
    },
    refuse: (code) => respond(PROBLEMS[code].status, `${PROBLEMS[code].detail}\n`),
    connectionsRefused() {},
    async close() {},
  }
}

/** Whether the store responds, or what is cached may be used without it. */
export async function isReady(api: Pick<PartnerApi, 'measurements'>): Promise<boolean> {
  const { isStoreAvailable, revisionAgeMs = Infinity, maxRevisionAgeMs } = await api.measurements()
  return isStoreAvailable || revisionAgeMs < maxRevisionAgeMs
}

function respond(status: number, body: string, type = 'text/plain; charset=utf-8'): HttpResponse {
  const headers = [
    'Content-Type',
    type,
    'Content-Length',
    String(byteLength(body)),
    'Cache-Control',
    'no-store',
    ...status === 405 ? ['Allow', 'GET, HEAD'] : [],
  ]
  return { status, headers, body }
}
