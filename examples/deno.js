import { setTimeout } from 'node:timers/promises'
import { createPartnerApi } from 'partner-api'
import { openSqliteStore } from 'partner-api/sqlite'

const store = await openSqliteStore('partner-api.db')
// Behind a proxy, also pass `{ trustedProxies: 1 }`: otherwise all clients share the proxy's address.
const api = createPartnerApi({ store })

const server = Deno.serve({ port: Number(process.env.PORT ?? 3000) }, (request, info) => {
  const { pathname } = new URL(request.url)
  return pathname === '/' ? new Response('The rest of the site') : api.fetch(request, info)
})

async function stop() {
  await Promise.race([server.shutdown(), setTimeout(10_000)])
  await api.close()
  await store.close()
  process.exit()
}
process.once('SIGTERM', stop).once('SIGINT', stop)
