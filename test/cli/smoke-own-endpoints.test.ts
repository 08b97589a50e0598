/** `verify --smoke` of endpoints of the host's own. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import * as v from 'valibot'
import { serve } from '../../adapters/runtimes/node.ts'
import { createModuleAdministration } from '../../core/admin/modules.ts'
import { createPartnerApi } from '../../core/api.ts'
import { defineEndpoint, type EndpointResult } from '../../core/routes/own.ts'
import { documentOf, runProgram } from '../support/cli-program.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { fillWorld } from '../support/world.ts'

interface Row {
  readonly path: string
  readonly verdict: string
  readonly status: number | null
  readonly reasons: readonly string[]
}

const state = v.picklist(['open', 'closed'])
const order = v.strictObject({
  id: v.string(),
  state,
  count: v.pipe(v.number(), v.integer()),
  note: v.nullable(v.string()),
  tags: v.array(v.string()),
  labels: v.record(v.string(), v.number()),
  price: v.optional(v.union([v.number(), v.object({ amount: v.number() })])),
})
const valid = {
  id: '1',
  state: 'open',
  count: 1,
  note: null,
  tags: ['a'],
  labels: { a: 1 },
  price: { amount: 1 },
}
type Order = Record<string, unknown>

const get = (name: string, handle: () => EndpointResult, more: object = {}) =>
  defineEndpoint({
    name,
    method: 'GET',
    path: `/${name}`,
    scope: 'read:orders',
    summary: 'Test',
    ...more,
    handle,
  })

/** What the endpoints return. */
let data: unknown = [valid]
let next: (last: Order) => Order | undefined = () => undefined
let version = 0

const list = defineEndpoint({
  name: 'paged',
  method: 'GET',
  path: '/paged',
  scope: 'read:orders',
  summary: 'List orders',
  query: { state: v.optional(state), from: v.optional(v.number()), to: v.optional(v.number()) },
  paging: { limit: 1, maximum: 1 },
  response: v.array(v.object({ id: v.string() })),
  handle: ({ page }) =>
    page<Order>({
      read: (after) => after === undefined ? [{ id: '1' }, { id: '2' }] : [next({ id: '1' }) ?? { id: '2' }],
      positionOf: ({ id }) => ['', String(id)],
    }),
})

const endpoints = [
  get('orders', () => ({ data }), { response: v.array(order) }),
  list,
  get('untyped', () => ({ data: version++ })),
  get('needs', () => ({ data: 1 }), { query: { a: v.optional(v.string()), shop: v.string() } }),
  get('needs-some', () => ({ data: 1 }), { query: { tag: v.pipe(v.array(v.string()), v.minLength(1)) } }),
  get('order', () => ({ data: 1 }), { path: '/order/:id' }),
  get('profile-list', () => ({ data: [{ slug: 'Not A Slug' }] }), { scope: 'read:profiles' }),
  defineEndpoint({
    ...{ name: 'create', method: 'POST', path: '/create', scope: 'read:orders', summary: 'Create' },
    handle: () => ({ data: 1 }),
  }),
]

const store = await openMemoryStore()
const modules = createModuleAdministration(store, { actor: 'test' })
await modules.define({ name: 'orders', scope: 'read:orders', feature: 'Orders' })
const { partners, issue } = await fillWorld(store)
await partners.activate('demo', ['orders'])
const key = (await issue({ partner: 'demo', scopes: ['read:orders', 'read:profiles'] })).text

/** Changes the document. */
let edit: (text: string) => string | undefined = (text) => text
/** Paths that verify-key lists besides. */
let listed: readonly string[] = []
let reads: (string | undefined)[] = []
let targets: string[] = []

async function deploy(basePath: string) {
  const api = createPartnerApi({ store }, { endpoints, basePath, maxStalenessMs: 0 })
  const upstream = await serve(api, { port: 0 })
  const proxy = createServer(async (request, response) => {
    const { host: _, connection: __, ...headers } = request.headers as Record<string, string>
    let body = ''
    for await (const chunk of request) body += chunk
    const answer = await fetch(upstream.url + request.url, {
      method: request.method!,
      headers,
      ...(body && { body }),
    })
    let text: string | undefined = await answer.text()
    targets.push(request.url!)
    if (request.url!.endsWith('/verify-key')) {
      const more = listed.map((path) =>
        JSON.stringify({ method: 'GET', path, scope: 'read:x', allowed: true })
      )
      text = text.replace('"endpoints":[', `$&${more.map((each) => `${each},`).join('')}`)
    }
    if (request.url!.endsWith('/openapi.json')) {
      reads.push(headers['x-service-partner-key'])
      text = edit(text)
      if (text === undefined) return void response.destroy()
      if (text === '') return void response.writeHead(404).end()
    }
    const fields = new Map(answer.headers)
    for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) fields.delete(name)
    response.writeHead(answer.status, Object.fromEntries(fields)).end(text)
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${basePath}`,
    async close() {
      proxy.closeAllConnections()
      proxy.close()
      await upstream.drain()
      await api.close()
    },
  }
}

const usual = await deploy('')

async function smoke(url = usual.url, secret = key) {
  reads = []
  const args = ['verify', '--url', url, '--partner', 'demo', '--smoke', '--json', '--timeout', '300s']
  const ended = await runProgram(args, { env: { PARTNER_API_KEY: secret } })
  const rows: readonly Row[] = documentOf(ended).data.smoke
  const row = (name: string) => rows.find(({ path }) => path.split('/').includes(name))!
  const failures = rows.filter(({ verdict }) => verdict === 'failed' || verdict === 'unreachable')
  return { code: ended.code, row, failures: JSON.stringify(failures) }
}

test('own endpoints are called and judged by their response schema', async (t) => {
  for (const basePath of ['', '/api']) {
    const deployed = basePath === '' ? usual : await deploy(basePath)
    const { code, row } = await smoke(deployed.url)
    t.equal(code, 0)
    for (const name of ['orders', 'paged', 'untyped', 'profile-list']) {
      t.match(row(name), { verdict: 'ok', status: 200, reasons: { length: 0 } }, name + basePath)
    }
    t.match(row('needs'), { verdict: 'skipped', reasons: ['it needs the parameter shop'] })
    t.match(row('needs-some'), { verdict: 'skipped', reasons: ['it needs the parameter tag'] })
    t.match(row('order'), { verdict: 'skipped', reasons: ['its path has a parameter'] })
    t.match(row('create'), { verdict: 'skipped', reasons: [/only signups are tested/] })
    t.match(row('profiles'), { verdict: 'ok' })
    t.strictSame(reads, [undefined], 'the document is read once, without the key')
    if (basePath !== '') await deployed.close()
  }
})

test('what breaks the schema is named', async (t) => {
  t.teardown(() => data = [valid])
  const faults: readonly [unknown, RegExp][] = [
    [null, /^data violates the contract: expected Array, received null$/],
    [[{ ...valid, id: undefined }], /^data\.0\.id .*expected "id"/],
    [[{ ...valid, state: 'lost' }], /^data\.0\.state .*expected \("open" \| "closed"\), received "lost"/],
    [[valid, { ...valid, count: 1.5 }], /^data\.1\.count .*1\.5/],
    [[{ ...valid, note: 1 }], /^data\.0\.note .*received 1/],
    [[{ ...valid, tags: ['a', 2] }], /^data\.0\.tags\.1 .*expected string, received 2/],
    [[{ ...valid, labels: { a: 'x' } }], /^data\.0\.labels\.a .*expected number/],
    [[{ ...valid, price: { amount: 'x' } }], /^data\.0\.price/],
    [Array(99).fill({}), /^and more members are wrong$/],
  ]
  for (const [value, reason] of faults) {
    data = value
    const { code, row } = await smoke()
    t.equal(code, 1)
    t.match(row('orders'), { verdict: 'failed', status: 200 })
    t.match(row('orders').reasons.at(-1), reason)
    t.match(row('paged').verdict, 'ok')
  }
  data = [...Array(1_000).fill(valid), null]
  t.match((await smoke()).row('orders').verdict, 'ok', 'only so many rows are judged')
  data = [{ ...valid, added: 1, price: undefined }]
  t.match((await smoke()).row('orders').verdict, 'ok', 'additions are allowed')
})

test('a page that repeats a row is a fault', async (t) => {
  t.teardown(() => next = () => undefined)
  next = (first) => first
  const { row } = await smoke()
  t.match(row('paged'), { verdict: 'failed', reasons: ['its second page repeats a row of the first'] })
})

test('the document may be missing, broken, huge or hostile', async (t) => {
  t.teardown(() => edit = (text) => text)
  const schemaOf = (text: string, schema: unknown) => {
    const document = JSON.parse(text)
    document.paths['/service/orders'].get.responses[200].content['application/json'].schema.properties.data =
      schema
    return JSON.stringify(document)
  }
  const nested = (depth: number) => `${'{"type":"array","items":'.repeat(depth)}{}${'}'.repeat(depth)}`
  const skipped = { verdict: 'skipped', status: null }
  const cases: readonly [string, typeof edit, object][] = [
    ['missing', () => '', { ...skipped, reasons: [/document of the deployment was answered with 404$/] }],
    ['no JSON', () => '<html>\u001b[2J', { ...skipped, reasons: [/does not describe it$/] }],
    ['null', () => 'null', { ...skipped, reasons: [/does not describe it$/] }],
    ['other', (text) => text.replaceAll('"parameters":', '"x":'), {
      ...skipped,
      reasons: [/not describe it$/],
    }],
    ['no names', (text) => text.replace('"name":"state"', '"name":{"toString":1}'), { verdict: 'ok' }],
    ['huge', () => ' '.repeat(5_000_000), { ...skipped, reasons: [/longer than 4 MiB$/] }],
    ['deep', (text) => text.replace('"paths":', `"x":${'['.repeat(1e6)}${']'.repeat(1e6)},"paths":`), {
      verdict: 'ok',
    }],
    ['a deep schema', (text) => schemaOf(text, JSON.parse(nested(5_000))), {
      verdict: 'failed',
      reasons: [/data\.0 /],
    }],
    [
      'nonsense',
      (text) => schemaOf(text, { type: ['array', 'object', 5], required: 5, properties: null, items: [] }),
      {
        verdict: 'ok',
      },
    ],
    ['many alternatives', (text) => schemaOf(text, { anyOf: Array(21).fill({ type: 'null' }) }), {
      verdict: 'ok',
    }],
    ['tuples', (text) => schemaOf(text, { type: 'array', prefixItems: [{}], items: { type: 'null' } }), {
      verdict: 'ok',
    }],
    ['values', (text) => schemaOf(text, { enum: Array(100_000).fill(1) }), { verdict: 'ok' }],
    ['references', (text) => schemaOf(text, { $ref: '#', pattern: '(a+)+$' }), { verdict: 'ok' }],
    [
      'escapes',
      (text) => text.replaceAll('"shop"', `"sh\\u001b[2J\\n${'o'.repeat(500)}p"`),
      { verdict: 'ok' },
    ],
    ['closed', () => undefined, { verdict: 'unreachable', status: null, reasons: [/connection was closed/] }],
  ]
  for (const [name, change, expected] of cases) {
    edit = change
    const { row, code, failures } = await smoke()
    t.match(row('orders'), expected, name)
    t.equal(reads.length, 1, name)
    t.match(row('profiles').verdict, 'ok', name)
    t.equal(code, name === 'closed' ? 3 : name === 'a deep schema' ? 1 : 0, `${name} ${failures}`)
    if (name === 'escapes') t.match(row('needs').reasons[0], /^it needs the parameter sh.{3,200}…$/s)
  }
  edit = (text) => text.replaceAll('"shop"', '"sh\\u001b[2Jop"')
  const args = ['verify', '--url', usual.url, '--partner', 'demo', '--smoke']
  const { stdout, stderr } = await runProgram(args, { env: { PARTNER_API_KEY: key } })
  t.match(stdout, 'it needs the parameter sh')
  t.notMatch(stdout + stderr, '\u001b')
})

test('the key is sent to paths of the service only', async (t) => {
  t.teardown(() => listed = [])
  listed = [
    '@127.0.0.1:1/x',
    '//127.0.0.1:1/x',
    '/service/../x',
    '/service/x?y',
    '/service/%2e%2e/x',
    '/.',
    '/service/.x',
  ]
  targets = []
  const { code, row } = await smoke()
  t.equal(code, 0)
  for (const name of ['@127.0.0.1:1', '127.0.0.1:1', '..', 'x?y', '%2e%2e', '.']) {
    t.match(
      row(name),
      { verdict: 'skipped', status: null, reasons: ['its path is not one of a service'] },
      name,
    )
  }
  t.match(row('.x').reasons, [/does not describe it$/])
  t.notOk(targets.some((target) => /\/\.?x/.test(target)), targets.join())
})

test('the document is read only if it is needed', async (t) => {
  const other = (await issue({ partner: 'demo', scopes: ['read:profiles'] })).text
  t.match((await smoke(usual.url, other)).row('orders'), { verdict: 'not_allowed' })
  t.equal(reads.length, 1, 'for the own list of profiles')
  const none = (await issue({ partner: 'demo', scopes: ['read:plans'] })).text
  t.equal((await smoke(usual.url, none)).code, 0)
  t.equal(reads.length, 0)
})

test('the end', async () => {
  await usual.close()
})
