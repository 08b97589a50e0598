/** Sites of the matrix: child processes of each runtime that serve copies of one template. */
import type { Site } from '../contract/http/deploy.ts'
import type { Quirk } from '../contract/http/service.ts'
import { socketTransport } from '../contract/http/wires.ts'
import { worldOn } from '../support/world.ts'
import type { ServingChild } from './child.ts'
import { openStore } from './open-store.ts'
import type { Copied } from './template.ts'

/** A store that the operator opens in this process, and the service in a child. */
export function siteOn(
  child: ServingChild,
  template: Copied,
  quirks: readonly Quirk[],
): () => Promise<Site> {
  return async () => {
    const address = await template.copy()
    const store = await openStore(address)
    return {
      world: worldOn(store, template.filling),
      async start(options) {
        const place = await child.serve(address, options)
        const wire = socketTransport(place.origin, place.name)
        return {
          send: wire.send,
          quirks: new Set(quirks),
          async close() {
            wire.close()
            await child.stop(place)
          },
        }
      },
      async close() {
        await store.close()
        await template.discard(address)
      },
    }
  }
}
