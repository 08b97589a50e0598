/** One-time links: clients that leave, a page that cannot be loaded, and what the log has of a link. */
import { once } from 'node:events'
import { registerHooks } from 'node:module'
import { connect } from 'node:net'
import { test } from 'tap'
import { serve } from '../../adapters/runtimes/node.ts'
import type { NodeHttpRequest } from '../../adapters/runtimes/node-request.ts'
import { createClaim } from '../../core/admin/claims.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { HttpRequest } from '../../core/http/message.ts'
import type { LogEvent } from '../../core/log.ts'
import { openMemoryStore } from '../support/memory-store.ts'

async function offering() {
  const store = await openMemoryStore()
  const operator = { actor: 'grace' }
  await createPartnerAdministration(store, operator).create({ slug: 'acme', name: 'Acme', modules: [] })
  const newKey = { partner: 'acme', name: 'Shop', environment: 'live' } as const
  const { token } = await createClaim(store, operator, newKey, 3_600_000)
  const log: LogEvent[] = []
  const api = (more = {}) =>
    createPartnerApi({ store: { ...store, ...more } }, { logLevel: 'all', log: (event) => log.push(event) })
  return { store, token, api, log }
}

const ask = (path: string, method = 'POST', accept = 'text/html') =>
  new Request(`http://api.example${path}`, { method, headers: { accept } })

test('a client that leaves uses no link', async (t) => {
  const { store, token, api } = await offering()
  const released = Promise.withResolvers<void>()
  const { handle, ...rest } = api({
    findClaim: (id: string) => released.promise.then(() => store.findClaim(id)),
  })
  const arrivals: ((request: HttpRequest) => void)[] = []
  const statuses: Promise<number>[] = []
  const server = await serve({
    ...rest,
    handle(request) {
      const response = handle(request)
      statuses.push(Promise.resolve(response).then(({ status }) => status))
      arrivals.shift()?.(request)
      return response
    },
  }, { port: 0 })
  t.teardown(() => server.close())
  for (const more of ['\r\n', 'Content-Length: 5\r\n\r\nab']) {
    const arrival = new Promise<HttpRequest>((resolve) => arrivals.push(resolve))
    const socket = connect(server.port, '127.0.0.1')
    socket.write(`POST /service/claim/${token} HTTP/1.1\r\nHost: a\r\n${more}`)
    const { response } = await arrival as NodeHttpRequest
    socket.resetAndDestroy()
    await once(response, 'close')
  }
  released.resolve()
  t.strictSame(await Promise.all(statuses), [400, 400])
  t.equal((await fetch(`${server.url}/service/claim/${token}`, { method: 'POST' })).status, 201)
})

test('guesses that are sent at once count before they are looked up', async (t) => {
  const { store, token, api } = await offering()
  const released = Promise.withResolvers<void>()
  const { fetch } = api({ findClaim: (id: string) => released.promise.then(() => store.findClaim(id)) })
  const guesses = Array.from({ length: 25 }, (_, guess) => String(guess).padStart(32, 'a'))
  const responses = [...guesses, token].map((each) =>
    fetch(ask(`/service/claim/${each}`, 'GET'), { remoteAddr: { hostname: '192.0.2.1' } })
  )
  released.resolve()
  const statuses = (await Promise.all(responses)).map(({ status }) => status)
  t.strictSame(statuses, [...Array(20).fill(404), ...Array(6).fill(429)], 'the default limit')
})

test('handlers read no signal, of which Deno would warn', async (t) => {
  const { token, api } = await offering()
  const request = ask(`/service/claim/${token}`)
  Object.defineProperty(request, 'signal', { get: () => t.fail('the signal was read') })
  t.equal((await api().fetch(request)).status, 201)
})

test('a page that cannot be loaded uses no link', async (t) => {
  const { token, api } = await offering()
  const { fetch } = api()
  const { deregister } = registerHooks({
    resolve(specifier, context, next) {
      if (specifier.endsWith('/claim-page.ts')) throw new Error('The file is missing.')
      return next(specifier, context)
    },
  })
  t.teardown(deregister)
  t.equal((await fetch(ask(`/service/claim/${token}`))).status, 500)
  t.equal((await fetch(ask(`/service/claim/${token}`, 'POST', 'application/json'))).status, 201)
})

test('no log has a token, and other paths stay complete', async (t) => {
  const { token, api, log } = await offering()
  const { fetch } = api()
  const paths = {
    [`/service/claim/${token}`]: '/service/claim/…',
    '/service/claim/incomplete': '/service/claim/…',
    [`/service/claims/${token}`]: '/service/claims/…',
    [`/${token}`]: '/…',
    '/service/insurance/claim/77/items': undefined,
  }
  for (const path of Object.keys(paths)) await fetch(ask(path, 'PUT'))
  t.strictSame(log.map(({ path }) => path), Object.entries(paths).map(([path, shown = path]) => shown))
})
