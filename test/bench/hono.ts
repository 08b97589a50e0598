import { type Context, Hono } from 'hono'
import { bearerAuth } from 'hono/bearer-auth'
import { PARTNER } from './profiles.ts'
import { DIRECTORY_PATH, type ReadyAnswer } from './tenant.ts'
import { createPeerKeys, createPeerLimit, mayRead, nextPeerId, type PeerKey } from './peers.ts'

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
