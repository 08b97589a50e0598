import { type Context, Hono } from 'hono'
import { bearerAuth } from 'hono/bearer-auth'
import { validator } from 'hono/validator'
import * as v from 'valibot'
import type { Store } from '../../core/ports/store.ts'
import {
  createPageReader,
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

interface Variables {
  key: PeerKey
}

/** bearerAuth, which looks up the hash of the key, as its documentation recommends for tokens that are not fixed. */
function createApp(key: string): Hono<{ Variables: Variables }> {
  const keys = createPeerKeys(key, PARTNER)
  const app = new Hono<{ Variables: Variables }>()
  app.use(
    '/service/*',
    bearerAuth({
      verifyToken(token, context: Context<{ Variables: Variables }>) {
        const found = keys.find(token)
        if (found === undefined) return false
        context.set('key', found)
        return true
      },
    }),
  )
  return app
}

/** bearerAuth and the ready page: the least work of an authenticated response. */
export function honoReady(key: string, ready: ReadyAnswer): Hono<{ Variables: Variables }> {
  const headers = { 'Content-Type': 'application/json; charset=utf-8' }
  return createApp(key).get(DIRECTORY_PATH, (context) => context.body(ready.text, 200, headers))
}

/** bearerAuth, and by hand what else the service does: the partner, the quota, the same header fields. */
export function honoSameWork(key: string, ready: ReadyAnswer): Hono<{ Variables: Variables }> {
  const count = createPeerLimit()
  return createApp(key).get(DIRECTORY_PATH, (context) => {
    const peerKey = context.get('key')
    const limit = count(peerKey)
    if (limit === undefined) return context.json({ error: 'rate_limited' }, 429)
    if (!mayRead(peerKey, context.req.query('partner'))) return context.json({ error: 'forbidden' }, 403)
    if (context.req.header('if-none-match') === ready.headers['ETag']) return context.body(null, 304)
    return context.body(ready.text, 200, {
      ...ready.headers,
      'X-Request-Id': nextPeerId(),
      RateLimit: limit,
    })
  })
}

const verifyBody = v.strictObject({ partner: v.string() })

/** bearerAuth and Hono's validator, and by hand what else the service does to check a key. */
export function honoVerify(key: string, ready: ReadyAnswer): Hono<{ Variables: Variables }> {
  const verify = createPeerVerification(ready)
  const body = validator('json', (value, context) => {
    const parsed = v.safeParse(verifyBody, value)
    return parsed.success ? parsed.output : context.json({ error: 'invalid_body' }, 422)
  })
  return createApp(key).post(VERIFY_PATH, body, (context) => {
    const peerKey = context.get('key')
    const verified = verify(peerKey)
    if (verified === undefined) return context.json({ error: 'rate_limited' }, 429)
    const { data, limit } = verified
    if (!mayName(peerKey, context.req.valid('json').partner)) {
      return context.json({ error: 'forbidden' }, 403)
    }
    return context.body(JSON.stringify({ data }), 200, {
      ...ready.headers,
      'X-Request-Id': nextPeerId(),
      RateLimit: limit,
    })
  })
}

/** The same, with a page that the store is asked for. Parameters are validated by hand. Plain: without more fields. */
export function honoPages(key: string, store: Store, isPlain = false): Hono<{ Variables: Variables }> {
  const count = createPeerLimit()
  const readPage = createPageReader(store)
  const writePage = createPageWriter(store)
  return createApp(key).get(DIRECTORY_PATH, async (context) => {
    const peerKey = context.get('key')
    const limit = count(peerKey)
    if (limit === undefined) return context.json({ error: 'rate_limited' }, 429)
    const values = context.req.queries()
    if (!mayRead(peerKey, values['partner']?.[0])) return context.json({ error: 'forbidden' }, 403)
    const query = pageQueryOf(values)
    if (query === undefined || !isValidQuery(query)) return context.json({ error: 'invalid' }, 400)
    if (isPlain) {
      const read = await readPage(query)
      return context.json(read ?? { error: 'invalid_cursor' }, read ? 200 : 400, { RateLimit: limit })
    }
    const page = await writePage(query, context.req.url.slice(context.req.url.indexOf('?')))
    if (page === undefined) return context.json({ error: 'invalid_cursor' }, 400)
    if (context.req.header('if-none-match') === page.headers['ETag']) return context.body(null, 304)
    return context.body(page.text, 200, {
      ...page.headers,
      'X-Request-Id': nextPeerId(),
      RateLimit: limit,
    })
  })
}

const parameters = new Set(['partner', 'q', 'country', 'industry', 'sort', 'limit', 'cursor'])

function pageQueryOf(values: Record<string, string[]>): PageQuery | undefined {
  for (const [name, { length }] of Object.entries(values)) {
    if (!parameters.has(name) || length > 1 && name !== 'country' && name !== 'industry') return undefined
  }
  const { q, country = [], industry = [], sort = ['name'], limit = ['20'], cursor } = values
  const size = Number(limit[0])
  if (!Number.isInteger(size) || size < 1 || size > 100) return undefined
  if (sort[0] !== 'name' && sort[0] !== '-published_at') return undefined
  return { q: q?.[0], country, industry, sort: sort[0], limit: size, cursor: cursor?.[0] }
}
