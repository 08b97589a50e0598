import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { Readable } from 'node:stream'
import t, { test } from 'tap'
import { readCredential } from '../../cli/verify/credential.ts'
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

/** Requests with a key. */
const seen: Seen[] = []
let answer: (response: ServerResponse, request: IncomingMessage) => void = () => {}
const deployment = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  // An application of another kind.
  if (request.method === 'GET' && !request.headers['x-service-partner-key']) return response.end('<p>Hello')
  seen.push({ method: request.method, url: request.url, headers: request.headers, body })
  answer(response, request)
})

const replying = (status: number, body: unknown, headers: Record<string, string> = {}) =>
(
  response: ServerResponse,
): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}
const reply = (...response: Parameters<typeof replying>) => void (answer = replying(...response))
const problemOf = (status: number, code: string, detail: string) => (
  { type: 'about:blank', title: code, status, code, detail, request_id: 'req_1' }
)
const problem = (status: number, code: string, detail: string) =>
  reply(status, problemOf(status, code, detail))

deployment.listen(0, '127.0.0.1')
await once(deployment, 'listening')
const url = `http://127.0.0.1:${(deployment.address() as AddressInfo).port}`
t.teardown(() => {
  deployment.closeAllConnections()
  deployment.close()
})
const folder = temporaryFolder()
const env = { PARTNER_API_KEY: key }
const verify = (args: readonly string[] = [], start: Parameters<typeof runProgram>[1] = { env }) =>
  runProgram(['verify', '--url', url, '--partner', 'acme', ...args], start)
const verifyAt = (base: string) => runProgram(['verify', '--url', base, '--partner', 'acme'], { env })
const json = async (...args: string[]) => {
  const ended = await verify([...args, '--json'])
  return { ...ended, ...documentOf(ended) }
}

test('a valid key is reported with its modules and limits', async (t) => {
  reply(200, { data })
  const human = await verify()
  t.equal(human.code, 0)
  t.equal(human.stderr, '')
  t.match(human.stdout, /The key is valid/)
  t.match(human.stdout, /profiles +yes +yes\n/)
  t.match(human.stdout, /pricing +yes +no +read:plans\n/)
  t.notMatch(human.stdout, '\u001b', 'control characters are escaped')
  t.match(seen[0], { method: 'POST', url: '/service/developer/verify-key', body: '{"partner":"acme"}' })
  t.equal(seen[0]?.headers['x-service-partner-key'], key)
  t.equal(seen[0]?.headers['content-type'], 'application/json')
  t.notMatch(human.stdout, key)

  const json = await verify(['--json'])
  t.equal(json.code, 0)
  t.same(documentOf(json).data, data, 'the complete data of verify-key')
})

test('the output reports how soon a change takes effect', async (t) => {
  const since = '2026-11-20T09:00:00.000Z'
  const later = 'take effect within 1,000 ms, or up to 60 s later while the store is unavailable'
  const cases = [
    [{ version: '2020-01-01' }, 'take effect within 1,000 ms'],
    [{ stale_if_error: { seconds: 60, since: null } }, later],
    [{ stale_if_error: { seconds: 60, since } }, `${later}, as it has been since ${since}`],
  ] as const
  for (const [more, text] of cases) {
    reply(200, { data: { ...data, ...more } })
    const stderr = 'version' in more ? 'has API version 2020-01-01, and this program 20' : /^$/
    t.match(await verify(), { code: 0, stdout: `${text}\n`, stderr })
  }
})

test('--url may have a path, and without it the environment counts', async (t) => {
  reply(200, { data })
  seen.length = 0
  t.equal((await verifyAt(`${url}/partners/api/`)).code, 0)
  t.equal((await verify(['--service-name', 'acme-data'])).code, 0)
  t.match(seen, [
    { url: '/partners/api/service/developer/verify-key' },
    { url: '/acme-data/developer/verify-key', headers: { 'x-acme-data-partner-key': key } },
  ])
  seen.length = 0
  const wrong = [
    'api.example',
    'ftp://api.example',
    'https://user:word@api.example',
    `${url}?x=1`,
    `${url}#x`,
  ]
  for (const base of wrong) {
    const { code, stderr } = await verifyAt(base)
    t.equal(code, 2, base)
    t.match(stderr, /--url/)
    t.notMatch(stderr, 'word@')
  }
  t.equal(seen.length, 0)
})

test('a byte order mark before JSON is an error', async (t) => {
  reply(200, `\ufeff${JSON.stringify({ data })}`)
  t.not((await verify([])).code, 0)
})

test('--module requires modules to be ready', async (t) => {
  reply(200, { data })
  t.equal((await verify(['--module', 'profiles'])).code, 0)
  const unready = await json('--module', 'profiles', 'pricing', '--module', 'banner', 'widget')
  t.match(unready, { code: 1, data: { valid: true } })
  t.match(unready.stderr, /pricing needs the scope read:plans/)
  t.match(unready.stderr, /banner is not active/)
  t.match(unready.stderr, /no module widget/)
  t.match((await verify(['--module', 'nothing'])).stderr, /no module nothing/)
  t.match((await verify(['--module', 'profile'])).stderr, /no module profile\.\n\(Did you mean profiles\?\)/)
})

test('the key is read from a file, standard input or the environment', async (t) => {
  answer = (response, { headers }) => {
    const id = String(headers['x-service-partner-key']).split('_')[2]
    response.end(JSON.stringify({ data: { ...data, key: { ...data.key, id } } }))
  }
  const [inFile, inEnv, inPipe] = ['spk', 'env', 'pipe'].map((prefix) => mintKey(prefix, 'test').text)
  const file = join(folder, 'key')
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

  writeFileSync(join(folder, 'long'), 'x'.repeat(10_000))
  seen.length = 0
  const ended = [
    await verify([], {}),
    await verify([], { input: ' \n' }),
    await verify([], { input: `${inPipe} ${inEnv}` }),
    ...await Promise.all(
      ['nowhere', 'long', '.'].map((name) => verify(['--key-file', join(folder, name)])),
    ),
    await verify(['--key-file', file, '--json', inFile!]),
  ]
  for (const { code, stdout, stderr } of ended) {
    t.equal(code, 2)
    t.notMatch(stdout + stderr, /_[0-9A-Za-z]{38}|^ +at /m)
  }
  t.equal(seen.length, 0)
  t.equal(documentOf(ended.at(-1)!).error.code, 'usage')
})

test('a key piped without an end is refused after 4 KiB', async (t) => {
  let chunks = 0
  function* endless() {
    for (; chunks < 1_000; chunks++) yield 'x'.repeat(1_024)
  }
  const { stdout, stderr } = process
  const input = readCredential(undefined, { env: {}, stdin: Readable.from(endless()), stdout, stderr })
  await t.rejects(input, { code: 'usage', message: /standard input is too long for a key/ })
  t.ok(chunks < 100, `${chunks} KiB were requested`)
})

test('a problem is reported with what to do about it', async (t) => {
  problem(403, 'partner_mismatch', 'Another partner.')
  t.match(await verify(), { stderr: /\n {2}Request ID.*: req_1/ })
  const action = 'The key is valid, but it belongs to another partner: check the partner slug.'
  const detail = 'Another partner.'
  t.same((await json()).error, { code: 'partner_mismatch', detail, action, request_id: 'req_1' })
})

test('a key with a wrong checksum is only sent with --force', async (t) => {
  seen.length = 0
  for (const none of ['hello', key.slice(0, -1), `${key}x`, `x${key}`, key.slice(4), key.toLowerCase()]) {
    const ended = await verify(['--json'], { env: { PARTNER_API_KEY: none } })
    t.equal(ended.code, 1)
    t.match(documentOf(ended).error, { code: 'key_invalid', detail: /was not sent.*--force/ })
    t.notMatch(ended.stdout + ended.stderr, none)
  }
  t.equal(seen.length, 0)
  problem(401, 'key_invalid', 'No.')
  t.match(await verify(['--force'], { env: { PARTNER_API_KEY: 'hello' } }), { code: 1, stderr: 'wrong' })
  t.equal(seen[0]?.headers['x-service-partner-key'], 'hello')
})

test('a response about another partner or key is refused', async (t) => {
  const detail = /about key \w{12} of partner \w+, .*cache or gateway/
  for (
    const other of [{ partner: { slug: 'other', name: 'Acme' } }, {
      key: { ...data.key, id: 'Zt81mQv04KsD' },
    }]
  ) {
    reply(200, { data: { ...data, ...other } })
    for (const args of [[], ['--smoke']]) {
      t.match(await json(...args), { code: 1, error: { code: 'other_subject', detail } })
    }
  }
})

test('a response that is not the expected one is refused', async (t) => {
  const endpoints = [{
    method: 'GET',
    path: '/service/partner/reports/summary',
    scope: 'read:partner-reports',
    allowed: true,
  }]
  const lies: readonly object[] = [
    { modules: 'all' },
    { checked_at: 'tomorrow' },
    { checked_at: '2026-02-30T00:00:00Z' },
    { max_staleness_ms: -1 },
    { stale_if_error: { seconds: 60, since: 'yesterday' } },
    { limits: [{ ...data.limits[0], quota: 0.5 }] },
    { key: { ...data.key, expires_at: 'soon' } },
    { key: { ...data.key, rotation: { successor_id: 'b7Yc0PqLs9Xa', retires_at: '' } } },
  ]
  for (const lie of lies) {
    reply(200, { data: { ...data, endpoints, ...lie } })
    const error = { code: 'not_this_service', detail: 'form' }
    t.match(await json('--smoke'), { code: 3, error }, JSON.stringify(lie))
  }
})
