/** What a host's middleware changes in a request counts, and what it leaves alone counts as it arrived. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json as readJson } from 'node:stream/consumers'
import t from 'tap'
import { createListener, type ListenerOptions } from '../../adapters/runtimes/node.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import { newFile } from '../support/cli-program.ts'
import { createPartner, PARTNER } from '../support/partner.ts'

const KEY_HEADER = 'x-service-partner-key'
const target = `/service/public/plans?partner=${PARTNER}`

const store = await openSqliteStore(newFile())
t.teardown(() => store.close())
const { issue } = await createPartner(store)
const { text: key } = await issue()
const fenced = await issue({ name: 'Fenced', allow: ['198.51.100.0/24'] })

type Middleware = (request: IncomingMessage & { originalUrl?: string }) => void
type Sent = readonly string[] | Readonly<Record<string, string>>

/** Sends a request through a host with middleware. @returns `STATUS code`. */
async function ask(
  sent: Sent,
  middleware: Middleware,
  { path = target, trustedProxies = 0, options }: {
    readonly path?: string
    readonly trustedProxies?: number
    readonly options?: ListenerOptions<IncomingMessage>
  } = {},
): Promise<string> {
  const api = createPartnerApi({ store }, { trustedProxies })
  const listener = createListener(api, options)
  const server = createServer((request, response) => {
    middleware(request)
    listener(request, response).catch((error) =>
      response.writeHead(500).end(JSON.stringify({ code: error.message }))
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const headers = Array.isArray(sent) ? ['host', 'localhost', ...sent] : sent as Record<string, string>
  const [response] = await once(httpRequest({ port, path, headers, agent: false }).end(), 'response')
  const { code = 'ok' } = await readJson(response) as {
    readonly code?: string
  }
  server.close()
  await api.close()
  return `${response.statusCode} ${code}`
}

const own = { [KEY_HEADER]: key }
const twice = [KEY_HEADER, key, KEY_HEADER, key]
const browser = { ...own, origin: 'https://site.example' }
const inside = '198.51.100.7'
const outside = '203.0.113.9'
const from = (address: string) => ({ [KEY_HEADER]: fenced.text, 'x-forwarded-for': address })
const proxied = { trustedProxies: 1 }
const at = (address: string | undefined, trustedProxies: number) => ({
  trustedProxies,
  options: { address: () => address },
})
const untouched: Middleware = () => undefined
const setHeader = (name: string, value: string | string[] | undefined): Middleware => ({ headers }) =>
  value === undefined ? delete headers[name] : headers[name] = value
// As a router that rewrites does: it keeps what the client sent.
const rewrite: Middleware = (request) => {
  request.originalUrl = request.url!
  request.url = target
}
const readsUrl = { target: (request: IncomingMessage) => request.url! }
const failing = {
  address: () => {
    throw new Error('no address')
  },
}

type Case = readonly [
  what: string,
  expected: string,
  sent: Sent,
  middleware?: Middleware,
  how?: Parameters<typeof ask>[2],
]
const cases: readonly Case[] = [
  ['a key that the host sets', '200 ok', { 'x-own-key': key }, ({ headers }) => {
    headers[KEY_HEADER] = headers['x-own-key']
  }],
  ['a key that it replaces', '200 ok', { [KEY_HEADER]: 'nonsense' }, setHeader(KEY_HEADER, key)],
  ['replaced by another', '401 key_invalid', own, setHeader(KEY_HEADER, 'nonsense')],
  ['a key that it deletes', '401 key_missing', own, setHeader(KEY_HEADER, undefined)],
  ['Origin', '403 browser_refused', browser],
  ['Origin that it deletes', '200 ok', browser, setHeader('origin', undefined)],
  ['a list', '400 ambiguous_credentials', own, setHeader(KEY_HEADER, [key, key])],
  ['repetitions that it leaves alone', '400 ambiguous_credentials', twice],
  ['another field set', '400 ambiguous_credentials', twice, setHeader('x-other', 'a')],
  ['an equal text', '400 ambiguous_credentials', twice, setHeader(KEY_HEADER, `${key} `.trim())],
  ['the client of a fenced key', '200 ok', from(inside), untouched, proxied],
  [
    'a hop that the host replaces',
    '403 address_not_allowed',
    from(inside),
    setHeader('x-forwarded-for', outside),
    proxied,
  ],
  ...[0, 1].flatMap((proxies): Case[] => [
    ['the client as the host says', '200 ok', from(outside), untouched, at(inside, proxies)],
    ['another client', '403 address_not_allowed', from(inside), untouched, at(outside, proxies)],
    ['an unknown client', '403 address_not_allowed', from(inside), untouched, at(undefined, proxies)],
  ]),
  ['the target as the client sent it', '404 route_not_found', own, rewrite, { path: '/old' }],
  ['the target of an option', '200 ok', own, rewrite, { path: '/old', options: readsUrl }],
  ['what an option throws', '500 no address', own, untouched, { options: failing }],
]
for (const [what, expected, sent, middleware = untouched, how] of cases) {
  t.test(what, async (t) => t.equal(await ask(sent, middleware, how), expected))
}
