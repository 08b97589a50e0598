import { ignoreFailure } from '../lib/promise.ts'
import { createWriteBehind } from '../lib/write-behind.ts'
import type { RecordedEndpoint, Store } from '../ports/store.ts'
import type { Route } from './route.ts'
import { ROUTES, type RouteTable } from './router.ts'

/** Soon after the start, and with the endpoints that are added meanwhile. */
const writeDelayMs = 100

/**
 * Records the endpoints of the host's own in the store, in the background; with a base path, the built-in ones, too.
 *
 * @param routes Those of the service; may be added to before a `wake`.
 * @param onFailure Called for the first of several failed attempts in a row.
 */
export function createEndpointRecorder(
  store: Pick<Store, 'recordEndpoints' | 'listEndpoints'>,
  routes: readonly Route[],
  { endpointOf }: Pick<RouteTable, 'endpointOf'>,
  basePath: string,
  onFailure: (error: unknown) => void,
) {
  /** How many routes have been recorded; the built-in ones alone need not be. */
  let recorded = basePath === '' ? ROUTES.length : 0
  let isFailing = false
  const isDone = () => routes.length === recorded || store.listEndpoints == null

  const writeBehind = createWriteBehind(writeDelayMs, async () => {
    if (isDone()) return true
    const [count, own] = [routes.length, routes.slice(ROUTES.length)]
    try {
      const stored = new Map((await store.listEndpoints!()).map((each) => [each.name, textOf(each)]))
      // What an earlier service has recorded below another base path is replaced.
      const builtIn = ROUTES.filter(({ name }) => basePath !== '' || stored.has(name))
      const changed = [...builtIn, ...own].map(toRecord)
        .filter((endpoint) => stored.get(endpoint.name) !== textOf(endpoint))
      if (changed.length > 0) await store.recordEndpoints!(changed)
      recorded = count
      isFailing = false
    } catch (error) {
      if (!isFailing) onFailure(error)
      isFailing = true
    }
    return isDone()
  })

  function toRecord(route: Route): RecordedEndpoint {
    const { name, method, path, scope } = endpointOf(route)!
    return { name, method, path, scope, limits: route.access === 'key' ? route.limits : [] }
  }

  return {
    /** Schedules a write unless everything is recorded. A Worker has no timers before its first request: it flushes. */
    wake(): void {
      if (!isDone()) ignoreFailure(writeBehind.wake)
    },
    flush: writeBehind.flush,
  }
}

function textOf({ name, method, path, scope, limits }: RecordedEndpoint): string {
  return JSON.stringify([name, method, path, scope, limits])
}
