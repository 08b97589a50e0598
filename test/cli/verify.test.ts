import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { mintKey } from '../../core/keys/format.ts'
import { documentOf, runProgram, temporaryFolder } from '../support/cli-program.ts'

const { id: keyId, text: key } = mintKey('spk', 'live')
const data = {
  valid: true,
  partner: { slug: 'acme', name: 'Acme \u001b[31mTravel' },
  key: {
    id: keyId,
    name: 'WordPress plugin',
    environment: 'live',
    hint: '…9xQ2',
    created_at: '2026-11-20T00:00:00.000Z',
    expires_at: null,
    rotation: null,
  },
  scopes: [{ scope: 'read:profiles', in_force: true }],
  modules: [
    { module: 'profiles', active: true, ready: true, missing_scope: null },
    { module: 'pricing', active: true, ready: false, missing_scope: 'read:plans' },
    { module: 'banner', active: false, ready: false, missing_scope: null },
  ],
  endpoints: [],
  limits: [{ policy: 'key', quota: 600, window_seconds: 60, remaining: 599, resets_in_seconds: 60 }],
  version: '2026-11-20',
  checked_at: '2026-11-20T00:00:00.000Z',
  max_staleness_ms: 1000,
  added_later: { by: 'a newer service' },
}

interface Seen {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

const endpoint = {
  method: 'GET',
  path: '/service/partner/reports/summary',
  scope: 'read:partner-reports',
  allowed: true,
}

const seen: Seen[] = []
let answer: (response: ServerResponse, request: IncomingMessage) => void = () => {}
const stub = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  seen.push({ method: request.method, url: request.url, headers: request.headers, body })
  answer(response, request)
})

function reply(status: number, body: unknown, headers: Record<string, string> = {}): void {
  answer = (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }
}

function problem(status: number, code: string, detail: string, headers: Record<string, string> = {}): void {
  reply(status, { type: 'about:blank', title: code, status, code, detail, request_id: 'req_1' }, headers)
}

stub.listen(0, '127.0.0.1')
await once(stub, 'listening')
const url = `http://127.0.0.1:${(stub.address() as AddressInfo).port}`
const folder = temporaryFolder()
const env = { PARTNER_API_KEY: key }
const verify = (args: readonly string[], start: Parameters<typeof runProgram>[1] = { env }) =>
  runProgram(['verify', '--url', url, '--partner', 'acme', ...args], start)

test('a valid key', async (t) => {
  reply(200, { data })
  const human = await verify([])
  t.equal(human.code, 0)
  t.equal(human.stderr, '')
  t.match(human.stdout, /The key is valid/)
  t.match(human.stdout, /profiles +yes +yes\n/)
  t.match(human.stdout, /pricing +yes +no +read:plans\n/)
  t.notMatch(human.stdout, '\u001b', 'what a deployment says moves no cursor')
  t.match(seen[0], { method: 'POST', url: '/service/developer/verify-key', body: '{"partner":"acme"}' })
  t.equal(seen[0]?.headers['x-service-partner-key'], key)
  t.equal(seen[0]?.headers['content-type'], 'application/json')
  t.notMatch(human.stdout, key)

  const json = await verify(['--json'])
  t.equal(json.code, 0)
  t.same(documentOf(json).data, data, 'the data of verify-key, whole')
})

test('how late a change may bind', async (t) => {
  const since = '2026-11-20T09:00:00.000Z'
  const words = [
    [{}, /take effect within 1,000 ms\n/],
    [
      { seconds: 60, since: null },
      /take effect within 1,000 ms, or up to 60 s later while the store is unavailable\n/,
    ],
    [
      { seconds: 60, since },
      /up to 60 s later while the store is unavailable, as it has been since 2026-11-20T09/,
    ],
  ] as const
  for (const [said, text] of words) {
    reply(200, { data: { ...data, ...('seconds' in said && { stale_if_error: said }) } })
    t.match(await verify([]), { code: 0, stdout: text })
  }
})

test('where the deployment is', async (t) => {
  reply(200, { data })
  seen.length = 0
  const answers = await Promise.all([
    runProgram(['verify', '--url', `${url}/partners/api/`, '--partner', 'acme'], { env }),
    verify(['--service-name', 'acme-data']),
  ])
  t.same(answers.map(({ code }) => code), [0, 0])
  t.same(seen.map((request) => request.url).sort(), [
    '/acme-data/developer/verify-key',
    '/partners/api/service/developer/verify-key',
  ])
  t.equal(seen.find((request) => request.url?.startsWith('/acme'))?.headers['x-acme-data-partner-key'], key)
  seen.length = 0
  const wrong = await Promise.all(
    ['api.example', 'ftp://api.example', 'https://user:word@api.example', `${url}?x=1`, `${url}#x`].map(
      (base) => runProgram(['verify', '--url', base, '--partner', 'acme'], { env }),
    ),
  )
  for (const ended of wrong) {
    t.equal(ended.code, 2)
    t.match(ended.stderr, /--url/)
    t.notMatch(ended.stderr, 'word@')
  }
  t.equal(seen.length, 0)
})

test('modules that have to be ready', async (t) => {
  reply(200, { data })
  const [ready, unready, unknown] = await Promise.all([
    verify(['--module', 'profiles']),
    verify(['--json', '--module', 'profiles', 'pricing', '--module', 'banner', 'widget']),
    verify(['--module', 'nothing']),
  ])
  t.equal(ready.code, 0)
  t.equal(unready.code, 1)
  t.ok(documentOf(unready).data.valid)
  t.match(unready.stderr, /pricing needs the scope read:plans/)
  t.match(unready.stderr, /banner is not active/)
  t.match(unready.stderr, /no module widget/)
  t.equal(unknown.code, 2)
})

test('where the key comes from', async (t) => {
  answer = (response, { headers }) => {
    const id = String(headers['x-service-partner-key']).split('_')[2]
    response.end(JSON.stringify({ data: { ...data, key: { ...data.key, id } } }))
  }
  const [inFile, inEnv, inPipe] = ['spk', 'env', 'pipe'].map((prefix) => mintKey(prefix, 'test').text)
  const file = join(folder.path, 'key')
  writeFileSync(file, `${inFile}\r\n`)
  const sent = async (args: readonly string[], start: Parameters<typeof runProgram>[1]) => {
    seen.length = 0
    t.equal((await verify(args, start)).code, 0)
    return seen[0]?.headers['x-service-partner-key']
  }
  const all = { env: { PARTNER_API_KEY: inEnv! }, input: `${inPipe}\n` }
  t.equal(await sent(['--key-file', file], all), inFile)
  t.equal(await sent([], all), inEnv)
  t.equal(await sent([], { input: `${inPipe}\n` }), inPipe)

  writeFileSync(join(folder.path, 'long'), 'x'.repeat(10_000))
  seen.length = 0
  const none = await Promise.all([
    verify([], {}),
    verify([], { input: ' \n' }),
    verify([], { input: `${inPipe} ${inEnv}` }),
    verify(['--key-file', join(folder.path, 'nowhere')]),
    verify(['--key-file', folder.path]),
    verify(['--key-file', join(folder.path, 'long')]),
    verify(['--key-file', file, '--json', inFile!]),
  ])
  for (const ended of none) {
    t.equal(ended.code, 2)
    t.notMatch(ended.stderr + ended.stdout, /_[0-9A-Za-z]{38}/)
    t.notMatch(ended.stderr, /^ +at /m)
  }
  t.equal(seen.length, 0)
  t.equal(documentOf(none[6]!).error.code, 'usage')
})

test('refusals', async (t) => {
  for (
    const [status, code, hint] of [
      [401, 'key_invalid', 'the key is complete'],
      [401, 'key_revoked', 'another key'],
      [403, 'partner_mismatch', '--partner'],
      [403, 'partner_suspended', 'resume'],
      [403, 'address_not_allowed', 'where the integration runs'],
      [429, 'rate_limited', '17 seconds'],
    ] as const
  ) {
    problem(status, code, 'What the service said.', { 'retry-after': '17' })
    const human = await verify([])
    t.equal(human.code, 1, code)
    t.equal(human.stdout, '')
    t.match(human.stderr, `What the service said. (${code})`)
    t.match(human.stderr, hint)
    t.match(human.stderr, 'req_1')
  }
  problem(401, 'key_invalid', `No key \u009b2J ${key}`)
  const wrong = await verify(['--force'], { env: { PARTNER_API_KEY: `${key.slice(0, -1)}!` } })
  t.equal(wrong.code, 1)
  t.match(wrong.stderr, 'checksum is wrong')
  t.notMatch(wrong.stderr, key, 'a key that comes back is not shown')
  t.notMatch(wrong.stderr, '\u009b')
  problem(403, 'partner_mismatch', 'Another partner.')
  t.same(documentOf(await verify(['--json'])), {
    error: { code: 'partner_mismatch', detail: 'Another partner.', request_id: 'req_1' },
  })
})

test('a key that a deployment says back is shown nowhere', async (t) => {
  const told = async (args: readonly string[]) => {
    const { stdout, stderr } = await verify(args, { env: { ...env, PARTNER_API_DEBUG: '1' } })
    t.notMatch(stdout + stderr, key, args.join(' '))
    t.match(stdout + stderr, '[key]')
  }
  const body = {
    type: 'about:blank',
    title: key,
    status: 403,
    code: key,
    detail: `No ${key}`,
    request_id: key,
  }
  const echo = {
    ...data,
    key: { ...data.key, hint: key, name: key },
    partner: { slug: 'acme', name: key },
    [key]: 1,
  }
  for (const args of [[], ['--json'], ['--smoke', '--json']]) {
    reply(403, body)
    await told(args)
    reply(200, { data: echo })
    await told(args)
    reply(302, '', { location: `/${key}` })
    await told(args)
  }
})

test('what a deployment says begins no line of ours, and moves no cursor', async (t) => {
  const said = 'No.\nerror: \u001b[31mThe disk is broken.\n    at here'
  reply(403, { type: 'about:blank', title: 'a', status: 403, code: 'a\nb', detail: said, request_id: 'c\nd' })
  const [plain, debug] = [
    await verify([]),
    await verify([], { env: { ...env, PARTNER_API_DEBUG: '1' } }),
  ]
  t.equal(plain.stderr.trimEnd().split('\n').length, 2)
  t.match(debug.stderr, /^CliError: No\.\\u\{a\}error: .*\n {4}at .*response\.ts/)
  for (const { stderr } of [plain, debug]) {
    t.notMatch(stderr, '\u001b')
    t.notMatch(stderr, /^(?:error: \S*The disk|b|d| *at here)/m)
  }
  t.equal(documentOf(await verify(['--json'])).error.detail, said, 'JSON has it as it was')
})

test('what its checksum shows to be no key is sent with --force only', async (t) => {
  seen.length = 0
  for (const none of ['hello', key.slice(0, -1), `${key}x`, `x${key}`, key.slice(4), key.toLowerCase()]) {
    const ended = await verify(['--json'], { env: { PARTNER_API_KEY: none } })
    t.match({ ...ended, ...documentOf(ended) }, {
      code: 1,
      error: { code: 'key_invalid', detail: /was not sent.*--force/ },
    })
    t.notMatch(ended.stdout + ended.stderr, none)
  }
  t.equal(seen.length, 0)
  problem(401, 'key_invalid', 'No.')
  t.match(await verify(['--force'], { env: { PARTNER_API_KEY: 'hello' } }), { code: 1, stderr: 'wrong' })
  t.equal(seen[0]?.headers['x-service-partner-key'], 'hello')
})

test('an answer about another partner or another key is refused', async (t) => {
  for (
    const other of [
      { partner: { slug: 'other', name: 'Acme' } },
      { key: { ...data.key, id: 'Zt81mQv04KsD' } },
    ]
  ) {
    reply(200, { data: { ...data, ...other } })
    for (const args of [[], ['--smoke']]) {
      const ended = await verify(['--json', ...args])
      t.match({ ...ended, ...documentOf(ended) }, {
        code: 1,
        error: { code: 'other_subject', detail: /about key \w{12} of partner \w+, .*cache or gateway/ },
      })
    }
  }
})

test('what a deployment sends is read in linear time and cut before it is shown', async (t) => {
  // Each of these was quadratic: minutes for 80 KB.
  const patterns = ['a', '_live_', 'postgres://', '://', '?password=', 'a@']
  const text = patterns.map((pattern) => pattern.repeat(Math.ceil(400_000 / pattern.length))).join(' ')
  reply(403, { type: 'a', title: text, status: 403, code: text, detail: text, request_id: text })
  for (const args of [[], ['--json']]) {
    const { code, stdout, stderr } = await verify(args)
    t.equal(code, 1)
    t.ok((stdout + stderr).length < 4_000, `${(stdout + stderr).length} characters`)
  }
  reply(200, { data: { ...data, partner: { slug: 'acme', name: text } } })
  const shown = await verify([])
  t.equal(shown.code, 0)
  t.ok(shown.stdout.length < 4_000, `${shown.stdout.length} characters`)
  reply(502, `<html>${'<title '.repeat(300_000)}>`)
  t.match(await verify([]), { code: 3, stderr: 'with an HTML page' })
  // Deeper than any stack of calls.
  reply(200, `{"data":${JSON.stringify(data).slice(0, -1)},"deep":${'['.repeat(1e6)}${']'.repeat(1e6)}}}`)
  t.match(await verify(['--json']), { code: 0 })
  reply(200, { data: { ...data, modules: Array(100_000).fill({ ...data.modules[0], active: 1 }) } })
  t.match(await verify([]), { code: 3 })
})

test('a deployment that cannot tell, or is none', async (t) => {
  const outOfReach = async (code: string, sentence: RegExp | string, args: readonly string[] = []) => {
    const ended = await verify([...args, '--json'])
    t.equal(ended.code, 3, code)
    t.equal(documentOf(ended).error.code, code)
    t.match(documentOf(ended).error.detail, sentence)
  }
  problem(503, 'store_unavailable', 'The store does not answer.')
  await outOfReach('store_unavailable', 'does not answer')
  problem(404, 'route_not_found', 'No such route.')
  await outOfReach('not_this_service', '--service-name')
  reply(200, '<html>hello</html>')
  await outOfReach('not_this_service', 'the response is an HTML page. Check --url')
  reply(200, `<!doctype html><TITLE lang="en">\n \u001b[31mWelcome ${key}\n to nginx!</title>`)
  await outOfReach(
    'not_this_service',
    'the response is the HTML page "\\u{1b}[31mWelcome [key] to nginx!". Check',
  )
  reply(200, { data: { ...data, modules: 'all' } })
  await outOfReach('not_this_service', 'form')
  for (const status of [502, 503, 504]) {
    reply(status, '<html><head><title>Bad Gateway</title>')
    const { host } = new URL(url)
    const page = 'the HTML page "Bad Gateway"'
    await outOfReach(
      'service_down',
      `The service is down behind ${host}, which answered ${status} with ${page}.`,
    )
  }
  reply(502, 'bad gateway')
  await outOfReach('service_down', 'which answered 502.')
  reply(500, 'oops')
  await outOfReach('not_this_service', 'status 500 and no problem document')
  const lies: readonly object[] = [
    { checked_at: 'tomorrow' },
    { checked_at: '2026-02-30T00:00:00Z' },
    { max_staleness_ms: -1 },
    { stale_if_error: { seconds: 60, since: 'yesterday' } },
    { limits: [{ ...data.limits[0], quota: 0.5 }] },
    { key: { ...data.key, expires_at: 'soon' } },
    { key: { ...data.key, rotation: { successor_id: 'b7Yc0PqLs9Xa', retires_at: '' } } },
  ]
  for (const lie of lies) {
    reply(200, { data: { ...data, endpoints: [endpoint], ...lie } })
    await outOfReach('not_this_service', 'form', ['--smoke'])
  }
  reply(200, 'x'.repeat(17_000_000))
  await outOfReach('not_this_service', 'longer')
  answer = (response) => response.destroy()
  await outOfReach('unreachable', 'connection was closed')
  seen.length = 0
  reply(307, '', { location: `${url}/elsewhere` })
  await outOfReach('redirected', '/elsewhere')
  t.equal(seen.length, 1, 'no redirect is followed')
  const [refused, tls, lookup] = await Promise.all([
    runProgram(['verify', '--url', 'http://127.0.0.1:9', '--partner', 'acme'], { env }),
    runProgram(['verify', '--url', url.replace('http', 'https'), '--partner', 'acme'], { env }),
    runProgram(['verify', '--url', 'http://nowhere.invalid', '--partner', 'acme'], { env }),
  ])
  t.same([refused.code, tls.code, lookup.code], [3, 3, 3])
  t.match(refused.stderr, 'the connection was refused')
  t.match(tls.stderr, 'does not speak TLS')
  t.match(lookup.stderr, /warning: http:.*unencrypted/)
  for (const { stderr } of [refused, tls, lookup]) t.notMatch(stderr, /^ +at /m)
})

test('the end', (t) => {
  stub.closeAllConnections()
  stub.close()
  folder.remove()
  t.end()
})
