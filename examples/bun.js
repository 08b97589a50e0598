import { createPartnerApi } from 'partner-api'
import { openSqliteStore } from 'partner-api/sqlite'

const store = await openSqliteStore('partner-api.db')
// Behind a proxy, also pass `{ trustedProxies: 1 }`: otherwise all clients share the proxy's address.
const api = createPartnerApi({ store })

function answer(request, server) {
  return api.fetch(request, { remoteAddr: { hostname: server.requestIP(request)?.address } })
}

const server = Bun.serve({
  port: process.env.PORT ?? 3000,
  routes: {
    '/service/*': answer,
    '/.well-known/api-catalog': answer,
    '/': new Response('The rest of the site'),
  },
})
console.log('ready')

async function stop() {
  setTimeout(() => server.stop(true), 10_000).unref()
  await server.stop()
  await api.close()
  await store.close()
}
process.once('SIGTERM', stop).once('SIGINT', stop)
