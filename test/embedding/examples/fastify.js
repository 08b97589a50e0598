import Fastify from 'fastify'
import { createPartnerApi } from 'partner-api'
import { openSqliteStore } from 'partner-api/sqlite'
import { mountOnNode } from './mount-on-node.js'

const api = createPartnerApi({ store: await openSqliteStore('partner-api.db') })
const answer = mountOnNode(api)

// Without it, Node drops the second of two keys, and the service could not refuse them.
const fastify = Fastify({ http: { joinDuplicateHeaders: true } })
// Before Fastify reads bodies: the service does so by itself.
fastify.addHook('onRequest', async ({ raw, url }, reply) => {
  if (!url.startsWith('/service/') && url !== '/.well-known/api-catalog') return
  reply.hijack()
  await answer(raw, reply.raw)
})
fastify.get('/', () => 'The rest of the site')
await fastify.listen({ port: process.env.PORT ?? 3000 })
console.log('ready')
