/** Endpoints of the host's own that return what they get, and what they get from the samples of the reference page. */
import * as v from 'valibot'
import type { Store } from '../../core/ports/store.ts'
import { createModuleAdministration } from '../../core/admin/modules.ts'
import { defineEndpoint } from '../../core/routes/host-endpoints.ts'

const odd = 'Tom & Jerry\'s "shop" `5%` \\ $x {body} </b> é😀\u2028'
const lines = v.array(
  v.object({ sku: v.pipe(v.string(), v.length(3)), count: v.pipe(v.number(), v.minValue(2)) }),
)

const show = defineEndpoint({
  name: 'own-order',
  method: 'GET',
  path: '/own/:id/:part_name',
  scope: 'read:orders',
  summary: 'Get an order',
  query: {
    shop: v.pipe(v.string(), v.examples([odd])),
    least: v.pipe(v.number(), v.minValue(3)),
    states: v.pipe(v.array(v.picklist(['in transit', 'lost'])), v.minLength(2)),
    day: v.pipe(v.string(), v.isoDate()),
    verbose: v.optional(v.boolean()),
  },
  handle: ({ params, query }) => ({ data: { ...params, ...query } }),
})

const list = defineEndpoint({
  name: 'own-orders',
  method: 'GET',
  path: '/own',
  scope: 'read:orders',
  summary: 'List orders',
  query: { most: v.pipe(v.number(), v.maxValue(0)) },
  paging: { limit: 1, maximum: 2 },
  handle: ({ query, page }) => page({ read: (after) => after ? [] : [query], positionOf: () => ['a', 'a'] }),
})

const create = defineEndpoint({
  name: 'own-order-create',
  method: 'POST',
  path: '/own',
  scope: 'read:orders',
  summary: 'Create an order',
  body: {
    note: v.pipe(v.string(), v.examples([`${odd}\n\t`])),
    lines: v.pipe(lines, v.minLength(2)),
    'is-gift': v.boolean(),
    labels: v.record(v.string(), v.string()),
    refund: v.null(),
    shop: v.optional(v.string()),
  },
  status: 201,
  handle: ({ body }) => ({ data: { ...body, partner: undefined } }),
})

const touch = defineEndpoint({
  name: 'own-touch',
  method: 'POST',
  path: '/own/touch/now/:id',
  scope: 'read:orders',
  summary: 'Touch an order',
  handle: ({ params }) => ({ data: params }),
})

export const OWN_ENDPOINTS = [show, list, create, touch]

/** The data that each of these returns to a sample, by operation. */
export const OWN_DATA: Readonly<Record<string, unknown>> = {
  ownOrder: {
    id: 'id',
    part_name: 'part_name',
    shop: odd,
    least: 3,
    states: ['in transit', 'in transit'],
    day: '2026-12-31',
  },
  ownOrders: [{ most: 0 }],
  ownOrderCreate: {
    note: `${odd}\n\t`,
    lines: [{ sku: 'tex', count: 2 }, { sku: 'tex', count: 2 }],
    'is-gift': true,
    labels: {},
    refund: null,
  },
  ownTouch: { id: 'id' },
}

export async function defineOwnModule(store: Store): Promise<void> {
  await createModuleAdministration(store, { actor: 'test' })
    .define({ name: 'orders', scope: 'read:orders', feature: 'Orders' })
}
