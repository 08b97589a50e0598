import { and, eq, gt } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/postgres-js'
import express from 'express'
import { createModuleAdministration, createPartnerApi, defineEndpoint } from 'partner-api'
import { createMetrics, renderMetrics } from 'partner-api/metrics'
import { closeServer, createGuard, createListener, grantOf } from 'partner-api/node'
import { openPostgresStore } from 'partner-api/postgres'
import postgres from 'postgres'
import { createCompanies } from './companies.ts'
import { orders } from './schema.ts'

const { DATABASE_URL, PARTNER_API_STORE, PORT = '3000' } = process.env
if (!DATABASE_URL || !PARTNER_API_STORE) throw new Error('Set DATABASE_URL and PARTNER_API_STORE.')
const client = postgres(DATABASE_URL)
await client`SELECT 1`
const db = drizzle(client)

const store = await openPostgresStore(PARTNER_API_STORE)
await createModuleAdministration(store, { actor: 'shop' })
  .define({ name: 'orders', scope: 'read:orders', feature: 'Orders and their state' })

const listOrders = defineEndpoint({
  name: 'orders',
  method: 'GET',
  path: '/orders',
  scope: 'read:orders',
  summary: 'List orders',
  paging: { limit: 20, maximum: 100 },
  handle: ({ page }, { partner }) =>
    page({
      read: (after, limit) =>
        db.select({ id: orders.id, item: orders.item }).from(orders)
          .where(and(eq(orders.partner, partner.slug), after && gt(orders.id, after[1])))
          .orderBy(orders.id).limit(limit),
      positionOf: ({ id }) => [id, id],
    }),
})

const metrics = createMetrics()
const api = createPartnerApi({ store, directory: createCompanies(db) }, {
  endpoints: [listOrders],
  observers: [metrics.observer],
})

const app = express()
app.disable('x-powered-by')
app.use(['/service', '/.well-known/api-catalog'], createListener(api))

const guard = createGuard(api, {
  name: 'invoice',
  method: 'GET',
  path: '/invoices/:id',
  scope: 'read:orders',
  summary: 'Get an invoice',
})
app.get('/invoices/:id', guard, async (request, response) => {
  const { partner } = grantOf(request)
  const id = String(request.params.id)
  const isOwn = and(eq(orders.partner, partner.slug), eq(orders.id, id))
  const [order] = await db.select().from(orders).where(isOwn)
  if (order === undefined) response.status(404).send('There is no such order.\n')
  else response.type('text').send(`Invoice for ${partner.name}: ${order.item}\n`)
})

// For Prometheus: let your proxy refuse this path.
app.get('/metrics', async (_request, response) => {
  const { type, text } = await renderMetrics(await metrics.collect())
  response.type(type).send(text)
})

const server = app.listen(Number(PORT), (error) => {
  if (error) throw error
  console.log('ready')
})

async function stop() {
  await closeServer(server)
  await api.close()
  await store.close()
  await client.end()
}
process.once('SIGTERM', stop).once('SIGINT', stop)
