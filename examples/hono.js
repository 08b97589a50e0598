import { serve } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { Hono } from 'hono'
import { createPartnerApi } from 'partner-api'
import { closeServer } from 'partner-api/node'
import { openSqliteStore } from 'partner-api/sqlite'

const store = await openSqliteStore('partner-api.db')
// Behind a proxy, also pass `{ trustedProxies: 1 }`: otherwise all clients share the proxy's address.
const api = createPartnerApi({ store })

const app = new Hono()
app.on(['ALL'], ['/service/*', '/.well-known/api-catalog'], (context) => {
  const { address } = getConnInfo(context).remote
  return api.fetch(context.req.raw, { remoteAddr: { hostname: address } })
})
app.get('/', (context) => context.text('The rest of the site'))
const port = Number(process.env.PORT ?? 3000)
const server = serve({ fetch: app.fetch, port }, () => console.log('ready'))

async function stop() {
  await closeServer(server)
  await api.close()
  await store.close()
}
process.once('SIGTERM', stop).once('SIGINT', stop)
