/** What `server.ts` can serve. A peer of the plain name does nothing but check the key and send the page. */
export type ServerKind =
  | 'ours'
  | 'raw'
  | 'raw-same-fields'
  | 'hono'
  | 'hono-same-work'
  | 'hono-listing'
  | 'fastify'
  | 'fastify-same-work'
  | 'fastify-listing'
