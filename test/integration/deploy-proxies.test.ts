/** Runs the service behind the proxies of the examples. Their files are unchanged but for ports and time limits. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { holdsMounted } from '../embedding/mounted.ts'
import { freePort } from '../postgres/free-port.ts'
import { until } from '../postgres/until.ts'
import {
  cleanEnv,
  programOn,
  type Served,
  startServing,
  stopServing,
  temporaryFolder,
} from '../support/cli-program.ts'
import { readPage } from './docs.ts'

interface Proxy {
  readonly file: string
  readonly versionFlag: string
  /** Writes the configuration. @returns The arguments that start it. */
  configure(folder: string, text: string, port: number): readonly string[]
  /** What a client gets whose body does not arrive. */
  readonly stalled: RegExp
  /** Whether what is safe to repeat is, although it has a body. Caddy before 2.8 has closed that by then. */
  readonly repeatsBodies: boolean
  /** Refuses floods of an address. */
  readonly limits: boolean
  /** Its logs besides standard error. */
  readonly logs: readonly string[]
}

const proxies: Readonly<Record<string, Proxy>> = {
  nginx: {
    file: 'examples/nginx.conf',
    versionFlag: '-v',
    // It waits for the body itself, and closes the connection.
    stalled: /^$/,
    repeatsBodies: true,
    limits: true,
    logs: ['partner-api.log', 'partner-api-error.log'],
    configure(folder, text, port) {
      const site = text.replace('listen 80;', `listen 127.0.0.1:${port};`).replaceAll('/var/log/nginx/', '')
      writeFileSync(join(folder, 'site.conf'), site)
      const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      writeFileSync(
        join(folder, 'nginx.conf'),
        `daemon off;
        master_process off;
        pid pid;
        error_log stderr warn;
        events {}
        http {
          access_log access.log;
          gzip on;
          ${kinds.map((kind) => `${kind}_temp_path ${kind};`).join('\n')}
          include site.conf;
        }`,
      )
      return ['-p', folder, '-c', join(folder, 'nginx.conf')]
    },
  },
  caddy: {
    file: 'examples/deploy/Caddyfile',
    versionFlag: 'version',
    stalled: /^HTTP\/1.1 408 .*"request_timeout"/s,
    repeatsBodies: false,
    limits: false,
    logs: [],
    configure(folder, text, port) {
      const site = text.replace('{\n', '{\n\tadmin off\n').replace(
        '\nsite.example',
        `\nhttp://127.0.0.1:${port}`,
      )
      writeFileSync(join(folder, 'Caddyfile'), site)
      return ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')]
    },
  },
}

const PATH = `${process.env['PATH']}${delimiter}/usr/sbin`

t.jobs = 2
await Promise.all(
  Object.entries(proxies).map(([name, proxy]) => {
    const { error } = spawnSync(name, [proxy.versionFlag], { env: { PATH } })
    const skip = error === undefined ? false : `${name} is not installed`
    return t.test(name, { skip, buffered: true }, (t) => behind(t, name, proxy))
  }),
)

async function behind(t: Test, name: string, proxy: Proxy): Promise<void> {
  const store = `sqlite:${join(temporaryFolder(), 'partner-api.db')}`
  const { run, json } = programOn(store)
  const { key } = (await json('demo', '--no-serve')).data
  const serve = async (port = '0'): Promise<Served> => {
    // Each server counts failed authentications by itself.
    const limits = ['verify=0', 'key=0', 'authfail=10/60'].flatMap((limit) => ['--limit', limit])
    const address = ['--public-url', 'https://site.example/partners']
    const args = [
      'serve',
      '--port',
      port,
      '--trust-proxies',
      '1',
      '--log',
      'off',
      '--drain-delay',
      '3',
      ...limits,
      ...address,
    ]
    const served = await startServing(args, store)
    t.teardown(() => served.child.kill('SIGKILL'))
    return served
  }
  const servers = await Promise.all([serve(), serve()])
  const { url, logged } = await startProxy(
    t,
    name,
    proxy,
    servers.map(({ url }) => Number(new URL(url).port)),
  )
  const list = '/service/public/plans?partner=demo'
  const ask = (headers: HeadersInit = {}) =>
    fetch(url + list, {
      headers: { 'x-service-partner-key': key, ...Object.fromEntries(new Headers(headers)) },
    })

  // The longest wait of all goes on beside the others.
  const stalled = stall(`${url}/service/developer/verify-key`, key)

  await t.test('the service uses the address that the proxy names, not the one that the client claims', async (t) => {
    const args = ['keys', 'issue', 'demo', '--name', 'From one address', '--allow', '127.0.0.1/32', '--quiet']
    const headers = {
      'x-service-partner-key': (await run(...args)).stdout.trim(),
      'x-forwarded-for': '198.51.100.7',
    }
    t.equal((await ask(headers)).status, 200)
    const { status } = await fetch(servers[0]!.url + list, { headers })
    t.equal(status, 403, 'without the proxy, the header is trusted')
  })

  await t.test('an ETag stays strong', async (t) => {
    const etag = (await ask({ 'accept-encoding': 'gzip' })).headers.get('etag') ?? ''
    t.match(etag, /^"/)
    t.equal((await ask({ 'if-none-match': etag })).status, 304)
  })

  await t.test('what is safe to send again goes to the other server when one closes the connection', async (t) => {
    const closing = createServer((socket) =>
      socket.on('error', () => {}).once('data', () => socket.destroy())
    )
    await once(closing.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => closing.close())
    const ports = [(closing.address() as AddressInfo).port, Number(new URL(servers[0]!.url).port)]
    const { url } = await startProxy(t, name, proxy, ports)
    // Two at once: each server gets one first.
    const lost = async (path: string, init: RequestInit = {}) => {
      const headers = { 'x-service-partner-key': key, 'content-type': 'application/json', ...init.headers }
      const answers = await Promise.all(
        [0, 1].map(() => fetch(`${url}/service/${path}`, { ...init, headers })),
      )
      await Promise.all(answers.map((answer) => answer.arrayBuffer()))
      return answers.filter(({ status }) => status === 502).length
    }
    const post = { method: 'POST', body: '{"partner":"demo"}' }
    t.equal(await lost('public/plans?partner=demo'), 0)
    if (!proxy.repeatsBodies) return
    t.equal(await lost('developer/verify-key', post), 0)
    t.equal(await lost('partner/signups', { ...post, headers: { 'idempotency-key': '1' } }), 0)
    t.equal(await lost('partner/signups', post), 1, 'a signup that could happen twice')
  })

  await t.test('the path arrives as the client sent it, and the catalog is found', async (t) => {
    const direct = servers[0]!.url
    for (
      const path of ['public/%70lans', 'public/profiles/a%2Fb', 'public/profiles/%C3%A9']
    ) {
      const [through, straight] = await Promise.all(
        [url, direct].map(async (base) => {
          const answer = await fetch(`${base}/service/${path}?partner=demo`, {
            headers: { authorization: `Bearer ${key}` },
          })
          return [answer.status, (await answer.json()).instance]
        }),
      )
      t.same(through, straight, path)
    }
    const home = await fetch(`${url}/`, { redirect: 'manual' })
    t.same([home.status, home.headers.get('location')], [302, '/partners/service/docs'])
    const catalog = await fetch(new URL('/.well-known/api-catalog', url))
    const { linkset: [{ item: [{ href }] }] } = await catalog.json()
    t.equal((await fetch(new URL(href, url))).status, 200)
    t.equal((await fetch(new URL('/elsewhere', url))).status, 404)
  })

  if (proxy.limits) {
    await t.test('a flood from one address is refused before it reaches the service', async (t) => {
      const { url } = await startProxy(
        t,
        name,
        proxy,
        servers.map(({ url }) => Number(new URL(url).port)),
        'slow',
      )
      const answers: Response[] = []
      // As many at once as the connections of this nginx allow.
      for (let round = 0; round < 15; round++) {
        const flood = Array.from({ length: 20 }, () => fetch(`${url}/service/health`))
        answers.push(...await Promise.all(flood))
        await Promise.all(answers.slice(-20).map((answer) => answer.arrayBuffer()))
      }
      const refused = answers.filter(({ status }) => status === 429)
      t.ok(refused.length > 0 && refused.length < 150, `${refused.length} of 300 are refused`)
      t.equal(refused[0]?.headers.get('retry-after'), '1')
      t.match(refused[0]?.headers.get('content-type'), 'application/problem+json')
      t.equal(answers.find(({ ok }) => ok)?.headers.get('retry-after'), null)
    })
  }

  // An address with failures may use the keys that the server knows.
  for (const { url } of servers) {
    t.equal((await fetch(`${url}${list}`, { headers: { 'x-service-partner-key': key } })).status, 200)
  }

  await t.test('it answers below its path', (t) => holdsMounted(t, { url, key }))

  t.match(await stalled, proxy.stalled, 'a request whose body does not arrive is ended')

  await t.test('no request is lost when both servers restart, one right after the other', async (t) => {
    const statuses: number[] = []
    const post = () =>
      fetch(`${url}/service/developer/verify-key`, {
        method: 'POST',
        headers: { 'x-service-partner-key': key, 'content-type': 'application/json' },
        body: '{"partner":"demo"}',
      })
    let isOver = false
    const restarted = (async () => {
      for (const [index, { url }] of servers.entries()) {
        const { code } = await stopServing(servers[index]!)
        t.equal(code, 0)
        servers[index] = await serve(new URL(url).port)
      }
    })().finally(() => isOver = true)
    // A pause, or the load takes a processor from the servers that restart.
    for (let more = 20; more > 0; more -= isOver ? 1 : 0) {
      const answers = await Promise.all([ask(), ask(), ask(), proxy.repeatsBodies ? post() : ask()])
      statuses.push(...answers.map(({ status }) => status))
      await Promise.all(answers.map((answer) => answer.arrayBuffer()))
      await delay(10)
    }
    await restarted
    t.same([...new Set(statuses)], [200], `${statuses.length} requests`)
  })

  await t.test('its own errors are problem documents, and no log has a key or the token of a link', async (t) => {
    const link = `${url}/service/claim/${'0'.repeat(31)}T`
    t.equal((await fetch(link, { method: 'POST' })).status, 404)
    for (const { child } of servers) {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    }
    const headers = { authorization: `Bearer ${key}`, 'x_service_partner_key': key, 'x-api-key': key }
    const [answer] = await Promise.all([ask(headers), fetch(`${url + list}&key=${key}`), fetch(link)])
    t.match(answer.headers.get('content-type'), 'application/problem+json')
    t.equal((await answer.json()).status, answer.status)
    t.ok(answer.status === 502 || answer.status === 503)
    await until(() => logged().split('/partners/service/public/plans').length > 20, 'the log')
    t.match(logged(), /\/partners\/service\/public\/plans.* 50[23]|plans.*"status":50[23]/)
    t.notMatch(logged(), key.slice(-20))
    await until(() => logged().split('/partners/service/claim/').length > 2, 'the log')
    t.notMatch(logged(), link.slice(-32))
  })
}

/** Sends a request without the end of its body. @returns The response, once the connection is closed. */
async function stall(url: string, key: string): Promise<string> {
  const { hostname, host, port, pathname } = new URL(url)
  const socket = connect(Number(port), hostname)
  let answer = ''
  socket.setEncoding('utf8').on('data', (text: string) => answer += text).on('error', () => {})
  const head = [`POST ${pathname} HTTP/1.1`, `Host: ${host}`, `X-Service-Partner-Key: ${key}`]
  head.push('Content-Type: application/json', 'Content-Length: 20', '', '{')
  socket.write(head.join('\r\n'))
  await once(socket, 'close')
  return answer
}

/** A proxy that sends what is below `/partners/` to the servers on these ports of this machine. */
async function startProxy(
  t: Test,
  name: string,
  { file, logs, configure }: Proxy,
  ports: readonly number[],
  rate: 'as fast as the tests' | 'slow' = 'as fast as the tests',
): Promise<{ readonly url: string; logged(): string }> {
  const folder = temporaryFolder()
  const port = await freePort()
  const text = readPage(file).replaceAll(/:878([78])\b/g, (_, last) => `:${ports[Number(last) - 7]}`)
    .replace('client_body_timeout 10s', 'client_body_timeout 1s')
    .replace('rate=50r/s', rate === 'slow' ? 'rate=1r/s' : 'rate=10000r/s')
  const child: ChildProcess = spawn(name, configure(folder, text, port), {
    env: cleanEnv({ PATH, HOME: folder }),
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => said += text)
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const url = `http://127.0.0.1:${port}/partners`
  await until(
    () => child.exitCode !== null || fetch(url).then(() => true, () => false),
    `${name} to listen`,
  )
  if (child.exitCode !== null) throw new Error(`${name} ended: ${said}`)
  const read = (name: string) =>
    existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : ''
  return { url, logged: () => said + logs.map(read).join('') }
}
