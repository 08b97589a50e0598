import Fastify from 'fastify'
import { createPartnerApi } from 'partner-api'
import { createListener } from 'partner-api/node'
import { openSqliteStore } from 'partner-api/sqlite'

// Behind a proxy with `{ trustedProxies: 1 }`, too: all that it passes on has one address otherwise.
const api = createPartnerApi({ store: await openSqliteStore('partner-api.db') })
const answer = createListener(api)

const fastify = Fastify()
// Before Fastify reads bodies: the service does so by itself.
fastify.addHook('onRequest', async ({ raw, url }, reply) => {
  if (!url.startsWith('/service/') && url !== '/.well-known/api-catalog') return
  reply.hijack()
  await answer(raw, reply.raw)
})
fastify.get('/', () => 'The rest of the site')
await fastify.listen({ port: Number(process.env.PORT ?? 3000) })
console.log('ready')
