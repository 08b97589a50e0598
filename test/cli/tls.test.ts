/** `verify` over TLS: certificates, and proxies that tunnel. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Server } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { createListener } from '../../adapters/runtimes/node.ts'
import { createPartnerApi } from '../../core/api.ts'
import { expireCertificate, makeCertificate, noOpenssl } from '../support/certificate.ts'
import { runProgram, temporaryFolder } from '../support/cli-program.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { fillWorld } from '../support/world.ts'

const store = await openMemoryStore()
const { keys } = await fillWorld(store)
const key = keys['demo full'].text
const api = createPartnerApi({ store })
t.teardown(() => api.close())
const listener = createListener(api)
const folder = temporaryFolder()
const file = (name: string) => join(folder, name)

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

/** Serves with a new certificate for a host, and writes it to the file with this name. @returns The port. */
function serveAs(host: string, name: string, isExpired = false): Promise<number> {
  const cert = file(`${name}.pem`)
  const secret = file(`${name}.key`)
  makeCertificate(host, cert, secret)
  if (isExpired) expireCertificate(cert, secret)
  return listen(createTlsServer({ cert: readFileSync(cert), key: readFileSync(secret) }, listener))
}

const verify = (url: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) =>
  runProgram(['verify', '--url', url, '--partner', 'demo', ...args], {
    env: { PARTNER_API_KEY: key, ...env },
  })
const trusting = (name: string): readonly string[] => ['--ca-file', file(name)]
const valid = { code: 0, stdout: /The key is valid/ }

await t.test('certificates', { skip: noOpenssl }, async (t) => {
  const good = await serveAs('localhost', 'good')
  const other = await serveAs('api.example', 'other')
  const expired = await serveAs('localhost', 'expired', true)
  writeFileSync(file('nothing.pem'), 'no certificate')
  writeFileSync(file('half.pem'), readFileSync(file('good.pem')).subarray(0, 200))

  await t.test('the key is not sent to an untrusted server unless --ca-file has its certificate', async (t) => {
    const url = `https://localhost:${good}`
    const message = /not signed by a trusted authority\. If you trust .* with --ca-file FILE\./
    t.match(await verify(url), { code: 3, stderr: message })
    t.match(await verify(url, trusting('other.pem')), { code: 3, stderr: message })
    t.match(await verify(url, trusting('good.pem')), valid)
    for (const name of ['nothing.pem', 'half.pem', 'good.key', 'gone.pem']) {
      t.match(await verify(url, trusting(name)), { code: 2, stderr: name })
    }
  })

  await t.test('what is wrong with a certificate is explained', async (t) => {
    t.match(await verify(`https://localhost:${other}`, trusting('other.pem')), {
      code: 3,
      stderr:
        /certificate is for another host\. Its names are DNS:api\.example: .* certificate for localhost\./,
    })
    t.match(await verify(`https://localhost:${expired}`, trusting('expired.pem')), {
      code: 3,
      stderr: /certificate has expired\. Ask the operator to renew it, unless the clock .* shows \d{4}-/,
    })
    t.match(await verify(`http://localhost:${good}`), {
      code: 3,
      stderr: /\. If it speaks TLS, pass --url https:\/\/localhost/,
    })
  })

  await t.test('a proxy tunnels https without seeing the request', async (t) => {
    const requests: string[] = []
    const server = createServer((_request, response) => response.writeHead(404).end())
    server.on('connect', ({ url, headers }, near) => {
      requests.push(`CONNECT ${url}`, JSON.stringify(headers))
      const far = connect(other, '127.0.0.1', () => near.write('HTTP/1.1 200 OK\r\n\r\n'))
      near.on('error', () => far.destroy()).pipe(far).on('error', () => near.destroy()).pipe(near)
    })
    const env = { HTTPS_PROXY: `http://someone:pass-word@127.0.0.1:${await listen(server)}` }
    const ended = await verify('https://api.example', trusting('other.pem'), env)
    t.match(ended, { ...valid, stderr: /^$/ })
    t.match(requests[0], 'CONNECT api.example:443')
    t.match(requests[1], `Basic ${Buffer.from('someone:pass-word').toString('base64')}`)
    t.notMatch(requests.join(), key)
    t.match(await verify('https://api.example', [], env), { code: 3, stderr: /trusted authority/ })
  })
})
