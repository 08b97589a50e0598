import bearerAuth from '@fastify/bearer-auth'
import fastify from 'fastify'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Store } from '../../core/ports/store.ts'
import {
  createPageWriter,
  createPeerKeys,
  createPeerLimit,
  createPeerVerification,
  isValidQuery,
  mayName,
  mayRead,
  nextPeerId,
  type PageQuery,
  type PeerKey,
} from './peers.ts'
import { PARTNER } from '../support/partner.ts'
import { DIRECTORY_PATH, type ReadyAnswer, VERIFY_PATH } from './tenant.ts'

const type = 'application/json; charset=utf-8'

/** bearer-auth, which looks up the hash of the key and keeps the key with the request. */
async function createApp(
  key: string,
): Promise<{ app: FastifyInstance; keyOf: (r: FastifyRequest) => PeerKey }> {
  const keys = createPeerKeys(key, PARTNER)
  // By default, Fastify removes what the schema does not allow.
  const app = fastify({ ajv: { customOptions: { removeAdditional: false } } })
  // Declared in advance, as Fastify recommends, so that all requests have one shape.
  app.decorateRequest('peerKey', null)
  await app.register(bearerAuth, {
    keys: new Set<string>(),
    auth(token, request) {
      const found = keys.find(token)
      if (found === undefined) return false
      request.setDecorator('peerKey', found)
      return true
    },
  })
  return { app, keyOf: (request) => request.getDecorator<PeerKey>('peerKey') }
}

/** bearer-auth and the ready page: the least work of an authenticated response. */
export async function fastifyReady(key: string, ready: ReadyAnswer): Promise<FastifyInstance> {
  const { app } = await createApp(key)
  app.get(DIRECTORY_PATH, (_request, reply) => {
    reply.header('Content-Type', type).send(ready.text)
  })
  return app
}

/** bearer-auth, and by hand what else the service does: the partner, the quota, the same header fields. */
export async function fastifySameWork(key: string, ready: ReadyAnswer): Promise<FastifyInstance> {
  const { app, keyOf } = await createApp(key)
  const count = createPeerLimit()
  app.get<{ Querystring: { partner?: string } }>(DIRECTORY_PATH, (request, reply) => {
    const peerKey = keyOf(request)
    const limit = count(peerKey)
    if (limit === undefined) return reply.code(429).send({ error: 'rate_limited' })
    if (!mayRead(peerKey, request.query.partner)) return reply.code(403).send({ error: 'forbidden' })
    if (request.headers['if-none-match'] === ready.headers['ETag']) return reply.code(304).send()
    return reply.headers(ready.headers).header('X-Request-Id', nextPeerId()).header('RateLimit', limit)
      .send(ready.text)
  })
  return app
}

const verifyBody = {
  type: 'object',
  properties: { partner: { type: 'string' } },
  required: ['partner'],
  additionalProperties: false,
}

/** bearer-auth and a JSON schema for the body, and by hand what else the service does to check a key. */
export async function fastifyVerify(key: string, ready: ReadyAnswer): Promise<FastifyInstance> {
  const { app, keyOf } = await createApp(key)
  const verify = createPeerVerification(ready)
  app.post<{ Body: { partner: string } }>(VERIFY_PATH, { schema: { body: verifyBody } }, (request, reply) => {
    const peerKey = keyOf(request)
    const verified = verify(peerKey)
    if (verified === undefined) return reply.code(429).send({ error: 'rate_limited' })
    const { data, limit } = verified
    if (!mayName(peerKey, request.body.partner)) return reply.code(403).send({ error: 'forbidden' })
    return reply.headers(ready.headers).header('X-Request-Id', nextPeerId()).header('RateLimit', limit)
      .send({ data })
  })
  return app
}

/** The same, with a page that the store is asked for. Parameters are validated by a schema. */
export async function fastifyPages(key: string, store: Store): Promise<FastifyInstance> {
  const { app, keyOf } = await createApp(key)
  const count = createPeerLimit()
  const writePage = createPageWriter(store)
  const options = { schema: { querystring: querySchema } }
  app.get<{ Querystring: PageQuery & { partner?: string } }>(
    DIRECTORY_PATH,
    options,
    async (request, reply) => {
      const peerKey = keyOf(request)
      const limit = count(peerKey)
      if (limit === undefined) return reply.code(429).send({ error: 'rate_limited' })
      if (!mayRead(peerKey, request.query.partner)) return reply.code(403).send({ error: 'forbidden' })
      if (!isValidQuery(request.query)) return reply.code(400).send({ error: 'invalid' })
      const page = await writePage(request.query, request.url.slice(request.url.indexOf('?')))
      if (page === undefined) return reply.code(400).send({ error: 'invalid_cursor' })
      if (request.headers['if-none-match'] === page.headers['ETag']) return reply.code(304).send()
      return reply.headers(page.headers).header('X-Request-Id', nextPeerId()).header('RateLimit', limit)
        .send(page.text)
    },
  )
  return app
}

const querySchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    partner: { type: 'string' },
    q: { type: 'string', minLength: 2, maxLength: 100 },
    country: {
      type: 'array',
      items: { type: 'string', pattern: '^[A-Za-z]{2}$' },
      maxItems: 20,
      default: [],
    },
    industry: { type: 'array', items: { type: 'string', maxLength: 80 }, maxItems: 20, default: [] },
    sort: { type: 'string', enum: ['name', '-published_at'], default: 'name' },
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
    cursor: { type: 'string' },
  },
}
