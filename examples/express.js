import express from 'express'
import { createPartnerApi } from 'partner-api'
import { closeServer, createListener } from 'partner-api/node'
import { openSqliteStore } from 'partner-api/sqlite'

const store = await openSqliteStore('partner-api.db')
// Behind a proxy, also pass `{ trustedProxies: 1 }`: otherwise all clients share the proxy's address.
const api = createPartnerApi({ store })

const app = express()
app.disable('x-powered-by')
// Mount it before express.json(): the service reads request bodies itself.
app.use(['/service', '/.well-known/api-catalog'], createListener(api))
app.get('/', (_request, response) => response.send('The rest of the site'))
const server = app.listen(process.env.PORT ?? 3000, (error) => {
  if (error) throw error
  console.log('ready')
})

async function stop() {
  await closeServer(server)
  await api.close()
  await store.close()
}
process.once('SIGTERM', stop).once('SIGINT', stop)
