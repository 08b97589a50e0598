/**
 * Serves on Deno 2.9 or later.
 *
 * `Deno.serve(api.fetch)` serves as well, but has no time limits, cannot close the connection of a client that does not
 * read its answer, and accepts more than HTTP allows. So this is Deno's `node:http`, whose parser is Node's.
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
 * Serves `api` over HTTP/1.1. Signals are left to the caller.
 *
 * @returns The server, once it accepts.
 * @throws {Error} when the address can't be listened on; `cause` says why.
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
