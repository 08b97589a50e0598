/** Times a service with as many own endpoints as the argument says: V8 must not have seen the routes of another one. */
import process from 'node:process'
import { internalsOf } from '../../core/internals.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { PARTNER } from '../support/partner.ts'
import { ownEndpoints } from './own-endpoints.ts'
import { timeAsync, timeOurs } from './pipeline.ts'
import { CACHED_TARGET, createService, exchangeFor, fill, issueKey, verifyExchangeFor } from './tenant.ts'

const store = await openMemoryStore()
await fill(store, 500)
const key = await issueKey(store)
const endpoints = ownEndpoints(store).slice(0, Number(process.argv[2]))
const service = createService(store, { endpoints })
const uncached = createService(store, { endpoints, responseCacheBytes: 0 })
const plans = `/service/public/plans?partner=${PARTNER}`

process.on('message', async () => {
  // As in a server, V8 knows all routes.
  for (const { path } of internalsOf(service).routes.filter(({ access }) => access === 'key')) {
    for (const { handle } of [service, uncached]) await handle(exchangeFor(`${path}?partner=${PARTNER}`, key))
  }
  process.send?.([
    await timeOurs(service.handle, () => exchangeFor(CACHED_TARGET, key)),
    await timeAsync(service.handle, () => verifyExchangeFor(key), 1_500),
    await timeOurs(uncached.handle, () => exchangeFor(plans, key), 3_000),
  ])
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
