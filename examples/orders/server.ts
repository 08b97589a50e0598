import { serve } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { type Context, Hono } from 'hono'
import { createModuleAdministration, createPartnerApi, defineEndpoint, Problem } from 'partner-api'
import { closeServer } from 'partner-api/node'
import { openSqliteStore } from 'partner-api/sqlite'
import * as v from 'valibot'
import { openOrders } from './orders.ts'

const orders = openOrders('shop.db')
const item = v.pipe(v.string(), v.minLength(1), v.maxLength(80), v.examples(['Desk lamp']))
const quantity = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(99))
const placed_at = v.pipe(v.string(), v.isoTimestamp())
const order = v.object({ id: v.string(), item, quantity, placed_at })

const listOrders = defineEndpoint({
  name: 'orders',
  method: 'GET',
  path: '/orders',
  scope: 'read:orders',
  summary: 'List orders',
  description: 'Newest first.',
  paging: { limit: 20, maximum: 100 },
  response: v.array(order),
  handle: ({ page }, { partner, key }) =>
    page({
      // Without a position, begin after a time that no order has.
      read: (after = ['9999', ''], limit) => orders.list(after, [partner.slug, key.environment], limit),
      positionOf: ({ placed_at, id }) => [placed_at, id],
    }),
})

const placeOrder = defineEndpoint({
  name: 'order-place',
  method: 'POST',
  path: '/orders',
  scope: 'create:orders',
  summary: 'Place an order',
  body: { item, quantity: v.optional(quantity, 1) },
  response: order,
  status: 201,
  takesIdempotencyKey: true,
  handle({ body: { item, quantity }, idempotencyKey = null }, { partner, key, now }) {
    const placed = orders.place(item, quantity, [partner.slug, key.environment], now, idempotencyKey)
    const isOther = placed.item !== item || placed.quantity !== quantity
    return isOther ? new Problem('idempotency_mismatch') : { data: placed }
  },
})

const store = await openSqliteStore('partner-api.db')
// Like `partner-api modules define`. Nothing changes if the store has these modules.
const modules = createModuleAdministration(store, { actor: 'shop' })
await modules.define({ name: 'orders', scope: 'read:orders', feature: 'Orders and their state' })
await modules.define({ name: 'ordering', scope: 'create:orders', feature: 'Order forms' })
// Behind a proxy, also pass `trustedProxies: 1`: otherwise all clients share the proxy's address.
const api = createPartnerApi({ store }, { endpoints: [listOrders, placeOrder] })

// A route that stays in your router.
const invoice = api.protect(
  { name: 'invoice', method: 'GET', path: '/invoices/:id', scope: 'read:orders', summary: 'Get an invoice' },
  (_request, { partner, key }, { id }: { id: string }) => {
    const order = orders.find(id, [partner.slug, key.environment])
    if (order === undefined) return new Response('There is no such order.\n', { status: 404 })
    return new Response(`Invoice for ${partner.name}: ${order.quantity} × ${order.item}\n`)
  },
)

const app = new Hono()
const peer = (c: Context) => ({ remoteAddr: { hostname: getConnInfo(c).remote.address } })
app.on(['ALL'], ['/service/*', '/.well-known/api-catalog'], (c) => api.fetch(c.req.raw, peer(c)))
app.get('/invoices/:id', (c) => invoice(c.req.raw, { id: c.req.param('id'), ...peer(c) }))
app.get('/', (c) => c.text('The rest of the site'))
const port = Number(process.env.PORT ?? 3000)
const server = serve({ fetch: app.fetch, port }, () => console.log('ready'))

async function stop() {
  await closeServer(server)
  await api.close()
  await store.close()
}
process.once('SIGTERM', stop).once('SIGINT', stop)
