/** What `verify` says about every way to get it wrong, and with which exit code. */
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createNetServer, type Server } from 'node:net'
import t from 'tap'
import { createListener } from '../../adapters/runtimes/node.ts'
import { createPartnerApi } from '../../core/api.ts'
import { mintKey } from '../../core/keys/format.ts'
import { freePort } from '../postgres/free-port.ts'
import { runProgram } from '../support/cli-program.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { fillWorld } from '../support/world.ts'

const store = await openMemoryStore()
const { keys, keyRing } = await fillWorld(store)
const limited = (await keyRing.issue({
  partner: 'demo',
  name: 'Limited',
  environment: 'live',
  limits: { verify: { quota: 1, windowSeconds: 300 } },
})).text
const api = createPartnerApi({ store })
const acmeApi = createPartnerApi({ store }, { serviceName: 'acme-data' })
t.teardown(() => Promise.all([api.close(), acmeApi.close()]))
const listener = createListener(api)
const acmeListener = createListener(acmeApi)

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

const serve = async (handle: RequestListener): Promise<string> => {
  const server = createServer(handle)
  t.teardown(() => server.closeAllConnections())
  return `http://${await listen(server)}`
}

/** Keys that arrive at addresses that redirect. */
const leaked: string[] = []
const answering = (status: number, body = '', headers: Readonly<Record<string, string>> = {}) =>
  serve((_request, response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  )
const html = (status: number, title: string) =>
  answering(status, `<!doctype html><title>${title}</title>`, { 'content-type': 'text/html' })
const redirecting = (locate: (path: string, host: string | undefined) => string) =>
  serve(({ url = '', headers }, response) => {
    leaked.push(...[headers['x-service-partner-key'] ?? []].flat())
    response.writeHead(301, { location: locate(url, headers.host) }).end()
  })
/** Removes a prefix, as a proxy does, and answers other paths like a site. */
const below = (prefix: string, handle: RequestListener): RequestListener => (request, response) => {
  if (!request.url!.startsWith(`${prefix}/`)) return void site(response)
  request.url = request.url!.slice(prefix.length)
  return handle(request, response)
}
const site = (response: ServerResponse) =>
  response.writeHead(404, { 'content-type': 'text/html' }).end('<title>Nothing here</title>')
const onlyService: RequestListener = (request, response) =>
  request.url!.startsWith('/service/') ? void listener(request, response) : void site(response)

const [here, acme, prefixed, bare] = await Promise.all([
  serve((request, response) => void listener(request, response)),
  serve((request, response) => void acmeListener(request, response)),
  serve(below('/partners/v1', (request, response) => void acmeListener(request, response))),
  serve(onlyService),
])
const oldForm = await serve((request, response) => {
  request.resume()
  const headers = { 'content-type': 'application/json', 'service-version': '2025-01-01' }
  response.writeHead(request.method === 'POST' ? 200 : 404, headers).end('{"data":{"valid":true}}')
})
const endless = await serve((_request, response) => void response.writeHead(200).write(' '))
const lateClock = await serve((request, response) => {
  response.setHeader('date', new Date(Date.now() - 3_600_000).toUTCString())
  void listener(request, response)
})

interface Case {
  readonly url: string
  readonly key?: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly code: number
  readonly says: RegExp
}

const demo = keys['demo full'].text
const refused = (says: RegExp, more: Partial<Case> = {}): Case => ({ url: here, code: 1, says, ...more })
const failed = (url: string, says: RegExp, more: Partial<Case> = {}): Case => ({
  ...more,
  url,
  code: 3,
  says,
})
const cases: Readonly<Record<string, Case>> = {
  'a mistyped key': refused(/was not sent: its checksum is wrong/, { key: `${demo.slice(0, -1)}?` }),
  'a key of another deployment': refused(
    /\(key_invalid\)\n {2}Its checksum is correct, so .* belongs to another deployment\./,
    { key: mintKey('spk', 'live').text },
  ),
  'a revoked key': refused(
    /\(key_revoked\)\n.*another key\. The operator's command: partner-api keys issue demo --name NAME\n/,
    { key: keys['demo revoked'].text },
  ),
  'an expired key': refused(/\(key_expired\)\n.*partner-api keys issue demo --name NAME\n/, {
    key: keys['demo expired'].text,
  }),
  'a disabled key': refused(
    new RegExp(`\\(key_disabled\\)\n.*partner-api keys enable ${keys['demo disabled'].id}\n`),
    { key: keys['demo disabled'].text },
  ),
  'the slug of another partner': refused(/\(partner_mismatch\)\n.*check the partner slug\./, {
    args: ['--partner', 'acme'],
  }),
  'a suspended partner': refused(/\(partner_suspended\)\n.*partner-api partners resume hush\n/, {
    key: keys['hush full'].text,
    args: ['--partner', 'hush'],
  }),
  'an address that is not allowed': refused(
    /\(address_not_allowed\)\n.*allow-list: .*partner-api keys show \w{12}\n/,
    { key: keys['demo fenced'].text },
  ),
  'a scope that the key lacks': refused(
    new RegExp(
      'not ready: the module banner needs the scope read:banner\\. Ask the operator to grant the key the scope ' +
        `read:banner\\. .*: partner-api scopes grant ${keys['demo profiles'].id} read:banner\n`,
    ),
    { key: keys['demo profiles'].text, args: ['--module', 'banner'] },
  ),
  'an inactive module': refused(
    /not ready: the module banner is not active .*: partner-api modules activate acme banner\n$/,
    { key: keys['acme full'].text, args: ['--partner', 'acme', '--module', 'banner'] },
  ),
  'too many requests': refused(
    /\(rate_limited\)\n {2}Try again in \d+ seconds, at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.\n/,
    { key: limited },
  ),
  'too many requests for a gateway': {
    url: await answering(429, '{}', { 'retry-after': '7' }),
    code: 1,
    says: /server in front .* limits requests: .* answered 429\. Try again in 7 seconds, at /,
  },
  'a clock that is wrong': {
    url: lateClock,
    code: 0,
    says: /^warning: The clock of this machine is 60 minutes ahead of that of the deployment\. Correct it/,
  },
  'an unknown host': failed(
    'https://api.invalid',
    /could not be resolved \(DNS\).*\. Check the spelling of api\.invalid, and the name servers/,
  ),
  'a port without a server': failed(
    `http://127.0.0.1:${await freePort()}`,
    /the connection was refused.*\. Check the port in --url/,
  ),
  'a server that closes the connection': failed(
    await serve((_request, response) => response.destroy()),
    /the connection was closed.*\. If it speaks TLS, pass --url https:\/\/127/,
  ),
  'https:// for a server without TLS': failed(
    here.replace('http', 'https'),
    /does not speak TLS.*\. Check the port, or pass --url http:\/\/127\S+, which sends the key unencrypted\./,
  ),
  'an HTML page': failed(
    await html(200, 'Acme &mdash; Home'),
    /the response is the HTML page "Acme &mdash; Home"\. The base path in --url is \/, and/,
  ),
  'a redirect to https://': failed(
    await redirecting((path, host) => `https://${host}${path}`),
    /api-catalog redirects to https:\/\/127\S+ verify does not follow redirects, .* Pass --url https:\/\/127[^/]+\.\n/,
  ),
  'a redirect to a login page': failed(
    await redirecting(() => 'https://login.example/'),
    /verify-key redirects to https:\/\/login\.example\/\. .*If that is the right deployment/,
  ),
  'a redirect to an address without a host': failed(
    await answering(307, '', { location: 'data:/service/developer/verify-key' }),
    /redirects to data:\/service\/developer\/verify-key\. .*If that is the right deployment/,
  ),
  'a redirect that adds a slash': failed(
    await redirecting((path) => `${path}/`),
    /Ask the operator to have the server in front of the service leave its paths/,
  ),
  'an address that ends in /service': failed(
    `${here}/service/`,
    /\/service\/service\/\S+ is not .* --url ends before the name of the service: pass --url http:\/\/[\d.]+:\d+\.$/m,
  ),
  'the address of an endpoint': failed(
    `${here}/api/service/developer/verify-key`,
    /--url ends before the name of the service: pass --url http:\/\/[\d.]+:\d+\/api\.$/m,
  ),
  'a wrong service name': failed(
    acme,
    /it has no verify-key there\. The base path in --url is \/, and the service name acme: check --url and/,
    { args: ['--service-name', 'acme'] },
  ),
  'a site without this API': failed(
    await html(404, 'Not found'),
    /status 404 and the HTML page "Not found"\. The base path/,
  ),
  'another API': failed(
    await answering(404, '{"message":"no Route matched"}'),
    /status 404 and JSON of another API\. The base path/,
  ),
  'a proxy before a service that is down': failed(
    await html(502, '502 Bad Gateway'),
    /service is down behind .* answered 502 with the HTML page "502 Bad Gateway"\. Ask the operator to start it/,
  ),
  'an unavailable store': failed(
    await answering(503, '{"title":"Store unavailable","code":"store_unavailable","detail":"No store."}'),
    /\(store_unavailable\)\n {2}Try again/,
  ),
  'a response that does not end': failed(
    endless,
    /did not end within the time of --timeout\. To allow more, pass --timeout 5m\./,
    { args: ['--timeout', '1s'] },
  ),
  'a response without bounds': failed(await answering(200, ' '.repeat(4_194_305)), /longer than 4 MiB/),
  'no time': { url: here, args: ['--timeout', '0'], code: 2, says: /--timeout must be 1s or more/ },
  'an old release': failed(
    oldForm,
    /another release \(version 2025-01-01, and this program has \d{4}-\d\d-\d\d\): .*Use the program of that release/,
  ),
}

function verify({ url, key = demo, args = [], env = {} }: Omit<Case, 'code' | 'says'>) {
  const partner = args.includes('--partner') ? [] : ['--partner', 'demo']
  return runProgram(['verify', '--url', url, ...partner, ...args], { env: { PARTNER_API_KEY: key, ...env } })
}

t.test('every failure has a sentence with the next step, and its exit code', async (t) => {
  await verify({ url: here, key: limited })
  const ended = await Promise.all(Object.values(cases).map(verify))
  for (const [index, [name, { code, says, key = demo }]] of Object.entries(cases).entries()) {
    const { code: actual, stdout, stderr } = ended[index]!
    t.equal(actual, code, name)
    t.match(stderr, says, name)
    t.notMatch(stdout + stderr, key, name)
    t.notMatch(stderr, /^ +at /m)
  }
  t.equal(leaked.length, 2, 'the key is not sent over http:// if the address redirects to https://')
})

t.test('a server that does not respond is given up', async (t) => {
  const { timeout } = AbortSignal
  // A hundredth of the time.
  t.intercept(AbortSignal, 'timeout', { value: (ms: number) => timeout.call(AbortSignal, ms / 100) })
  const silent = await listen(createNetServer(() => {}))
  t.match(await verify({ url: `http://${silent}` }), {
    code: 3,
    stderr: /no response within 10 s\. Check the port/,
  })
})

t.test('the service name is found in the API catalog', async (t) => {
  for (const url of [acme, `${acme}/`, `${prefixed}/partners/v1`, `${prefixed}/partners/v1/`]) {
    t.match(await verify({ url }), { code: 0, stderr: /^$/ }, url)
  }
  t.match(await verify({ url: bare }), { code: 0 }, 'without a catalog, the name is service')
  const linkset = ['https://other.example/other', '/acme-data'].map((href) => ({
    'service-desc': [{ href: `${href}/openapi.json` }],
  }))
  const mixed = await serve((request, response) => {
    if (request.url !== '/.well-known/api-catalog') return void acmeListener(request, response)
    response.end(JSON.stringify({ linkset }))
  })
  t.match(await verify({ url: mixed }), { code: 0 }, 'services of other hosts are ignored')
})
