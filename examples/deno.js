import { createPartnerApi } from 'partner-api'
import { openSqliteStore } from 'partner-api/sqlite'

// Behind a proxy, also pass `{ trustedProxies: 1 }`: otherwise all clients share the proxy's address.
const api = createPartnerApi({ store: await openSqliteStore('partner-api.db') })

Deno.serve({ port: Number(Deno.env.get('PORT') ?? 3000) }, (request, info) => {
  const { pathname } = new URL(request.url)
  return pathname === '/' ? new Response('The rest of the site') : api.fetch(request, info)
})
