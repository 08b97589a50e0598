import type { ServableApi } from '../../adapters/runtimes/server.ts'
import { createServiceNames } from '../../core/http/headers.ts'
import { internalsOf } from '../../core/internals.ts'
import { createRequestIds } from '../../core/lib/ids.ts'
import type { LogEvent } from '../../core/log.ts'
import { API_VERSION } from '../../core/model.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'

/** Redirects `/` to the reference page. A service that is mounted elsewhere leaves `/` to its host. */
export function withRootRedirect(
  api: ServableApi,
  { serviceName = 'service', basePath = '', deployment }: PartnerApiOptions,
  write: (event: LogEvent) => void,
): ServableApi {
  const [{ url } = { url: basePath || '/' }] = deployment?.servers ?? []
  const base = new URL(url, 'http://localhost').pathname.replace(/\/+$/, '')
  const nextRequestId = createRequestIds()
  const { versionHeader, versionHeaderLowerCase } = createServiceNames(serviceName)
  const allow = ['Allow', 'GET, HEAD, OPTIONS']
  const common = ['X-Content-Type-Options', 'nosniff', versionHeader, API_VERSION]
  const location = `${base}/${serviceName}/docs`
  const headers = ['Location', location, 'Cache-Control', 'no-store', 'Content-Length', '0', ...common]
  return {
    ...api,
    handle(request) {
      const { method, target } = request
      const isRoot = target === '/' || target.startsWith('/?')
      if (!isRoot) return api.handle(request)
      if (method === 'OPTIONS') {
        const fields = [...allow, ...common, 'X-Request-Id', nextRequestId()]
        return { status: 204, headers: fields, body: undefined }
      }
      if (method !== 'GET' && method !== 'HEAD') {
        const refused = internalsOf(api).refuse('method_not_allowed', request.address)
        return { ...refused, headers: [...refused.headers, ...allow] }
      }
      const version = request.header(versionHeaderLowerCase)
      if (version !== undefined && version !== API_VERSION) {
        const refused = internalsOf(api).refuse('unknown_version', request.address)
        return method === 'HEAD' ? { ...refused, body: undefined } : refused
      }
      const id = nextRequestId()
      const time = new Date().toISOString()
      write({ time, level: 'info', event: 'request', request_id: id, method, path: '/', status: 302 })
      return { status: 302, headers: [...headers, 'X-Request-Id', id], body: undefined }
    },
  }
}
