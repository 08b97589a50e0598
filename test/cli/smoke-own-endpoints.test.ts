/** `verify --smoke` of endpoints of the host's own. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import * as v from 'valibot'
import { serve } from '../../adapters/runtimes/node.ts'
import { createModuleAdministration } from '../../core/admin/modules.ts'
import { createPartnerApi } from '../../core/api.ts'
import { Problem } from '../../core/http/problem.ts'
import { defineEndpoint } from '../../core/routes/host-endpoints.ts'
import type { EndpointResult } from '../../core/routes/host-results.ts'
import { documentOf, runProgram } from '../support/cli-program.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { fillWorld } from '../support/world.ts'

interface Row {
  readonly path: string
  readonly verdict: string
  readonly status: number | null
  readonly reasons: readonly string[]
}

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

const endpoints = [
  get('orders', () => ({ data: [{ id: '1' }] })),
  get('paged', () => ({ data: [], page: { limit: 1, has_more: false, next_cursor: null } })),
  get('none', () => ({ data: null })),
  get('conflicting', () => new Problem('rotation_conflict')),
  get('needs', () => ({ data: 1 }), { query: { shop: v.string() } }),
  get('order', () => ({ data: 1 }), { path: '/order/:id' }),
  defineEndpoint({
    name: 'create',
    method: 'POST',
    path: '/create',
    scope: 'read:orders',
    summary: 'Create',
    handle: () => ({ data: 1 }),
  }),
]

const store = await openMemoryStore()
const modules = createModuleAdministration(store, { actor: 'test' })
await modules.define({ name: 'orders', scope: 'read:orders', feature: 'Orders' })
const { partners, issue } = await fillWorld(store)
await partners.activate('demo', ['orders'])
const key = (await issue({ partner: 'demo', scopes: ['read:orders', 'read:profiles'] })).text

/** Changes the response of `orders`. */
let edit: (text: string) => string = (text) => text
/** Paths that verify-key lists besides. */
let listed: readonly string[] = []
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
    let text = await answer.text()
    targets.push(request.url!)
    if (request.url!.endsWith('/verify-key')) {
      const more = listed.map((path) =>
        JSON.stringify({ method: 'GET', path, scope: 'read:x', allowed: true })
      )
      text = text.replace('"endpoints":[', `$&${more.map((each) => `${each},`).join('')}`)
    }
    if (/\/orders\b/.test(request.url!)) text = edit(text)
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
      await upstream.close()
      await api.close()
    },
  }
}

const usual = await deploy('')

async function smoke(url = usual.url, secret = key) {
  const args = ['verify', '--url', url, '--partner', 'demo', '--smoke', '--json', '--timeout', '300s']
  const ended = await runProgram(args, { env: { PARTNER_API_KEY: secret } })
  const rows: readonly Row[] = documentOf(ended).data.smoke
  const row = (name: string) => rows.find(({ path }) => path.split('/').includes(name))!
  const failures = rows.filter(({ verdict }) => verdict === 'failed' || verdict === 'unreachable')
  return { code: ended.code, row, failures: JSON.stringify(failures) }
}

test('own endpoints are called, and their status and envelope are checked', async (t) => {
  for (const basePath of ['', '/api']) {
    const deployed = basePath === '' ? usual : await deploy(basePath)
    targets = []
    const { code, row } = await smoke(deployed.url)
    t.equal(code, 1)
    for (const name of ['orders', 'paged', 'none', 'profiles']) {
      t.match(row(name), { verdict: 'ok', status: 200, reasons: { length: 0 } }, name + basePath)
    }
    t.match(row('conflicting'), {
      verdict: 'failed',
      reasons: ['it answered 409 rotation_conflict instead of 200'],
    })
    t.match(row('needs'), { verdict: 'skipped', reasons: ['it needs parameters'] })
    t.match(row('order'), { verdict: 'skipped', reasons: ['its path has a parameter'] })
    t.match(row('create'), { verdict: 'skipped', reasons: [/only signups are tested/] })
    t.notOk(targets.some((target) => target.endsWith('/openapi.json')))
    if (basePath !== '') await deployed.close()
  }
})

test('a response without the envelope is a fault', async (t) => {
  t.teardown(() => edit = (text) => text)
  const faults: readonly [string, object][] = [
    ['[]', { verdict: 'failed', reasons: [/^data violates the contract/] }],
    ['{"items":[]}', { verdict: 'failed', reasons: [/^data violates the contract/] }],
    ['{"data":[],"page":{"limit":1}}', {
      verdict: 'failed',
      reasons: [/^page\.has_more violates/, /next_cursor/],
    }],
    ['{"data":1,"added":{}}', { verdict: 'ok' }],
  ]
  for (const [body, expected] of faults) {
    edit = () => body
    const { row } = await smoke()
    t.match(row('orders'), expected, body)
    t.match(row('profiles').verdict, 'ok')
  }
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
  const { row } = await smoke()
  for (const name of ['@127.0.0.1:1', '127.0.0.1:1', '..', 'x?y', '%2e%2e', '.']) {
    t.match(
      row(name),
      { verdict: 'skipped', status: null, reasons: ['its path is not one of a service'] },
      name,
    )
  }
  t.match(row('.x'), { verdict: 'failed', status: 404 })
  t.notOk(targets.some((target) => /\/x/.test(target)), targets.join())
})

test('the end', async () => {
  await usual.close()
})
