/** Serves the service in the host that the first argument names, below the path in the second one, and prints where. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { createListener } from '../../adapters/runtimes/node.ts'
import { createSlowApi, protectInvoice, setCookie } from './host-api.ts'

type Handler = (request: Request) => Promise<Response>

const [, , name = '', basePath = ''] = process.argv
const { api, key } = createSlowApi(basePath)
const invoice = protectInvoice(api)
const invoices = `${basePath}/invoices/`
const mounted: Handler = (request) => {
  const { pathname } = new URL(request.url)
  if (!pathname.startsWith(invoices)) return api.fetch(request) as Promise<Response>
  return invoice(request, { params: Promise.resolve({ id: pathname.slice(invoices.length) }) })
}
const withCookie: Handler = async (request) => setCookie(request, await mounted(request))

/** The runtimes' own servers. */
const { Bun, Deno } = globalThis as unknown as {
  readonly Bun: { serve(options: { port: number; fetch: Handler }): { readonly port: number } }
  readonly Deno: {
    serve(
      options: { port: number; onListen(): void },
      fetch: Handler,
    ): { readonly addr: { readonly port: number } }
  }
}
const serveBun = (fetch: Handler): number => Bun.serve({ port: 0, fetch }).port
const serveDeno = (fetch: Handler): number => Deno.serve({ port: 0, onListen() {} }, fetch).addr.port

async function listening(server: Server): Promise<number> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

async function honoFetch(): Promise<Handler> {
  const { Hono } = await import('hono')
  const app = new Hono()
  app.use(async (context, next) => {
    await next()
    await setCookie(context.req.raw, context.res)
  })
  app.get(
    `${invoices}:id`,
    (context) => invoice(context.req.raw, { params: { id: context.req.param('id')! } }),
  )
  if (basePath === '') app.all('/service/*', (context) => mounted(context.req.raw))
  else app.mount(basePath, api.fetch as Handler, { replaceRequest: false })
  return (request) => Promise.resolve(app.fetch(request))
}

async function honoServer(fetch: Handler, overrideGlobalObjects: boolean): Promise<number> {
  const { createAdaptorServer } = await import('@hono/node-server')
  return listening(createAdaptorServer({ fetch, overrideGlobalObjects }) as Server)
}

async function invoiceListener() {
  const { getRequestListener } = await import('@hono/node-server')
  return getRequestListener((request, { incoming }) => {
    const id = request.url.split(/[/?]/).at(-2)!
    return invoice(request, { params: { id }, remoteAddr: { hostname: incoming.socket.remoteAddress! } })
  })
}

/** Each starts a server. @returns Its port. */
const hosts: Readonly<Record<string, () => Promise<number>>> = {
  'hono-node-server': async () => honoServer(await honoFetch(), true),
  'hono-bun': async () => serveBun(await honoFetch()),
  'hono-deno': async () => serveDeno(await honoFetch()),
  // Next.js calls a route handler with the runtime's own `Request`, and expects its `Response`.
  'route-handler': () => honoServer(withCookie, false),
  async express() {
    const { default: express } = await import('express')
    const app = express()
    app.use(async (request, response, next) => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      response.append('Set-Cookie', `visit=${request.get('x-visit')}`)
      next()
    })
    app.get(`${invoices}:id`, await invoiceListener())
    app.use(basePath || '/service', createListener(api))
    return listening(createServer(app))
  },
  async fastify() {
    const { default: createFastify } = await import('fastify')
    const answer = createListener(api)
    const answerInvoice = await invoiceListener()
    const fastify = createFastify().addHook('onRequest', async ({ raw }, reply) => {
      reply.hijack()
      reply.raw.appendHeader('Set-Cookie', `visit=${raw.headers['x-visit']}`)
      await (raw.url!.startsWith(invoices) ? answerInvoice : answer)(raw, reply.raw)
    })
    await fastify.listen({ port: 0 })
    return listening(fastify.server)
  },
  async elysia() {
    const { Elysia } = await import('elysia')
    const app = new Elysia().onAfterHandle(async ({ request, set }) => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      set.headers['set-cookie'] = `visit=${request.headers.get('x-visit')}`
    }).all(`${basePath}/service/*`, ({ request }) => mounted(request), { parse: 'none' })
      .get(`${invoices}:id`, ({ request, params }) => invoice(request, { params: params as { id: string } }))
    return serveBun(app.compile().fetch as Handler)
  },
  async srvx() {
    const { FastResponse, serve } = await import('srvx/node')
    Object.assign(globalThis, { Response: FastResponse })
    const server = serve({ port: 0, hostname: '127.0.0.1', silent: true, fetch: withCookie })
    await server.ready()
    return listening(server.node!.server as Server)
  },
  bun: () => Promise.resolve(serveBun(withCookie)),
  deno: () => Promise.resolve(serveDeno(withCookie)),
}

const port = await hosts[name]!()
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}${basePath}`, key })}\n`)
