import { once } from 'node:events'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { BLOCKED_PORTS } from '../../cli/serve/blocked-ports.ts'
import { freePort } from '../postgres/free-port.ts'
import { until } from '../postgres/until.ts'
import {
  documentOf,
  ending,
  programOn,
  runProcess,
  runProgram,
  startProgram,
  startServing,
  stopServing,
  temporaryFolder,
} from '../support/cli-program.ts'

const { badPorts }: { readonly badPorts: readonly string[] } = createRequire(import.meta.url)(
  'undici/lib/web/fetch/constants.js',
)
const folder = temporaryFolder()
const storeUrl = (name: string) => `sqlite:${join(folder, name)}`
const env = { PARTNER_API_STORE: storeUrl('store.db') }
const { run, json } = programOn(env.PARTNER_API_STORE)
const start = (args: readonly string[], store: string = env.PARTNER_API_STORE) => startServing(args, store)
// `npm start` in this checkout creates one.
const hadDefaultStore = existsSync('partner-api.db')
const keyPattern = /spk_(?:live|test)_\w{12}_\w{38}/

test('demo serves sample content and prints a command that works', async (t) => {
  const demo = await start(['demo', '--port', '0'], 'memory:')
  t.teardown(() => demo.child.kill())
  const docs = await fetch(/open (\S+)/.exec(demo.words)![1]!)
  t.match(docs.headers.get('content-type'), 'text/html', 'the printed URL is a web page')
  const [, header, key, url] = /^ {2}curl -H "([\w-]+): (\w+)" "([^"]+)"$/m.exec(demo.words) ?? []
  t.match(key, keyPattern)
  const answer = await fetch(url!, { headers: { [header!]: key! } })
  t.equal((await answer.json()).data.length, 3, 'the curl line works when pasted')
  const ended = await stopServing(demo, 'SIGINT')
  t.equal(ended.code, 0)
  t.match(ended.stdout, /^listening on http:\/\/127\.0\.0\.1:\d+\n$/, 'standard output has one line')
  t.match(ended.stderr, `${demo.url}/service/docs\nCtrl-C stops the server.\n`)
  t.notMatch(ended.stderr, 'administration')
})

test('a server whose standard output has no reader goes on', async (t) => {
  const port = await freePort()
  const child = startProgram(['serve', '--port', String(port)], { env })
  t.teardown(() => child.kill('SIGKILL'))
  child.stdout.destroy()
  const ended = ending(child)
  const isServing = () => fetch(`http://127.0.0.1:${port}/service/health`).then(({ ok }) => ok, () => false)
  await Promise.race([until(isServing, 'the server'), ended])
  child.kill('SIGHUP')
  t.match(await ended, { code: 0, signal: null })
})

test('a demo needs an empty store', async (t) => {
  const served = await start(['demo', '--port', '0', '--json'], storeUrl('demo.db'))
  t.teardown(() => served.child.kill())
  const second = await run('--store', storeUrl('demo.db'), 'demo', '--port', '0', '--json')
  const remedy = { command: 'serve', args: [] }
  t.equal(second.code, 1)
  t.match(JSON.parse(second.stdout), { error: { detail: / partner-api --store \S+demo\.db serve$/, remedy } })
  const other = await run('demo', '--port', new URL(served.url).port)
  t.match(other, { code: 1, stdout: '', stderr: 'is in use' })
  const human = await run('demo', '--no-serve')
  t.match(human, { code: 0, stderr: keyPattern }, 'a demo that could not listen left the store empty')
  t.match(human.stderr, /profiles \(64\)/)
  t.equal((await run('demo', '--no-serve')).code, 1)
  t.match(await run('demo', '--no-serve', '--or-serve'), { code: 0, stdout: '' })
  const again = await start(['demo', '--port', '0', '--or-serve'])
  t.match(again.words, /^The store at .*store\.db already has partners, .*keys issue demo --name NAME$/ms)
  t.equal((await fetch(`${again.url}/service/health`)).status, 200)
  t.equal((await stopServing(again)).code, 0)
  t.equal((await programOn('memory:').run('demo', '--no-serve')).code, 2)
  const { data } = documentOf(await stopServing(served))
  t.match(data, {
    partner: 'demo',
    key: keyPattern,
    environment: 'live',
    scopes: { length: 8 },
    content: { industries: 17, plans: 4, banners: 1, profiles: 64 },
  })
})

test(
  'serve warns if other accounts can read the store',
  { skip: process.platform === 'win32' },
  async (t) => {
    const file = join(folder, 'exposed.db')
    const opened = async () => {
      const { stderr } = await stopServing(await start(['serve', '--port', '0'], `sqlite:${file}`))
      return JSON.parse(stderr.split('\n')[0]!)
    }
    t.match(
      await opened(),
      { level: 'info', event: 'store_opened', warning: undefined },
      'only the owner can read a new store',
    )
    chmodSync(file, 0o640)
    const warning = new RegExp(`^Other accounts can read ${file}.* To prevent it: chmod 600 ${file}`)
    t.match(await opened(), { level: 'warn', event: 'store_opened', warning })
  },
)

test('changes by commands take effect on a running server, which logs its requests', async (t) => {
  const served = await start(['serve', '--port', '0', '--max-staleness', '0', '--log', 'all'])
  t.teardown(() => served.child.kill())
  const { key, id } = (await json('keys', 'issue', 'demo', '--name', 'k')).data
  const read = async () => {
    const headers = { 'X-Service-Partner-Key': key }
    return (await fetch(`${served.url}/service/public/profiles?partner=demo&limit=1`, { headers })).status
  }
  t.equal(await read(), 200)
  const { receipt } = await json('keys', 'revoke', id, '--wait')
  t.match(receipt.replicas, [{ name: new RegExp(`^.+:${served.child.pid}$`), applied: true }])
  t.equal(await read(), 401)
  const { code, stderr } = await stopServing(served)
  t.equal(code, 0)
  t.same((await json('keys', 'issue', 'demo', '--name', 'k', '--wait')).receipt.replicas, [])
  const log = stderr.trimEnd().split('\n').map((line) => JSON.parse(line))
  t.match(log[0], { event: 'store_opened', store: join(folder, 'store.db'), created: false })
  t.match(log.at(-1), { event: 'stopped' })
  t.match(log.filter(({ event }) => event === 'request'), [
    { status: 200, key_id: id, path: '/service/public/profiles' },
    { status: 401 },
  ])
  t.notMatch(stderr, key.slice(-38))
})

test('the options of serve configure the service', async (t) => {
  const options = [
    '--service-name',
    'acme',
    '--limit',
    'key=7/30',
    '--limit',
    'verify=0',
    '--max-staleness',
    '500',
    '--problem-base',
    'https://acme.example/problems/',
    '--allow-browsers',
    '--title',
    'Acme API',
    '--contact',
    'api@acme.example',
    '--public-url',
    'https://api.acme.example/',
    '--terms',
    'https://acme.example/terms',
  ]
  const logo = join(folder, 'logo.svg')
  writeFileSync(logo, '<svg/>')
  const served = await start([
    'serve',
    '--port',
    '0',
    '--json',
    '--trust-proxies',
    '1',
    '--log',
    'off',
    '--logo',
    logo,
    '--stale-if-error',
    '60',
    '--limits-per-process',
    ...options,
  ])
  t.teardown(() => served.child.kill())
  const issued = (await json('keys', 'issue', 'demo', '--name', 'k')).data
  const answer = await fetch(`${served.url}/acme/public/plans?partner=demo`, {
    headers: { 'X-Acme-Partner-Key': issued.key },
  })
  t.equal(answer.headers.get('ratelimit-policy'), '"key";q=7;w=30')
  const refused = await fetch(`${served.url}/acme/public/plans?partner=demo`)
  t.match(await refused.json(), { type: 'https://acme.example/problems/key-missing' })
  const document = (await json('openapi', ...options)).data
  t.same(await (await fetch(`${served.url}/acme/openapi.json`)).json(), document)
  t.match(document, {
    info: {
      title: 'Acme API',
      contact: { email: 'api@acme.example' },
      termsOfService: 'https://acme.example/terms',
    },
    servers: [{ url: 'https://api.acme.example' }],
  })
  t.match(JSON.parse((await run('openapi')).stdout), {
    openapi: /^3\.1\./,
    paths: { '/service/public/profiles': { get: {} } },
  })
  t.match(
    await (await fetch(`${served.url}/acme/docs`)).text(),
    `<img src="data:image/svg+xml;base64,${btoa('<svg/>')}"`,
  )
  t.match(await stopServing(served), { code: 0, stderr: '' })

  const large = join(folder, 'large.png')
  writeFileSync(large, Buffer.alloc(32_769))
  const invalid = {
    logo: [join(folder, 'none.png'), large, join(folder, 'store.db'), folder],
    terms: ['acme', 'javascript:alert(1)'],
    port: ['65536', 'http'],
    'max-staleness': ['10001'],
    limit: ['key', 'other=1/1'],
    'service-name': ['Acme'],
    'trust-proxies': ['-1'],
    'problem-base': ['acme'],
    'public-url': ['acme'],
    log: ['loud'],
    title: ['', 'a\nb'],
    contact: ['', 'a\u0007@acme.example', 'javascript://acme', 'http://['],
    'stale-if-error': ['3601', 'long'],
    'replica-name': ['', 'a\nb', 'x'.repeat(201)],
  }
  for (const [name, values] of Object.entries(invalid)) {
    for (const value of values) {
      const { code, stdout } = await run('serve', `--${name}=${value}`)
      t.same([code, stdout], [2, ''], `${name} ${value}`)
    }
  }
})

test('PORT and HOST are used without --port and --host', async (t) => {
  const port = String(await freePort())
  const fresh = storeUrl('fresh.db')
  const served = await startServing(['serve'], fresh, { env: { PORT: port, HOST: 'localhost' } })
  t.equal(served.url, `http://localhost:${port}`)
  const { stderr } = await stopServing(served)
  t.match(JSON.parse(stderr.split('\n', 1)[0]!), {
    event: 'store_opened',
    store: join(folder, 'fresh.db'),
    created: true,
  })
  for (
    const [args, env] of [
      [['serve', '--port', '0', '--host', '127.0.0.1'], { PORT: 'none', HOST: '192.0.2.1' }],
      [['serve', '--port', '0'], { PORT: '', HOST: '' }],
    ] as const
  ) {
    const other = await startServing(args, fresh, { env })
    t.match(new URL(other.url), { hostname: '127.0.0.1' })
    t.equal((await stopServing(other)).code, 0)
  }
  const wrong = await runProcess(['serve'], { env: { ...env, PORT: 'none' } })
  t.match(wrong, { code: 2, stderr: 'error: PORT: It must be' })
})

test('serve reports why it cannot listen', async (t) => {
  const blocker = createServer().listen(0, '127.0.0.1')
  await once(blocker, 'listening')
  t.teardown(() => blocker.close())
  const { port } = blocker.address() as AddressInfo
  const taken = await runProcess(['serve', '--port', String(port)], { env })
  t.match(taken, {
    code: 1,
    stdout: '',
    stderr: /^error: Port \d+ on 127\.0\.0\.1 is in use\. .*--port 0 .*\n$/,
  })
  const start = { columns: 80, env: { NO_COLOR: '1', PARTNER_API_STORE: storeUrl('misspelled.db') } }
  const created = await runProgram(['serve', '--port', String(port)], start)
  t.match(created.stderr, /^Created a new, empty store at .*misspelled\.db\.\nerror: /, 'on a terminal')
  const nowhere = await run('serve', '--port', '0', '--host', '192.0.2.1')
  t.match(nowhere, { code: 1, stdout: '', stderr: 'no address 192.0.2.1' })
  const { receipt } = await json('partners', 'create', 'unserved', '--name', 'Unserved', '--wait')
  t.same(receipt.replicas, [], 'a server that could not listen is not waited for')
})

test('the root leads to the reference page', async (t) => {
  const served = await start(['serve', '--port', '0', '--log', 'off'], 'memory:')
  const home = async (method: string, headers = {}) => {
    const response = await fetch(`${served.url}/?from=bookmark`, { method, redirect: 'manual', headers })
    const text = await response.text()
    const fields = ['location', 'cache-control', 'allow'].map((field) => response.headers.get(field))
    t.match(response.headers.get('x-request-id'), /^req_/)
    return [response.status, ...fields, text === '' ? '' : JSON.parse(text).code]
  }
  const methods = 'GET, HEAD, OPTIONS'
  for (const method of ['GET', 'HEAD']) {
    t.strictSame(await home(method), [302, '/service/docs', 'no-store', null, ''], method)
  }
  t.match(await home('OPTIONS'), [204, null, null, methods, ''])
  t.match(await home('POST'), [405, null, String, methods, 'method_not_allowed'])
  const old = { 'service-version': '1999-01-01' }
  t.match(await home('GET', old), [400, null, String, null, 'unknown_version'])
  t.strictSame((await home('HEAD', old)).at(-1), '')
  t.equal((await fetch(`${served.url}/nothing`)).status, 404)
  await stopServing(served)
})

test('a store in memory is served with a warning', async (t) => {
  const served = await start(['serve', '--port', '0'], 'memory:')
  t.match(await stopServing(served), { code: 0, stderr: /^warning: .*empty/ })
})

test('serve warns of a port that fetch refuses', async (t) => {
  t.same(BLOCKED_PORTS, new Set([0, ...badPorts.map(Number)]), 'the ports of undici')
  // Few programs listen there.
  const host = process.platform === 'linux' ? '127.10.0.80' : '127.0.0.1'
  const { stderr } = await stopServing(await start(['serve', '--host', host, '--port', '10080']))
  const events = stderr.trimEnd().split('\n').map((line) => JSON.parse(line))
  t.match(events.map(({ event }) => event), ['store_opened', 'port_blocked', 'stopped'])
  t.match(events[1], { level: 'warn', warning: /refuse to connect to port 10080\. .*--port/ })
})

test('the end', (t) => {
  t.equal(existsSync('partner-api.db'), hadDefaultStore, 'no test used the default store')
  t.end()
})
