/** Deploys services for the suites. */
import { createPartnerApi, type PartnerApi } from '../../../core/api.ts'
import type { PartnerApiPorts } from '../../../core/timed-ports.ts'
import { modulesWith } from '../../../core/model.ts'
import type { Store } from '../../../core/ports/store.ts'
import { compileRoutes, ROUTES } from '../../../core/routes/router.ts'
import {
  OWN_ENDPOINTS,
  OWN_MODULES,
  resolveOptions,
  type ServedOptions,
} from '../../support/own-endpoints.ts'
import { fillWorld, type World } from '../../support/world.ts'
import { type Deploy, FAR_LIMITS, type Quirk, type Send, type Service, type Settings } from './service.ts'
import { conventionViolations, schemaViolations } from './universals.ts'

/** The store of the operator and that of the service: two connections if the store has connections. */
export interface OpenStores {
  readonly operator: Store
  readonly served: Store
  close(): Promise<void>
}

/** A reachable service. */
export interface Mounted {
  readonly send: Send
  /** Differences of its runtime. */
  readonly quirks: ReadonlySet<Quirk>
  close(): Promise<void>
}

/** A filled store that can be served. */
export interface Site {
  readonly world: World
  /** Starts a service on the store. */
  start(options: ServedOptions): Promise<Mounted>
  close(): Promise<void>
}

/** Deploys services on new stores through `mount`. */
export function deployTo(
  openStores: () => Promise<OpenStores>,
  mount: (api: PartnerApi) => Promise<Mounted>,
  ports: Omit<PartnerApiPorts, 'store'> = {},
): Deploy {
  return deployAt(async () => {
    const stores = await openStores()
    return {
      world: await fillWorld(stores.operator),
      async start(options) {
        const api = createPartnerApi({ ...ports, store: stores.served }, resolveOptions(options))
        const mounted = await mount(api)
        return {
          ...mounted,
          async close() {
            await mounted.close()
            await api.close()
          },
        }
      },
      close: stores.close,
    }
  })
}

/** Deploys each service to a new site. */
export function deployAt(open: () => Promise<Site>): Deploy {
  return async (settings, body) => {
    const site = await open()
    try {
      if (settings.ownEndpoints) { for (const module of OWN_MODULES) await site.world.modules.define(module) }
      // A busy machine pauses for a second.
      const mounted = await site.start({
        limits: FAR_LIMITS,
        maxStalenessMs: 0,
        storeTimeoutMs: 50_000,
        ...settings,
      })
      try {
        await body(serviceAt(mounted, site.world, settings))
      } finally {
        await mounted.close()
      }
    } finally {
      await site.close()
    }
  }
}

function serviceAt(
  { send, quirks }: Mounted,
  world: World,
  { serviceName: name = 'service', basePath = '', ownEndpoints }: Settings,
): Service {
  const title = name.replace(/(?:^|-)[a-z]/g, (start) => start.toUpperCase())
  const table = [...ROUTES]
  if (ownEndpoints) { for (const one of OWN_ENDPOINTS) one.addTo(table, modulesWith(OWN_MODULES)) }
  const routes = compileRoutes(table, name, basePath).endpoints
  return {
    root: `${basePath}/${name}`,
    names: { realm: name, key: `X-${title}-Partner-Key`, version: `${title}-Version` },
    world,
    routes,
    quirks,
    async send(request) {
      const response = await send(request)
      const found = conventionViolations(response, `${title}-Version`, request.target)
      const method = request.method ?? 'GET'
      const isPage = /\/claim\/\w+$/.test(request.target) && response.json === undefined
      if (response.status === 200 && method !== 'HEAD' && !isPage) {
        found.push(...schemaViolations(request.target, response, method, routes))
      }
      if (found.length === 0) return response
      throw new Error(`${method} ${request.target.slice(0, 200)} → ${response.status}: ${found.join('; ')}`)
    },
  }
}
