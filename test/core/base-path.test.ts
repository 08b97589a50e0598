/** Section 12: the service below a base path. */
import t from 'tap'
import { createPartnerApi } from '../../core/api.ts'
import { internalsOf } from '../../core/internals.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { fillWorld } from '../support/world.ts'

const { world: { keys }, store } = await createWorld()
const basePath = '/api/v1.0~b'

async function createWorld() {
  const store = await openMemoryStore()
  return { world: await fillWorld(store), store }
}

function open(options: PartnerApiOptions) {
  const api = createPartnerApi({ store }, options)
  const key = keys['demo full'].text
  const call = (target: string, init: RequestInit = {}) =>
    api.fetch(
      new Request(`http://host.example${target}`, {
        ...init,
        headers: { 'x-service-partner-key': key, ...Object.fromEntries(new Headers(init.headers)) },
      }),
    ) as Promise<Response>
  return { api, call, json: async (target: string, init?: RequestInit) => (await call(target, init)).json() }
}

t.test('every path stands below the base path, and the catalog at the root too', async (t) => {
  const { api, call, json } = open({ basePath })
  const catalog = await json('/.well-known/api-catalog')
  t.same(await json(`${basePath}/.well-known/api-catalog`), catalog)
  const hrefs = JSON.stringify(catalog).match(/(?<="href":")[^"]*/g)
  t.same(
    [...new Set(hrefs)].sort(),
    ['docs', 'docs.md', 'health', 'openapi.json'].map((name) => `${basePath}/service/${name}`),
  )
  for (const { path } of internalsOf(api).routes) {
    const isCatalog = path === '/.well-known/api-catalog'
    t.equal(path.startsWith(`${basePath}/service/`), !isCatalog, path)
    const options = { method: 'OPTIONS' }
    const below = isCatalog ? basePath + path : path
    t.equal((await call(below, options)).status, 204, below)
    const { status } = await call(isCatalog ? `/x${path}` : path.slice(basePath.length), options)
    t.equal(status, 404, `not ${path} without the base path`)
    // A dot of the base path is no pattern.
    t.equal((await call(below.replace('v1.0', 'v1x0'), options)).status, 404)
  }
  const { code, instance } = await json(`${basePath}/service/nope?a=b`)
  t.same({ code, instance }, { code: 'route_not_found', instance: `${basePath}/service/nope` })
})

t.test('the documents have the address of the service', async (t) => {
  const { call, json } = open({ basePath })
  const document = await json(`${basePath}/service/openapi.json`)
  const [{ url }] = document.servers
  for (const path of ['/service/public/plans?partner=demo', '/service/health', '/.well-known/api-catalog']) {
    t.ok(document.paths[path.split('?')[0]!], path)
    t.equal((await call(url + path)).status, 200, path)
  }
  const examples = JSON.stringify([document.paths, document.components.examples])
    .match(/(?<="instance":")[^"]*/g) ?? []
  t.ok(examples.length > 10)
  t.same(examples.filter((instance) => !instance.startsWith(`${basePath}/service/`)), [])

  const page = await (await call(`${basePath}/service/docs`)).text()
  const address = `<span class="origin">https://api.example.com${basePath}</span>`
  t.match(page, `<code>${address}</code>`, 'the base URL')
  t.match(page, `${address}/service/public/plans`, 'in samples')
  t.notMatch(page, 'https://api.example.com</span>')
})

t.test('the URLs of a deployment include the base path', async (t) => {
  const url = 'https://api.example.com/shop/api'
  const { call, json } = open({
    basePath: '/api',
    deployment: { servers: [{ url: `${url}/` }, { url: '/api' }] },
  })
  t.equal((await json('/api/service/openapi.json')).servers[0].url, `${url}/`)
  const { linkset: [, { anchor }] } = await json('/.well-known/api-catalog')
  t.equal(anchor, '/shop/api/service/docs', 'a proxy removes /shop')
  const page = await (await call('/api/service/docs')).text()
  t.match(page, `<code>${url}</code>`)
  t.match(page, `${url}/service/public/plans`)
  t.notMatch(page, '<span class="origin">', 'a URL that is known is not replaced')
  for (const url of ['https://api.example.com', '/', 'https://api.example.com/xapi', '/api/v1']) {
    t.throws(
      () => open({ basePath: '/api', deployment: { servers: [{ url }] } }),
      new RangeError(`deployment.servers: ${url} must end with the basePath, /api.`),
    )
  }
})

t.test('a base path is segments without a slash at the end', async (t) => {
  for (const basePath of ['', '/', '/a', '/A-b/c_d.e~/.../..f/9']) {
    const { call } = open({ basePath })
    t.equal((await call(`${basePath === '/' ? '' : basePath}/service/health`)).status, 200, basePath)
  }
  const invalid = [
    'api',
    '/api/',
    '//',
    '//api',
    '/a//b',
    '/.',
    '/..',
    '/a/../b',
    '/a/./b',
    '/a/..',
    '/a b',
    '/é',
    '/a%20b',
  ]
  for (const basePath of [...invalid, '/:slug', '/a*', '/a?b', '/a#b', '/a\n', ' /a', 'https://a.example']) {
    t.throws(() => open({ basePath }), { name: 'RangeError', message: /^basePath cannot be / }, `${basePath}`)
  }
})
