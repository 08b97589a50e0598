/** What servers run on. */
export type ServerRuntime = 'node' | 'bun' | 'deno'

/** What `server.ts` can serve. A peer of the plain name does nothing but check the key and send the page. */
export type NodeServerKind =
  | 'ours'
  | 'raw'
  | 'raw-same-fields'
  | 'hono'
  | 'hono-same-work'
  | 'hono-listing'
  | 'fastify'
  | 'fastify-same-work'
  | 'fastify-listing'

/** What `fetch-server.ts` can serve. `fetch` is the service as a handler that anybody may mount. */
export type FetchServerKind =
  | 'ours'
  | 'fetch'
  | 'raw'
  | 'raw-same-fields'
  | 'hono'
  | 'hono-same-work'
  | 'elysia'
  | 'elysia-same-work'

/** A server of either. */
export type ServerKind = NodeServerKind | FetchServerKind
