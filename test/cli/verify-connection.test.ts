/** `verify` through proxies. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { createListener } from '../../adapters/runtimes/node.ts'
import { createPartnerApi } from '../../core/api.ts'
import { freePort } from '../postgres/free-port.ts'
import { type Ended, runProgram } from '../support/cli-program.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { fillWorld } from '../support/world.ts'

const store = await openMemoryStore()
const { keys } = await fillWorld(store)
const key = keys['demo full'].text
const api = createPartnerApi({ store })
t.teardown(() => api.close())
const listener = createListener(api)

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

function verify(url: string, env: Readonly<Record<string, string>>, ...args: string[]): Promise<Ended> {
  return runProgram(['verify', '--url', url, '--partner', 'demo', ...args], {
    env: { PARTNER_API_KEY: key, ...env },
  })
}

const valid = { code: 0, stdout: /The key is valid/ }

/** A proxy that resolves every host to this machine and records its requests. */
interface Proxy {
  readonly address: string
  readonly requests: string[]
}

/** @param status Other than 200: it refuses. */
async function startProxy(status = 200): Promise<Proxy> {
  const requests: string[] = []
  const server: Server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    if (status !== 200) return response.writeHead(status).end()
    request.url = new URL(request.url!).pathname
    void listener(request, response)
  })
  server.on('connect', ({ url = '' }, near) => {
    requests.push(`CONNECT ${url}`)
    near.end(`HTTP/1.1 ${status} No\r\n\r\n`)
  })
  return { address: `127.0.0.1:${await listen(server)}`, requests }
}

t.test('a proxy sees requests over http, and the program warns', async (t) => {
  const proxy = await startProxy()
  const ended = await verify('http://api.example/', { http_proxy: `http://${proxy.address}` })
  t.match(ended, { ...valid, stderr: /^warning: http:/ })
  t.same(proxy.requests, [
    'GET http://api.example/.well-known/api-catalog',
    'POST http://api.example/service/developer/verify-key',
  ])
})

t.test('no proxy is used for localhost and hosts in NO_PROXY', async (t) => {
  const proxy = await startProxy()
  const env = { HTTP_PROXY: `http://${proxy.address}`, HTTPS_PROXY: `http://${proxy.address}` }
  const port = await listen(createServer((request, response) => void listener(request, response)))
  const url = `http://127.0.0.1:${port}`
  t.match(await verify(url, env), { code: 0 })
  const unreached = await verify('https://api.invalid', { ...env, NO_PROXY: 'api.invalid' })
  t.match(unreached, {
    code: 3,
    stderr: /The proxy in HTTPS_PROXY applies, except to the hosts in NO_PROXY\./,
  })
  t.same(proxy.requests, [])
})

t.test('the first proxy variable applies, with or without http://', async (t) => {
  const proxy = await startProxy(403)
  const cases: readonly Readonly<Record<string, string>>[] = [
    { HTTPS_PROXY: proxy.address, HTTP_PROXY: 'ftp://proxy.example' },
    { https_proxy: proxy.address, HTTPS_PROXY: 'ftp://proxy.example' },
    { https_proxy: '', HTTPS_PROXY: proxy.address },
    { HTTP_PROXY: proxy.address },
  ]
  for (const env of cases) {
    const { code, stderr } = await verify('https://api.example', env)
    const [variable] = Object.entries(env).find(([, value]) => value === proxy.address)!
    t.match(stderr, `the proxy answered with 403. `)
    t.match(stderr, `add api.example to NO_PROXY. The proxy in ${variable} applies.`)
    t.equal(code, 3)
  }
  t.equal(proxy.requests.filter((line) => line === 'CONNECT api.example:443').length, cases.length)
})

t.test('proxy errors are reported without the password', async (t) => {
  const refusing = await startProxy(407)
  const noProxy = 'PROXY is not the address of a proxy'
  const cases: Readonly<Record<string, readonly [code: number, message: string | RegExp]>> = {
    [`127.0.0.1:${await freePort()}`]: [
      3,
      /the connection was refused.*\. The proxy in HTTPS?_PROXY applies/i,
    ],
    [refusing.address]: [3, 'the proxy answered with 407'],
    '': [2, noProxy],
  }
  const proxies = Object.entries(cases).map(([host, result]) =>
    [`http://someone:pass-word@${host}`, ...result] as const
  )
  const other = ['ftp://someone:pass-word@proxy.example', 2, noProxy] as const
  for (const [proxy, code, stderr] of [...proxies, other]) {
    for (const url of ['https://api.example', 'http://api.example']) {
      const ended = await verify(url, { HTTPS_PROXY: proxy, HTTP_PROXY: proxy })
      t.match(ended, { code, stderr }, `${url} through ${proxy}`)
      t.notMatch(ended.stdout + ended.stderr, /pass-word|trace|spk_/)
    }
  }
})
