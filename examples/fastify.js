import Fastify from 'fastify'
import { createPartnerApi } from 'partner-api'
import { createListener } from 'partner-api/node'
import { openSqliteStore } from 'partner-api/sqlite'

const store = await openSqliteStore('partner-api.db')
// Behind a proxy, also pass `{ trustedProxies: 1 }`: otherwise all clients share the proxy's address.
const api = createPartnerApi({ store })
// The URL as `rewriteUrl` left it.
const answer = createListener(api, { target: ({ url }) => url })

// While it stops, requests on open connections still get their responses.
const fastify = Fastify({ return503OnClosing: false })
// Runs before Fastify reads the body: the service reads it itself.
fastify.addHook('onRequest', async ({ raw, url }, reply) => {
  if (!url.startsWith('/service/') && url !== '/.well-known/api-catalog') return
  reply.hijack()
  await answer(raw, reply.raw)
})
fastify.get('/', () => 'The rest of the site')
await fastify.listen({ port: Number(process.env.PORT ?? 3000) })
console.log('ready')

async function stop() {
  setTimeout(() => fastify.server.closeAllConnections(), 10_000).unref()
  await fastify.close()
  await api.close()
  await store.close()
}
process.once('SIGTERM', stop).once('SIGINT', stop)
