import { createPartnerApi } from 'partner-api'
import { serve } from 'partner-api/node'
import { openSqliteStore } from 'partner-api/sqlite'
import { openCompanies } from './companies.js'

// Partners, keys and signups are kept in a store; profiles and industries come from where they have always been.
const api = createPartnerApi({
  store: await openSqliteStore('partner-api.db'),
  directory: openCompanies('shop.db'),
})
await serve(api, { port: Number(process.env.PORT ?? 3000) })
console.log('ready')
