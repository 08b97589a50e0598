import type { HandlerResult } from '../http/message.ts'
import { rfc3339 } from '../lib/time.ts'
import type { Route } from './route.ts'

export const health: Route = {
  name: 'health',
  access: 'open',
  method: 'GET',
  path: '/health',
  summary: 'Check health',
  problems: ['store_unavailable'],
  handle: ({ checkStore, staleness, clockSkewMs }) => {
    const healthy = (): HandlerResult => ({ data: { status: 'ok', ...skew() } })
    const skew = () => {
      const ms = clockSkewMs()
      return ms === undefined ? {} : { clock_skew_ms: ms }
    }
    const sick = (error: unknown): HandlerResult => {
      const outage = staleness.staleWindow()
      if (outage === undefined) throw error
      return {
        data: { status: 'stale', since: rfc3339(outage.since), until: rfc3339(outage.until), ...skew() },
      }
    }
    try {
      const checked = checkStore()
      return checked instanceof Promise ? checked.then(healthy, sick) : healthy()
    } catch (error) {
      return sick(error)
    }
  },
}
