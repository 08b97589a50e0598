/** Workers beyond the HTTP contract: lazy creation of the service, and background work. */
import process from 'node:process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mock } from 'node:test'
import t from 'tap'
import { createListener, serve } from '../../adapters/runtimes/node.ts'
import { createWorker, type WorkerContext } from '../../adapters/runtimes/workers.ts'
import { createPartnerApi, type PartnerApi } from '../../core/api.ts'
import { Problem } from '../../core/http/problem.ts'
import type { LogEvent } from '../../core/log.ts'
import { defineEndpoint } from '../../core/routes/host-endpoints.ts'
import { FAR_LIMITS, type TestRequest, withKey } from '../contract/http/service.ts'
import { socketTransport } from '../contract/http/wires.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { ROOT } from '../package/installed.ts'
import { until } from '../postgres/until.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createPartner } from '../support/partner.ts'
import { connectRaw } from '../support/raw-connection.ts'
import { startWorker } from '../support/workerd-process.ts'
import type { Order, Written } from './stub-worker.ts'

const { url: origin, callOperator, end } = await startWorker('test/adapters/stub-worker.ts', ROOT, {
  hasOperator: true,
})
t.teardown(end)

/** Starts a service in workerd. @returns A request that its key may make. */
async function start(
  name: string,
  options: PartnerApiOptions = {},
  revisionTakesMs = 0,
): Promise<TestRequest> {
  const order: Order = { start: { name, options, revisionTakesMs } }
  const text = await callOperator(order) as string
  return { target: '/service/public/plans?partner=acme', headers: withKey({ text }) }
}

await t.test('usage is written after responses through waitUntil', async (t) => {
  const plans = await start('noted.test')
  const { send, close } = socketTransport(origin, 'noted.test')
  t.teardown(close)
  const order: Order = { read: 'noted.test' }
  const written = async () => await callOperator(order) as Written
  for (let wanted = 1; wanted <= 2; wanted++) {
    t.equal((await send(plans)).status, 200)
    await until(async () => (await written()).requests >= wanted, 'the request to show')
    t.strictSame(await written(), { requests: wanted, hasKeyUse: true })
  }
})

await t.test('a request that waits for a read of another request gets a response', async (t) => {
  const plans = await start('late.test', { maxStalenessMs: 100, limits: FAR_LIMITS }, 60)
  const { send, close } = socketTransport(origin, 'late.test')
  t.teardown(close)
  const statuses = new Set<number>()
  const end = Date.now() + 1_000
  // From half the bound on, a request revalidates in the background, and requests beyond the bound wait for that read.
  const clients = Array.from({ length: 4 }, async () => {
    while (Date.now() < end) statuses.add((await send(plans)).status)
  })
  const late = new Promise((resolve) => setTimeout(resolve, 60_000, 'some of them never').unref())
  t.equal(await Promise.race([Promise.all(clients).then(() => 'all of them'), late]), 'all of them')
  t.strictSame([...statuses], [200])
})

await t.test('a document is made although the first client that wants it disconnects', async (t) => {
  await start('cancelled.test')
  const { send, close } = socketTransport(origin, 'cancelled.test')
  t.teardown(close)
  t.equal((await send({ target: '/service/health' })).status, 200)
  const { hostname, port } = new URL(origin)
  const client = await connectRaw(hostname, Number(port))
  client.write('GET /service/docs HTTP/1.1\r\nHost: cancelled.test\r\nX-Cancellable: 1\r\n\r\n')
  await client.flushed()
  client.reset()
  const late = new Promise((resolve) => setTimeout(resolve, 20_000, 'never').unref())
  const next = send({ target: '/service/docs' }).then(({ status }) => status)
  t.equal(await Promise.race([next, late]), 200)
})

/** A context, and all that it is to wait for. */
function contextOf(): WorkerContext & { readonly work: Promise<unknown>[] } {
  const work: Promise<unknown>[] = []
  return { work, waitUntil: (promise) => void work.push(promise) }
}

const health = (): Request => new Request('https://worker.example/service/health')

await t.test('the log says why a response could not be sent, on every host', async (t) => {
  const store = await openMemoryStore()
  const { issue } = await createPartner(store)
  const { text } = await issue()
  const endpoint = defineEndpoint({
    name: 'forged',
    method: 'GET',
    path: '/forged',
    scope: 'read:plans',
    summary: 'Return a header that cannot be sent',
    handle: () => new Problem('scope_missing', { required_scope: 'read:\r\nforged' }),
  })
  const events: LogEvent[] = []
  const log = (event: LogEvent) => void events.push(event)
  const api = createPartnerApi({ store }, { endpoints: [endpoint], log })
  const server = await serve(api, { port: 0 })
  const mounted = createServer(createListener(api)).listen(0, '127.0.0.1')
  await once(mounted, 'listening')
  t.teardown(async () => {
    mounted.close()
    await server.close()
  })
  const worker = createWorker(() => api)
  const hosts: Readonly<Record<string, (request: Request) => Promise<Response>>> = {
    fetch: (request) => api.fetch(request),
    worker: (request) => worker.fetch(request, {}, { waitUntil() {} }),
    serve: (request) => fetch(new Request(`${server.url}/service/forged?partner=acme`, request)),
    createListener: (request) => {
      const { port } = mounted.address() as AddressInfo
      return fetch(new Request(`http://127.0.0.1:${port}/service/forged?partner=acme`, request))
    },
  }
  for (const [name, send] of Object.entries(hosts)) {
    const headers = { 'X-Service-Partner-Key': text }
    const response = await send(new Request('http://a.example/service/forged?partner=acme', { headers }))
    t.match([response.status, await response.json()], [500, { code: 'internal' }], name)
    t.match(
      events.at(-1),
      { level: 'error', event: 'request', status: 500, error: /^TypeError.*header/i },
      name,
    )
  }
})

await t.test('the service is created once at the first request, and again after a failure', async (t) => {
  const store = await openMemoryStore()
  let made = 0
  const worker = createWorker<{ readonly fails: boolean }>(async ({ fails }) => {
    made++
    await Promise.resolve()
    if (fails) throw new Error('no binding')
    return createPartnerApi({ store })
  })
  const context = contextOf()
  await t.rejects(worker.fetch(health(), { fails: true }, context), { message: 'no binding' })
  await Promise.all(context.work)
  const responses = await Promise.all(
    Array.from({ length: 3 }, () => worker.fetch(health(), { fails: false }, context)),
  )
  t.strictSame(responses.map(({ status }) => status), [200, 200, 200])
  t.equal((await worker.fetch(health(), { fails: true }, context)).status, 200)
  t.equal(made, 2)
  await Promise.all(context.work)
})

await t.test('if creating the service never settles, the next request creates it', async (t) => {
  const api = createPartnerApi({ store: await openMemoryStore() })
  const counts = { made: 0 }
  const worker = createWorker(() => counts.made++ === 0 ? new Promise<PartnerApi>(() => {}) : api)
  const context = contextOf()
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  void worker.fetch(health(), undefined, context)
  const waiting = [1, 2].map(() => worker.fetch(health(), undefined, context))
  mock.timers.tick(4_999)
  await Promise.resolve()
  t.equal(counts.made, 1, 'requests wait for the first attempt for five seconds')
  mock.timers.tick(1)
  t.strictSame((await Promise.all(waiting)).map(({ status }) => status), [200, 200])
  t.equal(counts.made, 2)
})

await t.test('a late failure does not affect the next attempt, and leaves no timer', async (t) => {
  const made: PromiseWithResolvers<PartnerApi>[] = []
  const worker = createWorker(() => {
    const making = Promise.withResolvers<PartnerApi>()
    made.push(making)
    return making.promise
  })
  const context = contextOf()
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  const failing = [1, 2].map(() => worker.fetch(health(), undefined, context))
  made[0]!.reject(new Error('no binding'))
  for (const each of failing) await t.rejects(each, { message: 'no binding' })
  t.equal(timers(), before)

  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const [late, ...waiting] = [1, 2].map(() => worker.fetch(health(), undefined, context))
  mock.timers.tick(5_000)
  while (made.length < 3) await Promise.resolve()
  made[1]!.reject(new Error('too late'))
  await t.rejects(late!, { message: 'too late' })
  waiting.push(worker.fetch(health(), undefined, context))
  t.equal(made.length, 3)
  made[2]!.resolve(createPartnerApi({ store: await openMemoryStore() }))
  t.strictSame((await Promise.all(waiting)).map(({ status }) => status), [200, 200])
})

await t.test('requests during the delay share one write', async (t) => {
  let flushes = 0
  const api = createPartnerApi({ store: await openMemoryStore() })
  const counting: PartnerApi = { ...api, flush: () => Promise.resolve(void flushes++) }
  const worker = createWorker(() => counting)
  const context = contextOf()
  for (let count = 0; count < 5; count++) await worker.fetch(health(), undefined, context)
  t.equal(context.work.length, 5)
  await Promise.all(context.work)
  t.equal(flushes, 1)
})

await t.test('CF-Connecting-IP is trusted only with the setting', async (t) => {
  const seen: (string | undefined)[] = []
  const api = createPartnerApi({ store: await openMemoryStore() })
  const seeing: PartnerApi = {
    ...api,
    handle(exchange) {
      seen.push(exchange.address)
      return api.handle(exchange)
    },
  }
  for (const options of [{}, { trustConnectingIp: true }]) {
    const request = new Request(health(), { headers: { 'cf-connecting-ip': '192.0.2.7' } })
    await createWorker(() => seeing, options).fetch(request, undefined, contextOf())
  }
  t.strictSame(seen, [undefined, '192.0.2.7'])
})
