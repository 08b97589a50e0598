/**
 * Serves on Deno 2.9 or later.
 *
 * Uses Deno's `node:http`, whose parser is Node's. `Deno.serve(api.fetch)` works too, but it has no time limits, keeps
 * the connection of a client that does not read its response, and accepts invalid HTTP.
 *
 * @module
 */
import {
  type RunningServer,
  type ServableApi,
  serve as serveWithNodeHttp,
  type ServeOptions,
} from './node.ts'
import type { ListenOptions } from './server.ts'

export type { ListenOptions, RunningServer, ServableApi, ServeOptions }

/**
 * Serves `api` over HTTP/1.1. The caller handles signals.
 *
 * @returns The server, once it accepts connections.
 * @throws {Error} when the address can't be listened on; `cause` has the reason.
 * @throws {RangeError} for a setting out of its range.
 * @example
 * ```ts
 * const server = await serve(api, { port: 0 })
 * Deno.addSignalListener('SIGTERM', () => server.drain())
 * ```
 */
export function serve(api: ServableApi, options: ServeOptions = {}): Promise<RunningServer> {
  return serveWithNodeHttp(api, options)
}
