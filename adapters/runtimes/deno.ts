/**
 * Serves on Deno 2.9 or later.
 *
 * Uses Deno's `node:http`, whose parser is Node's. `Deno.serve(api.fetch)` works too, but it has no time limits, keeps
 * the connection of a client that does not read its response, and accepts invalid HTTP.
 *
 * @module
 */
import { serve, type ServeOptions } from './node.ts'
import type { ListenOptions, RunningServer, ServableApi } from './server.ts'

export { type ListenOptions, type RunningServer, type ServableApi, serve, type ServeOptions }
