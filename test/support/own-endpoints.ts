/** Endpoints of the host's own, for services on every runtime: nothing here needs a platform. */
import * as v from 'valibot'
import { Problem } from '../../core/http/problem.ts'
import { defineEndpoint } from '../../core/routes/host-endpoints.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'

/** Their modules, which the operator defines before the service starts. */
export const OWN_MODULES = [
  { name: 'orders', scope: 'read:orders', feature: 'Orders' },
  { name: 'ordering', scope: 'create:orders', feature: 'New orders' },
] as const

/** The rows of the list, each of a partner and with an id that sorts after those before it. */
export const ORDERS = ['a17', 'b03', 'c42', 'd05', 'e11', 'f90'].map((id, index) => ({
  id,
  partner: index % 3 === 2 ? 'acme' : 'demo',
  state: index % 2 === 0 ? 'open' : 'closed',
}))

const list = defineEndpoint({
  name: 'orders',
  method: 'GET',
  path: '/orders',
  scope: 'read:orders',
  summary: 'List orders',
  query: {
    state: v.optional(v.picklist(['open', 'closed'])),
    fails: v.optional(v.picklist(['never ends', 'throws', 'rejects'])),
  },
  paging: { limit: 2, maximum: 50 },
  handle({ query: { state, fails }, page }, { partner }) {
    if (fails === 'never ends') return new Promise<never>(() => {})
    if (fails === 'rejects') return Promise.reject(new Error('secret'))
    if (fails === 'throws') throw new Error('secret')
    return page({
      read: (after, limit) =>
        ORDERS.filter((order) => order.partner === partner.slug && order.state === (state ?? order.state))
          .filter(({ id }) => after === undefined || id > after[1]).slice(0, limit),
      positionOf: ({ id }) => [id, id],
      present: ({ id, state }) => ({ id, state }),
    })
  },
})

const detail = defineEndpoint({
  name: 'order',
  method: 'GET',
  path: '/orders/:slug',
  scope: 'read:orders',
  summary: 'Get an order',
  revision: () => 'one for all partners',
  handle: ({ params: { slug } }, { partner }) =>
    slug === 'no-such' ? new Problem('not_found') : { data: { slug, partner: partner.slug } },
})

const create = defineEndpoint({
  name: 'order-create',
  method: 'POST',
  path: '/orders',
  scope: 'create:orders',
  summary: 'Create an order',
  body: { item: v.optional(v.pipe(v.string(), v.maxLength(5)), 'apple'), count: v.nullish(v.number()) },
  status: 201,
  handle: ({ body: { item, count } }) => ({ data: { item, count: count ?? null } }),
})

export const OWN_ENDPOINTS = [list, detail, create]

/** Options that JSON can have. */
export type ServedOptions = Omit<PartnerApiOptions, 'endpoints'> & {
  /** Serve `OWN_ENDPOINTS`. */
  readonly ownEndpoints?: true
}

export function resolveOptions({ ownEndpoints, ...options }: ServedOptions): PartnerApiOptions {
  return ownEndpoints ? { ...options, endpoints: OWN_ENDPOINTS } : options
}
