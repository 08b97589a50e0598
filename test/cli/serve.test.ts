import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { documentOf, runProgram, startServing, stopServing, temporaryFolder } from '../support/cli-program.ts'

const folder = temporaryFolder()
const storeUrl = (name: string) => `sqlite:${join(folder.path, name)}`
const env = { PARTNER_API_STORE: storeUrl('store.db') }
const run = (...args: string[]) => runProgram(args, { env })
const start = (args: readonly string[], store: string = env.PARTNER_API_STORE) => startServing(args, store)
// `npm start` in this checkout leaves one.
const hadDefaultStore = existsSync('partner-api.db')
const keyPattern = /spk_(?:live|test)_\w{12}_\w{38}/

test('demo', async (t) => {
  const demo = await start(['demo', '--port', '0'], 'memory:')
  const health = await fetch(`${demo.url}/service/health`)
  t.equal(health.status, 200)
  const page = await fetch(/open (\S+)/.exec(demo.words)![1]!)
  t.match(page.headers.get('content-type'), 'text/html', 'the address to open is a page')
  const ended = await stopServing(demo, 'SIGINT')
  t.equal(ended.code, 0)
  t.match(ended.stdout, /^listening on http:\/\/127\.0\.0\.1:\d+\n$/, 'nothing else on standard output')
  t.match(ended.stderr, `${demo.url}/service/docs`)

  const served = await start(['demo', '--port', '0', '--json'], storeUrl('demo.db'))
  t.teardown(() => served.child.kill())
  const [second, other] = await Promise.all([
    runProgram(['demo', '--port', '0', '--json'], { env: { PARTNER_API_STORE: storeUrl('demo.db') } }),
    runProgram(['demo', '--port', new URL(served.url).port], {
      env: { PARTNER_API_STORE: storeUrl('none.db') },
    }),
  ])
  t.match({ ...second, ...documentOf(second) }, {
    code: 1,
    error: { code: 'store_not_empty', detail: 'partner-api serve' },
  })
  t.match(other, { code: 1, stdout: '', stderr: 'is in use' })
  const again = await runProgram(['demo', '--no-serve', '--json'], {
    env: { PARTNER_API_STORE: storeUrl('none.db') },
  })
  t.equal(again.code, 0, 'a demo that could not listen left the store empty')

  const { data } = documentOf(await stopServing(served))
  t.match(data, {
    partner: 'demo',
    key: keyPattern,
    environment: 'live',
    content: { industries: 17, plans: 4, banners: 1, profiles: 64 },
  })
  t.equal(data.scopes.length, 8)
})

test('the curl line of the demo works when pasted', async (t) => {
  const demo = await start(['demo', '--port', '0'], 'memory:')
  t.teardown(() => demo.child.kill())
  const [, header, key, url] = /^ {2}curl -H "([\w-]+): (\w+)" "([^"]+)"$/m.exec(demo.words) ?? []
  t.match(key, keyPattern)
  const answer = await fetch(url!, { headers: { [header!]: key! } })
  t.equal(answer.status, 200)
  t.equal((await answer.json()).data.length, 3)
  t.equal((await stopServing(demo)).code, 0)
})

const noCurl = spawnSync('curl', ['--version']).status === 0 ? false : 'no curl on this machine'

test('the samples of the reference page work when pasted against the demo', { skip: noCurl }, async (t) => {
  const demo = await start(['demo', '--port', '0'], 'memory:')
  t.teardown(() => demo.child.kill())
  const [key] = keyPattern.exec(demo.words) ?? []
  const page = await (await fetch(`${demo.url}/service/docs`)).text()
  const samples = [...page.matchAll(/<code id="([\w-]+)">(curl.*?)<\/code>/gs)].map(([, id, code = '']) => ({
    id,
    command: code.replace(/<[^>]*>/g, '').replaceAll('https://api.example.com', demo.url)
      .replace(
        /&(amp|lt|gt|quot|#39);/g,
        (_, name: 'amp') => ({ amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" })[name],
      ),
  }))
  t.equal(samples.length, 18, 'one for every endpoint, and two to begin with')
  for (const { id, command } of samples) {
    t.notMatch(command, 'uuidgen')
    const child = spawn('sh', ['-c', `${command} -s -o /dev/null -w '%{http_code}'`], {
      env: { ...process.env, PARTNER_API_KEY: key },
    })
    let status = ''
    child.stdout.on('data', (chunk) => status += chunk)
    await once(child, 'close')
    t.match(status, /^20[01]$/, `${id}: ${command}`)
  }
  t.equal((await stopServing(demo)).code, 0)
})

test('demo without serving', async (t) => {
  const memory = await runProgram(['--store', 'memory:', 'demo', '--no-serve'])
  t.equal(memory.code, 2)
  const human = await run('demo', '--no-serve')
  t.equal(human.code, 0)
  t.match(human.stderr, keyPattern)
  t.match(human.stderr, /profiles \(64\)/)
  t.equal((await run('demo', '--no-serve')).code, 1)
})

test('serve warns of a store that others can read', { skip: process.platform === 'win32' }, async (t) => {
  const file = join(folder.path, 'exposed.db')
  const opened = async () => {
    const { stderr } = await stopServing(await start(['serve', '--port', '0'], `sqlite:${file}`))
    return JSON.parse(stderr.split('\n')[0]!)
  }
  t.match(
    await opened(),
    { level: 'info', event: 'store_opened', warning: undefined },
    'a new one is for its owner alone',
  )
  chmodSync(file, 0o640)
  const warning = new RegExp(`^Other accounts can read ${file}.* To prevent it: chmod 600 ${file}`)
  t.match(await opened(), { level: 'warn', event: 'store_opened', warning })
})

test('serve, and what commands change meanwhile', async (t) => {
  const served = await start(['serve', '--port', '0', '--max-staleness', '0', '--log', 'all'])
  t.teardown(() => served.child.kill())
  const issued = documentOf(await run('keys', 'issue', 'demo', '--name', 'k', '--json')).data
  const verify = (...args: string[]) =>
    runProgram(['verify', '--url', served.url, '--partner', 'demo', ...args], {
      env: { PARTNER_API_KEY: issued.key },
    })
  const read = () =>
    fetch(`${served.url}/service/public/profiles?partner=demo&limit=1`, {
      headers: { 'X-Service-Partner-Key': issued.key },
    })

  t.equal((await read()).status, 200)
  const [valid, json, stranger] = await Promise.all([
    verify('--module', 'profiles'),
    verify('--json'),
    runProgram(['verify', '--url', served.url, '--partner', 'other'], {
      env: { PARTNER_API_KEY: issued.key },
    }),
  ])
  t.match(valid, { code: 0, stderr: '', stdout: 'The key is valid.' })
  t.match(documentOf(json).data, { valid: true, key: { id: issued.id }, max_staleness_ms: 0 })
  t.match(stranger, { code: 1, stderr: 'partner_mismatch' })

  await run('modules', 'deactivate', 'demo', 'profiles')
  t.equal((await read()).status, 403)
  t.match(await verify('--module', 'profiles'), { code: 1, stderr: 'profiles is not active' })
  await run('modules', 'activate', 'demo', 'profiles')
  t.equal((await read()).status, 200)
  await run('keys', 'revoke', issued.id)
  t.equal((await read()).status, 401)
  t.match(await verify(), { code: 1, stderr: 'key_revoked' })

  const ended = await stopServing(served)
  t.equal(ended.code, 0)
  const log = ended.stderr.trimEnd().split('\n').map((line) => JSON.parse(line))
  t.ok(log.length >= 8)
  t.match(log[0], { event: 'store_opened', store: join(folder.path, 'store.db'), created: false })
  t.match(log[1], { event: 'request', status: 200, key_id: issued.id, path: '/service/public/profiles' })
  t.match(log.at(-1), { event: 'stopped' })
  t.notMatch(ended.stderr, issued.key.slice(-38))
})

test('settings of serve', async (t) => {
  const told = [
    ...['--service-name', 'acme', '--limit', 'key=7/30', '--limit', 'verify=0', '--max-staleness', '500'],
    ...['--problem-base', 'https://acme.example/problems/', '--allow-browsers'],
    ...['--title', 'Acme API', '--contact', 'api@acme.example', '--public-url', 'https://api.acme.example/'],
  ]
  const served = await start([
    ...['serve', '--port', '0', '--json', '--trust-proxies', '1', '--log', 'off'],
    ...told,
  ])
  t.teardown(() => served.child.kill())
  const issued = documentOf(await run('keys', 'issue', 'demo', '--name', 'k', '--json')).data
  const answer = await fetch(`${served.url}/acme/public/plans?partner=demo`, {
    headers: { 'X-Acme-Partner-Key': issued.key },
  })
  t.equal(answer.headers.get('ratelimit-policy'), '"key";q=7;w=30')
  const refused = await fetch(`${served.url}/acme/public/plans?partner=demo`)
  t.match(await refused.json(), { type: 'https://acme.example/problems/key-missing' })
  const verified = await runProgram(
    ['verify', '--url', served.url, '--partner', 'demo', '--service-name', 'acme'],
    { env: { PARTNER_API_KEY: issued.key } },
  )
  t.equal(verified.code, 0)
  const [document, bare] = await Promise.all([run('openapi', '--json', ...told), run('openapi')])
  t.same(await (await fetch(`${served.url}/acme/openapi.json`)).json(), documentOf(document).data)
  t.match(documentOf(document).data, {
    info: { title: 'Acme API', contact: { email: 'api@acme.example' } },
    servers: [{ url: 'https://api.acme.example' }],
  })
  t.match(JSON.parse(bare.stdout), { openapi: /^3\.1\./, paths: { '/service/public/profiles': { get: {} } } })
  const wrongName = await runProgram(['verify', '--url', served.url, '--partner', 'demo'], {
    env: { PARTNER_API_KEY: issued.key },
  })
  t.match(wrongName, { code: 3, stderr: '--service-name' })
  t.match(await stopServing(served), { code: 0, stderr: '' })

  const wrong = [
    ['--port', '65536'],
    ['--port', 'http'],
    ['--max-staleness', '10001'],
    ['--limit', 'key'],
    ['--limit', 'other=1/1'],
    ['--service-name', 'Acme'],
    ['--trust-proxies', '-1'],
    ['--problem-base', 'acme'],
    ['--public-url', 'acme'],
    ['--log', 'loud'],
    ['--title', ''],
    ['--title', 'a\nb'],
    ['--contact', 'a\u0007@acme.example'],
  ]
  for (const { code, stdout } of await Promise.all(wrong.map((args) => run('serve', ...args)))) {
    t.same([code, stdout], [2, ''])
  }
})

test('PORT and HOST count when the options are absent', async (t) => {
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port } = free.address() as AddressInfo
  free.close()
  await once(free, 'close')
  const fresh = storeUrl('fresh.db')
  const served = await startServing(['serve'], fresh, { env: { PORT: String(port), HOST: 'localhost' } })
  t.equal(served.url, `http://localhost:${port}`)
  const { stderr } = await stopServing(served)
  t.match(JSON.parse(stderr.split('\n', 1)[0]!), {
    event: 'store_opened',
    store: join(folder.path, 'fresh.db'),
    created: true,
  })
  const args = ['serve', '--port', '0', '--host', '127.0.0.1']
  const other = await startServing(args, fresh, { env: { PORT: 'none', HOST: '192.0.2.1' } })
  t.match(new URL(other.url), { hostname: '127.0.0.1' })
  t.equal((await stopServing(other)).code, 0)
  const empty = await startServing(['serve', '--port', '0'], fresh, { env: { PORT: '', HOST: '' } })
  t.match(new URL(empty.url), { hostname: '127.0.0.1' })
  t.equal((await stopServing(empty)).code, 0)
  const help = await runProgram(['serve', '--host', '192.0.2.1'], { env: { ...env, PORT: '' } })
  t.notMatch(help.stderr, 'PORT', 'an empty PORT is not read')
  t.match(await runProgram(['serve'], { env: { ...env, PORT: 'none' } }), { code: 2, stderr: "env 'PORT'" })
})

test('where serve cannot listen', async (t) => {
  const blocker = createServer().listen(0, '127.0.0.1')
  await once(blocker, 'listening')
  t.teardown(() => blocker.close())
  const { port } = blocker.address() as AddressInfo
  const [taken, nowhere, noFolder] = await Promise.all([
    run('serve', '--port', String(port)),
    run('serve', '--port', '0', '--host', '192.0.2.1'),
    run('--store', storeUrl('no/folder.db'), 'serve', '--port', '0'),
  ])
  t.match(taken, { code: 1, stdout: '', stderr: `Port ${port} on 127.0.0.1 is in use` })
  t.match(nowhere, { code: 1, stdout: '', stderr: 'no address 192.0.2.1' })
  t.match(noFolder, { code: 3, stdout: '' })
})

test('a memory store is served with a warning', async (t) => {
  const served = await start(['serve', '--port', '0'], 'memory:')
  t.match(await stopServing(served), { code: 0, stderr: /^warning: .*empty/ })
})

test('a signal lets requests under way end', async (t) => {
  const served = await start(['serve', '--port', '0'])
  t.teardown(() => served.child.kill('SIGKILL'))
  const issued = documentOf(await run('keys', 'issue', 'demo', '--name', 'k', '--json')).data
  const { port, hostname } = new URL(served.url)
  const idle = connect(Number(port), hostname)
  const busy = connect(Number(port), hostname)
  await Promise.all([once(idle, 'connect'), once(busy, 'connect')])
  idle.write('GET /service/health HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(idle, 'data')
  const body = '{"partner":"demo"}'
  busy.write(
    `POST /service/developer/verify-key HTTP/1.1\r\nHost: x\r\nX-Service-Partner-Key: ${issued.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  )
  t.match(String(await once(busy, 'data')), /^HTTP\/1\.1 100 /, 'a request is under way')
  const closed = once(idle, 'close')
  served.child.kill('SIGTERM')
  await closed
  let answer = ''
  busy.setEncoding('utf8').on('data', (text: string) => answer += text)
  busy.write(body)
  t.match(await served.ended, { code: 0, signal: null })
  t.match(answer, /^HTTP\/1\.1 200 /)
})

test('the end', (t) => {
  t.equal(existsSync('partner-api.db'), hadDefaultStore, 'no test has used the default store')
  folder.remove()
  t.end()
})
