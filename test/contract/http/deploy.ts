/** Puts services together for the suites. */
import { createPartnerApi, type PartnerApi } from '../../../core/api.ts'
import type { Store } from '../../../core/ports.ts'
import { fillWorld } from '../../world.ts'
import { type Deploy, FAR_LIMITS, type Service, type Wire } from './service.ts'
import { breaches, schemaBreaches } from './universals.ts'

/** A store as the operator has it open, and as the service has it open: two connections where there are any. */
export interface OpenStores {
  readonly operator: Store
  served(): Promise<Store>
  close(): Promise<void>
}

/** A service that can be reached. */
export interface Mounted {
  readonly send: Wire
  readonly verbatim: boolean
  close(): Promise<void>
}

/** Deploys to wherever `mount` puts a service. */
export function deployTo(
  openStores: () => Promise<OpenStores>,
  mount: (api: PartnerApi) => Promise<Mounted>,
): Deploy {
  return async (settings, body) => {
    const stores = await openStores()
    try {
      const world = await fillWorld(stores.operator)
      const api = createPartnerApi({ store: await stores.served() }, {
        limits: FAR_LIMITS,
        maxStalenessMs: 0,
        ...settings,
      })
      const mounted = await mount(api)
      const name = settings.serviceName ?? 'service'
      const title = name.replace(/(?:^|-)[a-z]/g, (start) => start.toUpperCase())
      const service: Service = {
        root: `/${name}`,
        names: { realm: name, key: `X-${title}-Partner-Key`, version: `${title}-Version` },
        world,
        routes: api.routes,
        verbatim: mounted.verbatim,
        async send(ask) {
          const heard = await mounted.send(ask)
          const found = breaches(heard, `${title}-Version`, ask.target)
          const method = ask.method ?? 'GET'
          if (heard.status === 200 && method !== 'HEAD') {
            found.push(...schemaBreaches(ask.target, heard, method, api.routes))
          }
          if (found.length === 0) return heard
          throw new Error(`${method} ${ask.target.slice(0, 200)} → ${heard.status}: ${found.join('; ')}`)
        },
      }
      try {
        await body(service)
      } finally {
        await mounted.close()
        await api.close()
      }
    } finally {
      await stores.close()
    }
  }
}
