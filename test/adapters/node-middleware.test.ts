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
  const [response] = await once(
    httpRequest({ port, path, headers, agent: false }).end(),
    'response',
  )
  const { code = 'ok' } = await readJson(response) as {
    readonly code?: string
  }
  server.close()
  await api.close()
  return `${response.statusCode} ${code}`
}

t.test('a field that the host sets, replaces or deletes', async (t) => {
  const own = { [KEY_HEADER]: key }
  t.equal(
    await ask(
      { 'x-own-key': key },
      ({ headers }) => headers[KEY_HEADER] = headers['x-own-key'],
    ),
    '200 ok',
    'set',
  )
  t.equal(
    await ask(
      { [KEY_HEADER]: 'nonsense' },
      ({ headers }) => headers[KEY_HEADER] = key,
    ),
    '200 ok',
    'replaced',
  )
  t.equal(
    await ask(own, ({ headers }) => headers[KEY_HEADER] = 'nonsense'),
    '401 key_invalid',
    'replaced by another',
  )
  t.equal(
    await ask(own, ({ headers }) => delete headers[KEY_HEADER]),
    '401 key_missing',
    'deleted',
  )
  const browser = { ...own, origin: 'https://site.example' }
  t.equal(await ask(browser, () => undefined), '403 browser_refused')
  t.equal(
    await ask(browser, ({ headers }) => delete headers.origin),
    '200 ok',
    'Origin deleted',
  )
  t.equal(
    await ask(own, ({ headers }) => headers[KEY_HEADER] = [key, key]),
    '400 ambiguous_credentials',
    'a list',
  )
})

t.test('a field that the host leaves alone counts with its repetitions', async (t) => {
  const twice = [KEY_HEADER, key, KEY_HEADER, key]
  t.equal(await ask(twice, () => undefined), '400 ambiguous_credentials')
  t.equal(
    await ask(twice, ({ headers }) => headers['x-other'] = 'a'),
    '400 ambiguous_credentials',
  )
  t.equal(
    await ask(twice, ({ headers }) => headers[KEY_HEADER] = `${key} `.trim()),
    '400 ambiguous_credentials',
  )
})

t.test('the client of a fenced key', async (t) => {
  const inside = '198.51.100.7'
  const outside = '203.0.113.9'
  const from = (address: string) => ({
    [KEY_HEADER]: fenced.text,
    'x-forwarded-for': address,
  })
  const proxied = { trustedProxies: 1 }
  t.equal(await ask(from(inside), () => undefined, proxied), '200 ok')
  const replace: Middleware = ({ headers }) => headers['x-forwarded-for'] = outside
  t.equal(
    await ask(from(inside), replace, proxied),
    '403 address_not_allowed',
    'the host replaced the hop',
  )
  for (const trustedProxies of [0, 1]) {
    const at = (address: string | undefined) => ({
      trustedProxies,
      options: { address: () => address },
    })
    t.equal(
      await ask(from(outside), () => undefined, at(inside)),
      '200 ok',
      'as the host says',
    )
    t.equal(
      await ask(from(inside), () => undefined, at(outside)),
      '403 address_not_allowed',
    )
    t.equal(
      await ask(from(inside), () => undefined, at(undefined)),
      '403 address_not_allowed',
      'unknown',
    )
  }
})

t.test('the target of the host', async (t) => {
  const own = { [KEY_HEADER]: key }
  // As a router that rewrites does: it keeps what the client sent.
  const rewrite: Middleware = (request) => {
    request.originalUrl = request.url!
    request.url = target
  }
  t.equal(
    await ask(own, rewrite, { path: '/old' }),
    '404 route_not_found',
    'by default as the client sent it',
  )
  const options = { target: (request: IncomingMessage) => request.url! }
  t.equal(await ask(own, rewrite, { path: '/old', options }), '200 ok')
})

t.test('options', async (t) => {
  const api = createPartnerApi({ store })
  // @ts-expect-error -- misspelt
  t.throws(() => createListener(api, { adress: () => undefined }), {
    name: 'TypeError',
    message: 'createListener: there is no option "adress". Did you mean "address"?',
  })
  const address = () => {
    throw new Error('no address')
  }
  t.equal(
    await ask({ [KEY_HEADER]: key }, () => undefined, { options: { address } }),
    '500 no address',
  )
  await api.close()
})
