/** A Worker with a store of its own making, and the key to it told at `/key`. */
import {
  createKeyAdministration,
  createPartnerAdministration,
  createPartnerApi,
  MODULE_NAMES,
} from 'partner-api'
import { createMemoryStore } from 'partner-api/memory'
import { createWorker } from 'partner-api/workers'

let key

const worker = createWorker(async () => {
  const store = createMemoryStore()
  const operator = { actor: 'consumer' }
  await createPartnerAdministration(store, operator).create({
    slug: 'acme',
    name: 'Acme',
    modules: MODULE_NAMES,
  })
  const issued = await createKeyAdministration(store, operator)
    .issue({ partner: 'acme', name: 'Website', environment: 'live' })
  key = issued.text
  return createPartnerApi({ store })
})

export default {
  async fetch(request, env, context) {
    const answer = await worker.fetch(request, env, context)
    return new URL(request.url).pathname === '/key' ? new Response(key) : answer
  },
}
