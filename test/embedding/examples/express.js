import { createServer } from 'node:http'
import express from 'express'
import { createPartnerApi } from 'partner-api'
import { openSqliteStore } from 'partner-api/sqlite'
import { mountOnNode } from './mount-on-node.js'

const api = createPartnerApi({ store: await openSqliteStore('partner-api.db') })

const app = express()
app.disable('x-powered-by')
// Before express.json(): the service reads bodies by itself.
app.use(['/service', '/.well-known/api-catalog'], mountOnNode(api))
app.get('/', (_request, response) => response.send('The rest of the site'))

// Without it, Node drops the second of two keys, and the service could not refuse them.
const server = createServer({ joinDuplicateHeaders: true }, app)
server.listen(process.env.PORT ?? 3000, () => console.log('ready'))
