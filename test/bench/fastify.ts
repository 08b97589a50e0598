import bearerAuth from '@fastify/bearer-auth'
import fastify from 'fastify'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { COUNTRY_CODES } from '../../core/content/iso-codes.ts'
import type { ProfileSort } from '../../core/ports/directory.ts'
import type { Store } from '../../core/ports/store.ts'
import { PARTNER } from './profiles.ts'
import { DIRECTORY_PATH, type ReadyAnswer } from './tenant.ts'
import { answerListing, createPeerKeys, createPeerLimit, mayRead, nextPeerId, type PeerKey } from './peers.ts'

const type = 'application/json; charset=utf-8'

/** bearer-auth with the key's hash looked up; the key that was found belongs to the request. */
async function createApp(
  key: string,
): Promise<{ app: FastifyInstance; keyOf: (r: FastifyRequest) => PeerKey }> {
  const keys = createPeerKeys(key, PARTNER)
  const app = fastify()
  // Declared beforehand, as Fastify advises, so that all requests have one shape.
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

/** bearer-auth and the ready page: the least that can be called authenticated. */
export async function fastifyReady(key: string, ready: ReadyAnswer): Promise<FastifyInstance> {
  const { app } = await createApp(key)
  app.get(DIRECTORY_PATH, (_request, reply) => {
    reply.header('Content-Type', type).send(ready.text)
  })
  return app
}

/** bearer-auth, and by hand what the service does besides: the partner, the quota, the same header fields. */
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

interface ListingQuery {
  partner: string
  country: string[]
  industry: string[]
  sort: ProfileSort
  limit: number
}

const names = { type: 'array', items: { type: 'string', maxLength: 80 }, maxItems: 20, default: [] }
const querystring = {
  type: 'object',
  additionalProperties: false,
  required: ['partner'],
  properties: {
    partner: { type: 'string' },
    country: { ...names, items: { type: 'string', enum: COUNTRY_CODES } },
    industry: names,
    sort: { type: 'string', enum: ['name', '-published_at'], default: 'name' },
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
  },
}

/**
 * bearer-auth, parameters judged by a JSON Schema that Fastify compiles, the page read and written anew for each
 * request. JSON.stringify writes these pages faster than a response schema does.
 */
export async function fastifyListing(key: string, store: Store): Promise<FastifyInstance> {
  const { app, keyOf } = await createApp(key)
  app.get<{ Querystring: ListingQuery }>(
    DIRECTORY_PATH,
    { schema: { querystring } },
    async (request, reply) => {
      const { partner, country, industry, sort, limit } = request.query
      if (!mayRead(keyOf(request), partner)) return reply.code(403).send({ error: 'forbidden' })
      const listing = { countries: country, industries: industry, sort, limit }
      return reply.header('Content-Type', type)
        .send(JSON.stringify(await answerListing(store, PARTNER, listing)))
    },
  )
  return app
}
