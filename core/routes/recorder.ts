import type { RecordedEndpoint, Store } from '../ports/store.ts'

/**
 * Records endpoints that the store has not, or has otherwise. Built-in ones are recorded below a base path, or to replace
 * what an earlier service has recorded below another one.
 */
export async function recordEndpoints(
  store: Pick<Store, 'recordEndpoints' | 'listEndpoints'>,
  builtIn: readonly RecordedEndpoint[],
  own: readonly RecordedEndpoint[],
  basePath: string,
): Promise<void> {
  if (store.listEndpoints == null) return
  const stored = new Map(
    (await store.listEndpoints()).map((each) => [each.name, JSON.stringify(toRecord(each))]),
  )
  const moved = builtIn.filter(({ name }) => basePath !== '' || stored.has(name))
  const changed = [...moved, ...own].map(toRecord)
    .filter((each) => stored.get(each.name) !== JSON.stringify(each))
  if (changed.length > 0) await store.recordEndpoints!(changed)
}

/** Without the other members of an endpoint. */
function toRecord({ name, method, path, scope, limits }: RecordedEndpoint): RecordedEndpoint {
  return { name, method, path, scope, limits }
}
