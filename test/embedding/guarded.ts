/** The same guarded routes in each host of Node's. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import connect from 'connect'
import express from 'express'
import createFastify from 'fastify'
import type { Test } from 'tap'
import { grantOf, type Guard } from '../../adapters/runtimes/node.ts'

/** How a test answers a request that was let through; without it, with its partner and body. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void

export interface HostOptions {
  readonly answer?: Answer | undefined
  /** What the host does with bodies before the guard; default `unread`. */
  readonly bodies?: 'unread' | 'bytes' | 'parsed'
  /** What the host does to each request and response before the guard. */
  readonly middleware?: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
}

function describe(request: IncomingMessage & { readonly body?: unknown }): string {
  const { partner, key } = grantOf(request)
  return JSON.stringify({ partner: partner.slug, key: key.id, body: request.body })
}

const answerJson: Answer = (request, response) => {
  response.setHeader('Content-Type', 'application/json')
  response.end(describe(request))
}

const PARSERS = {
  async bytes(
    request: IncomingMessage & { body?: unknown },
    _: ServerResponse,
    next: () => void,
  ): Promise<void> {
    request.body = await buffer(request)
    next()
  },
  parsed: express.json(),
}

/** Each makes a listener that has the guard before its answer, on every path and method. */
export const HOSTS: Readonly<
  Record<string, (guard: Guard, options: HostOptions) => Promise<RequestListener>>
> = {
  express(guard, { answer = answerJson, bodies = 'unread', middleware }) {
    const app = express()
    if (middleware) {
      app.use((request, response, next) => {
        middleware(request, response)
        next()
      })
    }
    if (bodies !== 'unread') app.use(PARSERS[bodies])
    app.all('/*path', guard, answer)
    return Promise.resolve(app)
  },
  connect(guard, { answer = answerJson, bodies = 'unread', middleware }) {
    const app = connect()
    if (middleware) {
      app.use((request, response, next) => {
        middleware(request, response)
        next()
      })
    }
    if (bodies !== 'unread') app.use(PARSERS[bodies] as connect.NextHandleFunction)
    app.use(guard).use((request, response) => answer(request, response))
    return Promise.resolve(app)
  },
  async fastify(guard, { answer, bodies = 'unread', middleware }) {
    const fastify = createFastify()
    if (bodies !== 'parsed') fastify.removeAllContentTypeParsers()
    if (bodies === 'unread') fastify.addContentTypeParser('*', (_, __, done) => done(null))
    if (bodies === 'bytes') {
      fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (_, bytes, done) => done(null, bytes))
    }
    if (middleware) {
      fastify.addHook('onRequest', (request, reply, done) => {
        middleware(request.raw, reply.raw)
        done()
      })
    }
    fastify.route({
      method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
      url: '/*',
      preHandler: guard.fastify,
      handler(request, reply) {
        if (answer === undefined) {
          const { partner, key } = grantOf(request)
          return reply.send({ partner: partner.slug, key: key.id, body: request.body })
        }
        reply.hijack()
        answer(request.raw, reply.raw)
      },
    })
    await fastify.ready()
    return (request, response) => fastify.routing(request, response)
  },
}

/** Serves a listener until the test ends. @returns Its origin. */
export async function listen(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}`
}
