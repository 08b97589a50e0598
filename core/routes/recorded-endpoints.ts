import type { RecordedEndpoint, Store } from '../ports/store.ts'

type ServiceEndpoint = Omit<RecordedEndpoint, 'service'>

/**
 * Records the endpoints of a service that the store does not have, or has with other members. Built-in ones are
 * recorded below a base path, or to replace what the service has recorded below another one.
 */
export async function recordEndpoints(
  store: Pick<Store, 'recordEndpoints' | 'listEndpoints'>,
  service: string,
  builtIn: readonly ServiceEndpoint[],
  own: readonly ServiceEndpoint[],
  basePath: string,
): Promise<void> {
  const stored = new Map<string, string>()
  for (const each of await store.listEndpoints()) {
    if (each.service === service) stored.set(each.name, JSON.stringify(toRecord(service, each)))
  }
  const moved = builtIn.filter(({ name }) => basePath !== '' || stored.has(name))
  const changed = [...moved, ...own].map((endpoint) => toRecord(service, endpoint))
    .filter((each) => stored.get(each.name) !== JSON.stringify(each))
  if (changed.length > 0) await store.recordEndpoints(changed)
}

/** The members of an endpoint that are recorded. */
function toRecord(
  service: string,
  { name, method, path, scope, limits }: ServiceEndpoint,
): RecordedEndpoint {
  return { service, name, method, path, scope, limits }
}
