/** Runs services behind Node's HTTP server or through their fetch handler, and the transports to both. */
import { Agent, request } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { serve } from '../../../adapters/runtimes/node.ts'
import type { PartnerApi } from '../../../core/api.ts'
import type { Mounted } from './deploy.ts'
import type { Send, TestResponse } from './service.ts'

/**
 * Sends targets and fields unmodified, unlike `fetch`.
 *
 * @param name The value of `Host`, by default the server's host.
 */
export function socketTransport(
  origin: string,
  name: string = new URL(origin).host,
): { readonly send: Send; close(): void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  const { hostname, port } = new URL(origin)
  return {
    send: ({ method = 'GET', target, headers = {}, body, chunked = false }) =>
      new Promise((resolve, reject) => {
        const fields = Object.fromEntries(
          Object.entries(headers).map((
            [name, value],
          ) => [name, typeof value === 'string' ? value : [...value]]),
        )
        const length = body !== undefined && !chunked ? { 'content-length': Buffer.byteLength(body) } : {}
        const sent = request({
          hostname,
          port,
          method,
          path: target,
          headers: { host: name, ...length, ...fields },
          agent,
        })
        sent.on('error', reject)
        sent.on('response', (response) => {
          const chunks: Uint8Array[] = []
          response.on('data', (chunk: Uint8Array) => chunks.push(chunk))
          response.on('error', reject)
          response.on('end', () => {
            const pairs: [string, string][] = []
            for (let index = 0; index < response.rawHeaders.length; index += 2) {
              pairs.push([response.rawHeaders[index]!.toLowerCase(), response.rawHeaders[index + 1]!])
            }
            resolve(toTestResponse(response.statusCode ?? 0, pairs, Buffer.concat(chunks)))
          })
        })
        if (body !== undefined && chunked) sent.write(body)
        sent.end(chunked ? undefined : body)
      }),
    close: () => agent.destroy(),
  }
}

/** Calls a fetch handler in this process. Targets are normalised by `Request`, and repeated fields joined. */
export function fetchTransport(handler: (request: Request) => Promise<Response>): Send {
  return async ({ method = 'GET', target, headers = {}, body, chunked = false }) => {
    const fields = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
      typeof value === 'string' ? [[name, value]] : value.map((one): [string, string] => [name, one])
    )
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    if (bytes !== undefined && !chunked) fields.push(['content-length', String(bytes.length)])
    const content = bytes === undefined
      ? {}
      : { body: new Blob([Uint8Array.from(bytes)]).stream(), duplex: 'half' }
    const response = await handler(
      new Request(`http://service.example${target}`, { method, headers: fields, ...content }),
    )
    return toTestResponse(
      response.status,
      [...response.headers],
      new Uint8Array(await response.arrayBuffer()),
    )
  }
}

/** @param pairs Names in lower case, and values. */
export function toTestResponse(
  status: number,
  pairs: readonly [string, string][],
  body: Uint8Array,
): TestResponse {
  const isGzip = body.length > 0 &&
    pairs.some(([name, value]) => name === 'content-encoding' && value === 'gzip')
  const text = Buffer.from(isGzip ? gunzipSync(body) : body).toString('utf8')
  const names = pairs.map(([name]) => name)
  return {
    status,
    headers: new Map(pairs),
    repeated: names.filter((name, index) => names.indexOf(name) < index),
    body,
    text,
    json: readJson(text),
  }
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Serves on a free port of this machine. */
export async function onNode(api: PartnerApi): Promise<Mounted> {
  const server = await serve(api, { port: 0 })
  const wire = socketTransport(server.url)
  return {
    send: wire.send,
    quirks: new Set(),
    async close() {
      wire.close()
      await server.close()
    },
  }
}

/** Calls the fetch handler in this process. */
export function inProcess(api: PartnerApi): Promise<Mounted> {
  // The address of the peer, as Deno passes it.
  const fetchFrom = (request: Request) => api.fetch(request, { remoteAddr: { hostname: '127.0.0.1' } })
  return Promise.resolve({
    send: fetchTransport(fetchFrom),
    quirks: new Set(['resolves-targets', 'no-trace']),
    close: () => Promise.resolve(),
  })
}
