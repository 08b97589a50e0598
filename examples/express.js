import express from 'express'
import { createPartnerApi } from 'partner-api'
import { createListener } from 'partner-api/node'
import { openSqliteStore } from 'partner-api/sqlite'

const api = createPartnerApi({ store: await openSqliteStore('partner-api.db') })

const app = express()
app.disable('x-powered-by')
// Mount it before express.json(): the service reads request bodies itself.
app.use(['/service', '/.well-known/api-catalog'], createListener(api))
app.get('/', (_request, response) => response.send('The rest of the site'))
app.listen(process.env.PORT ?? 3000, () => console.log('ready'))
