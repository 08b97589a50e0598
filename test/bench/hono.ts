import { type Context, Hono } from 'hono'
import { bearerAuth } from 'hono/bearer-auth'
import type { Store } from '../../core/ports/store.ts'
import { PARTNER } from './profiles.ts'
import { DIRECTORY_PATH, type ReadyAnswer } from './tenant.ts'
import {
  answerListing,
  createPeerKeys,
  createPeerLimit,
  judgeListing,
  mayRead,
  nextPeerId,
  type PeerKey,
} from './peers.ts'

interface Variables {
  key: PeerKey
}

/** bearerAuth with the key's hash looked up, as its documentation has it for tokens that are not fixed. */
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

/** bearerAuth and the ready page: the least that can be called authenticated. */
export function honoReady(key: string, ready: ReadyAnswer): Hono<{ Variables: Variables }> {
  const headers = { 'Content-Type': 'application/json; charset=utf-8' }
  return createApp(key).get(DIRECTORY_PATH, (context) => context.body(ready.text, 200, headers))
}

/** bearerAuth, and by hand what the service does besides: the partner, the quota, the same header fields. */
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

/** bearerAuth, parameters judged by hand, the page read and written anew for each request. */
export function honoListing(key: string, store: Store): Hono<{ Variables: Variables }> {
  return createApp(key).get(DIRECTORY_PATH, async (context) => {
    const query = context.req.queries()
    if (!mayRead(context.get('key'), query['partner']?.[0])) return context.json({ error: 'forbidden' }, 403)
    const listing = judgeListing(query)
    if (listing === undefined) return context.json({ error: 'invalid_parameter' }, 400)
    return context.json(await answerListing(store, PARTNER, listing))
  })
}
