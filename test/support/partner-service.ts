/** A service in this process, with access to its store. */
import { createPartnerApi, type PartnerApi } from '../../core/api.ts'
import type { PartnerApiPorts } from '../../core/timed-ports.ts'
import { internalsOf } from '../../core/internals.ts'
import type { Signup } from '../../core/ports/signups.ts'
import type { Store } from '../../core/ports/store.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import type { OpenStores } from '../contract/http/deploy.ts'
import {
  FAR_LIMITS,
  type TestRequest,
  type TestResponse,
  VERSION,
  withKey,
} from '../contract/http/service.ts'
import { conventionViolations, schemaViolations } from '../contract/http/universals.ts'
import { fetchTransport } from '../contract/http/wires.ts'
import { signup } from '../contract/store/samples.ts'
import { fillWorld, type KeyName, type World } from './world.ts'

/** Options of a request. */
export interface ServiceRequestOptions extends Omit<Partial<TestRequest>, 'target'> {
  readonly key?: KeyName | { readonly text: string }
}

/** A running service and its store. */
export interface PartnerService {
  readonly api: PartnerApi
  readonly store: Store
  readonly world: World
  /** Sends a request below `/service`; throws if the response breaks a convention of section 1. */
  request(path: string, more?: ServiceRequestOptions): Promise<TestResponse>
  /** Posts a value as JSON, or text unmodified. */
  post(path: string, body: unknown, more?: ServiceRequestOptions): Promise<TestResponse>
}

/** Fills a store and serves it. */
export async function serveStore(
  store: Store,
  options: PartnerApiOptions = {},
  ports: Omit<PartnerApiPorts, 'store'> = {},
): Promise<PartnerService> {
  const world = await fillWorld(store)
  const api = createPartnerApi({ ...ports, store }, { limits: FAR_LIMITS, maxStalenessMs: 0, ...options })
  const wire = fetchTransport(api.fetch)

  const request: PartnerService['request'] = async (path, { key = 'demo full', headers, ...more } = {}) => {
    const secret = typeof key === 'string' ? world.keys[key] : key
    const sent = { target: `/service${path}`, headers: { ...withKey(secret), ...headers }, ...more }
    const response = await wire(sent)
    const found = conventionViolations(response, 'Service-Version')
    const method = more.method ?? 'GET'
    if (response.status <= 201 && method !== 'HEAD') {
      found.push(...schemaViolations(sent.target, response, method, internalsOf(api).routes))
    }
    if (found.length === 0 && response.headers.get('service-version') === VERSION) return response
    throw new Error(`${method} ${path.slice(0, 200)} → ${response.status}: ${found.join('; ')}`)
  }

  return {
    api,
    store,
    world,
    request,
    post: (path, body, { headers, ...more } = {}) =>
      request(path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        headers: { 'content-type': 'application/json', ...headers },
        ...more,
      }),
  }
}

/** Calls `body` with a service on a new world, and stops it. */
export async function withService(
  open: () => Promise<OpenStores>,
  body: (service: PartnerService) => Promise<void>,
  options: PartnerApiOptions = {},
): Promise<void> {
  const stores = await open()
  const service = await serveStore(stores.operator, options)
  try {
    await body(service)
  } finally {
    await service.api.close()
    await stores.close()
  }
}

let serial = 0
/** A signup whose personal data no report may contain. */
export function canary({ world }: Pick<PartnerService, 'world'>, more: Partial<Signup>): Signup {
  return signup(String(serial++), {
    partner: 'demo',
    keyId: world.keys['demo full'].id,
    createdAt: Date.now(),
    email: 'canary-local@canary-domain.example',
    name: 'Canaria Nominata',
    company: 'Canary Company',
    message: 'Canary message',
    metadata: { canary: 'Canary value' },
    ...more,
  })
}

/** The fields that a validation problem names, sorted, each checked for a reason. */
export function invalidFields({ json }: TestResponse): string[] {
  const errors: readonly { parameter?: string; pointer?: string; detail: string }[] = json.errors ?? []
  return errors.map(({ parameter, pointer, detail }) =>
    typeof detail === 'string' && detail !== '' ? parameter ?? pointer ?? 'nowhere' : 'without a reason'
  ).sort()
}
