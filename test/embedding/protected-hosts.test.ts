/** Each row of the hosts of `docs/protect.md` compiles under strict TypeScript, and works in its host. */
import process from 'node:process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { cellsOf, tableRows } from '../integration/docs.ts'
import { attempt, binary, ROOT } from '../package/installed.ts'
import { createProject, start, storeIn, write } from './project.ts'
import { programOn } from '../support/cli-program.ts'

/** The rest of a program around the row of a host. */
interface Frame {
  readonly imports: string
  /** Before the row. */
  readonly before?: string
  /** After it: serves on the port of the variable. */
  readonly after: string
  readonly command?: readonly string[]
}

const port = 'Number(process.env.PORT)'
const ready = "() => console.log('ready')"
const nodeServer = `import { serve } from '@hono/node-server'`
const FRAMES: Readonly<Record<string, Frame>> = {
  Express: {
    imports: `import express from 'express'`,
    before: 'const app = express()',
    after: `app.listen(${port}, ${ready})`,
  },
  Connect: {
    imports: `import connect from 'connect'`,
    before: 'const app = connect()',
    after: `app.listen(${port}, ${ready})`,
  },
  Fastify: {
    imports: `import Fastify from 'fastify'`,
    before: 'const app = Fastify()',
    after: `app.listen({ port: ${port} }).then(${ready})`,
  },
  Hono: {
    imports: `${nodeServer}
import { getConnInfo } from '@hono/node-server/conninfo'
import { Hono } from 'hono'`,
    before: 'const app = new Hono()',
    after: `serve({ fetch: app.fetch, port: ${port} }, ${ready})`,
  },
  'Next.js': {
    imports: nodeServer,
    after: `const params = Promise.resolve({ id: 'a17' })
serve({ fetch: (request) => GET(request, { params }), port: ${port} }, ${ready})`,
  },
  Elysia: {
    imports: `import { Elysia } from 'elysia'`,
    before: 'const app = new Elysia()',
    after: `app.listen(${port}, ${ready})`,
    command: [binary('bun')],
  },
  '`Deno.serve`': {
    imports: `declare const Deno: {
  serve(options: { port: number }, handler: (request: Request, info: { remoteAddr: { hostname: string } }) => Promise<Response>): unknown
}`,
    after: '',
    command: [binary('deno'), 'run', '-A'],
  },
  Workers: {
    imports: `${nodeServer}
import worker from './worker-row.ts'`,
    after: `const context = { waitUntil: (work: Promise<unknown>) => void work }
serve({ fetch: (request) => worker.fetch(request, {}, context), port: ${port} }, ${ready})`,
  },
}

/** What the rows of the page use. */
const service = (name: string) => `
import process from 'node:process'
import { createPartnerApi, type EndpointGrant } from 'partner-api'
import { createGuard, grantOf } from 'partner-api/node'
import { openSqliteStore } from 'partner-api/sqlite'
import type { WorkerContext } from 'partner-api/workers'
export type Unused = [typeof process, typeof createGuard, typeof grantOf, WorkerContext, EndpointGrant]
const api = createPartnerApi({ store: await openSqliteStore('partner-api.db') })
const findInvoice = ({ name }: EndpointGrant['partner'], id: string): string => \`Invoice \${id} for \${name}\`
const payInvoice = ({ name }: EndpointGrant['partner'], body: unknown): string => \`\${JSON.stringify(body)} by \${name}\`
const routeOf = (name: string, method: 'GET' | 'POST') =>
  ({ name: \`${name}-\${name}\`, method, path: '/invoices/:id', scope: 'read:orders', summary: 'Invoices' }) as const
export const guard = createGuard(api, routeOf('guard', 'GET'))
export const invoice = api.protect(routeOf('invoice', 'GET'), (_request, { partner }, { id }: { id: string }) =>
  new Response(findInvoice(partner, id)))
export const post = createGuard(api, routeOf('post', 'POST'))
export const paid = api.protect(routeOf('paid', 'POST'), async (request, { partner }) =>
  new Response(payInvoice(partner, await request.json()), { status: 201 }))
export const unused = [findInvoice, payInvoice]`

const reading = tableRows('docs/protect.md', 'hosts').map(cellsOf)
const rows = [...reading, ...tableRows('docs/protect.md', 'bodies').map(cellsOf)]
const project = await createProject(['connect', 'elysia', '@types'])
t.teardown(() => project.remove())
const { folder, key } = await project.open('protected')
const { json } = programOn(storeIn(folder))
await json('modules', 'define', 'orders', '--scope', 'read:orders', '--feature', 'Orders')
await json('modules', 'activate', 'demo', 'orders')
const { data: { key: own } } = await json('keys', 'issue', 'demo', '--name', 'Orders')

t.strictSame(reading.map(([host]) => host), Object.keys(FRAMES))
const files = rows.map(([host = '', code = ''], index) => {
  const { imports, before = '', after } = FRAMES[host]!
  const row = code.slice(1, -1).replace('port: 8000', `port: ${port}`)
  const parts = [service(`row-${index}`), before, row]
  if (host === 'Workers') write(folder, 'worker-row.ts', parts.join('\n'))
  const whole = host === 'Workers'
    ? [imports, "import process from 'node:process'", after]
    : [imports, ...parts, after]
  const name = `row-${index}.ts`
  write(folder, name, `${whole.join('\n')}\nexport {}\n`)
  return { host, name, reads: index < reading.length }
})

t.test('each row compiles under strict', async (t) => {
  const compilerOptions = {
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    module: 'nodenext',
    target: 'esnext',
    lib: ['esnext', 'dom', 'dom.iterable', 'dom.asynciterable'],
    types: ['node'],
  }
  const tsconfig = JSON.stringify({ compilerOptions, files: files.map(({ name }) => name) })
  writeFileSync(join(folder, 'tsconfig.json'), tsconfig)
  const { code, stdout } = await attempt(
    process.execPath,
    [join(ROOT, 'node_modules/typescript/bin/tsc')],
    folder,
  )
  t.strictSame([code, stdout], [0, ''])
})

for (const { host, name, reads } of files) {
  t.test(`${host}, ${reads ? 'GET' : 'POST'}`, async (t) => {
    const command = FRAMES[host]!.command ?? [process.execPath]
    const { url } = await start(t, folder, [...command, name])
    if (!reads) {
      const body = JSON.stringify({ partner: 'demo', amount: 3 })
      const pay = (key: string) => {
        const headers = { 'x-service-partner-key': key, 'content-type': 'application/json' }
        return fetch(`${url}/invoices`, { method: 'POST', headers, body })
      }
      const granted = await pay(own)
      t.strictSame([granted.status, await granted.text()], [201, `${body} by Demo partner`])
      t.equal((await pay(key)).status, 403)
      return
    }
    const call = (query: string, key: string) =>
      fetch(`${url}/invoices/a17${query}`, { headers: { 'x-service-partner-key': key } })
    const granted = await call('?partner=demo', own)
    t.strictSame([granted.status, await granted.text()], [200, 'Invoice a17 for Demo partner'])
    t.match(granted.headers.get('x-request-id'), /^req_/)
    const refused = await call('?partner=demo', key)
    t.match([refused.status, await refused.json()], [403, { code: 'scope_missing' }])
  })
}
