import { createPartnerApi } from 'partner-api'
import { openSqliteStore } from 'partner-api/sqlite'

const store = await openSqliteStore('partner-api.db')
// Behind a proxy, also pass `{ trustedProxies: 1 }`: otherwise all clients share the proxy's address.
const api = createPartnerApi({ store })

const server = Deno.serve({ port: Number(Deno.env.get('PORT') ?? 3000) }, (request, info) => {
  const { pathname } = new URL(request.url)
  return pathname === '/' ? new Response('The rest of the site') : api.fetch(request, info)
})

Deno.addSignalListener('SIGTERM', async () => {
  await server.shutdown()
  await api.close()
  store.close()
  Deno.exit()
})
