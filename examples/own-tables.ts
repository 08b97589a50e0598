import { createPartnerApi } from 'partner-api'
import { serve } from 'partner-api/node'
import { openSqliteStore } from 'partner-api/sqlite'
import { openCompanies } from './companies.ts'

// The store keeps partners, keys and signups. Profiles and industries come from your own tables.
const store = await openSqliteStore('partner-api.db')
const api = createPartnerApi({
  store,
  directory: openCompanies('shop.db'),
})
const server = await serve(api, { port: Number(process.env.PORT ?? 3000) })
console.log('ready')

async function stop() {
  await server.close()
  await store.close()
}
process.once('SIGTERM', stop).once('SIGINT', stop)
