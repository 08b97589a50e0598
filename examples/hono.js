import { serve } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { Hono } from 'hono'
import { createPartnerApi } from 'partner-api'
import { openSqliteStore } from 'partner-api/sqlite'

// Behind a proxy, also pass `{ trustedProxies: 1 }`: otherwise all clients share the proxy's address.
const api = createPartnerApi({ store: await openSqliteStore('partner-api.db') })

const app = new Hono()
app.on(['ALL'], ['/service/*', '/.well-known/api-catalog'], (context) => {
  const { address } = getConnInfo(context).remote
  return api.fetch(context.req.raw, { remoteAddr: { hostname: address } })
})
app.get('/', (context) => context.text('The rest of the site'))
serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) }, () => console.log('ready'))
