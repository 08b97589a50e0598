/** A Worker with its own store, whose key is at `/key`. At `/ask`, it calls another service with the client. */
import {
  createKeyAdministration,
  createPartnerAdministration,
  createPartnerApi,
  MODULE_NAMES,
} from 'partner-api'
import { createPartnerClient } from 'partner-api-client'
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
    const { pathname } = new URL(request.url)
    if (pathname === '/ask') return Response.json(await createPartnerClient(await request.json()).verifyKey())
    const answer = await worker.fetch(request, env, context)
    return pathname === '/key' ? new Response(key) : answer
  },
}
