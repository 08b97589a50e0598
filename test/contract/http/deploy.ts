/** Puts services together for the suites. */
import { createPartnerApi, type PartnerApi } from '../../../core/api.ts'
import type { Store } from '../../../core/ports/store.ts'
import { compileRoutes, ROUTES } from '../../../core/routes/router.ts'
import type { PartnerApiOptions } from '../../../core/settings.ts'
import { fillWorld, type World } from '../../support/world.ts'
import type { Quirk } from './quirks.ts'
import { type Deploy, FAR_LIMITS, type Service, type Settings, type Wire } from './service.ts'
import { breaches, schemaBreaches } from './universals.ts'

/** A store as the operator has it open, and as the service has it open: two connections where there are any. */
export interface OpenStores {
  readonly operator: Store
  readonly served: Store
  close(): Promise<void>
}

/** A service that can be reached. */
export interface Mounted {
  readonly send: Wire
  /** Where its runtime differs. */
  readonly quirks: ReadonlySet<Quirk>
  close(): Promise<void>
}

/** A store that has been filled, and a way to have it served. */
export interface Site {
  readonly world: World
  /** Serves what the store holds. */
  start(options: PartnerApiOptions): Promise<Mounted>
  close(): Promise<void>
}

/** Deploys to wherever `mount` puts a service. */
export function deployTo(
  openStores: () => Promise<OpenStores>,
  mount: (api: PartnerApi) => Promise<Mounted>,
): Deploy {
  return deployAt(async () => {
    const stores = await openStores()
    return {
      world: await fillWorld(stores.operator),
      async start(options) {
        const api = createPartnerApi({ store: stores.served }, options)
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

/** Deploys to sites that `open` makes, a new one each time. */
export function deployAt(open: () => Promise<Site>): Deploy {
  return async (settings, body) => {
    const site = await open()
    try {
      const mounted = await site.start({ limits: FAR_LIMITS, maxStalenessMs: 0, ...settings })
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
  { serviceName: name = 'service' }: Settings,
): Service {
  const title = name.replace(/(?:^|-)[a-z]/g, (start) => start.toUpperCase())
  const routes = compileRoutes(ROUTES, name).endpoints
  return {
    root: `/${name}`,
    names: { realm: name, key: `X-${title}-Partner-Key`, version: `${title}-Version` },
    world,
    routes,
    quirks,
    async send(ask) {
      const heard = await send(ask)
      const found = breaches(heard, `${title}-Version`, ask.target)
      const method = ask.method ?? 'GET'
      if (heard.status === 200 && method !== 'HEAD') {
        found.push(...schemaBreaches(ask.target, heard, method, routes))
      }
      if (found.length === 0) return heard
      throw new Error(`${method} ${ask.target.slice(0, 200)} → ${heard.status}: ${found.join('; ')}`)
    },
  }
}
