import { Elysia } from 'elysia'
import { PARTNER } from './profiles.ts'
import { DIRECTORY_PATH, type ReadyAnswer } from './tenant.ts'
import { createPeerKeys, createPeerLimit, mayRead, nextPeerId, type PeerKey } from './peers.ts'

/** The handler of requests that `Bun.serve` is given. Elysia compiles it. */
type Handler = (request: Request) => Response | Promise<Response>

const type = 'application/json; charset=utf-8'

function keyIn(headers: Headers, find: (text: string) => PeerKey | undefined): PeerKey | undefined {
  const authorization = headers.get('authorization')
  return authorization?.startsWith('Bearer ') ? find(authorization.slice(7)) : undefined
}

/** The key looked up in a hook before the handler, and the ready page. */
export function elysiaReady(key: string, ready: ReadyAnswer): Handler {
  const { find } = createPeerKeys(key, PARTNER)
  return new Elysia()
    .onBeforeHandle(({ request, status }) => {
      if (keyIn(request.headers, find) === undefined) return status(401)
    })
    .get(DIRECTORY_PATH, () => new Response(ready.text, { headers: { 'Content-Type': type } }))
    .compile().fetch
}

/** The same, and by hand what the service does besides. */
export function elysiaSameWork(key: string, ready: ReadyAnswer): Handler {
  const { find } = createPeerKeys(key, PARTNER)
  const count = createPeerLimit()
  return new Elysia()
    .resolve(({ request, status }) => {
      const peerKey = keyIn(request.headers, find)
      return peerKey === undefined ? status(401) : { peerKey }
    })
    .get(DIRECTORY_PATH, ({ peerKey, query, request, status }) => {
      const limit = count(peerKey)
      if (limit === undefined) return status(429)
      if (!mayRead(peerKey, query['partner'])) return status(403)
      if (request.headers.get('if-none-match') === ready.headers['ETag']) return status(304)
      const headers = { ...ready.headers, 'X-Request-Id': nextPeerId(), RateLimit: limit }
      return new Response(ready.text, { headers })
    })
    .compile().fetch
}
