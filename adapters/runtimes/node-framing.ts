import type { IncomingMessage } from 'node:http'
import type { Answer } from '../../core/http/exchange.ts'
import { isHost } from '../../core/http/fetch.ts'
import type { ProblemCode } from '../../core/http/problem.ts'
import { loadHttp } from './node-http.ts'

const maxTargetBytes = 8192
const maxHeaderBytes = 32_768

/**
 * What Node's parser is set to. It counts target and headers together and does not tell which was too large,
 * so it lets through four times what is allowed, and `objectionTo` does the counting. That is more than a packet has.
 */
export const parserHeaderBytes: number = 4 * maxHeaderBytes
/** Beyond this number Node drops headers in silence. No more can fit: the shortest is `a:` and its CRLF. */
export const parserHeaders: number = maxHeaderBytes / 4

/**
 * What is wrong with the head of a request that Node's parser lets through.
 *
 * @returns A code, the target's first, or `undefined` for a good head.
 */
export function objectionTo(request: IncomingMessage): ProblemCode | undefined {
  const { headers, httpVersion, rawHeaders } = request
  if ((request.url as string).length > maxTargetBytes) return 'uri_too_long'
  let size = 0
  // Node hands over names and values as Latin-1, a character a byte, in turn: `: ` and CRLF make it a line.
  for (let i = 0; i < rawHeaders.length; i++) size += (rawHeaders[i] as string).length + 2
  if (size > maxHeaderBytes) return 'headers_too_large'
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 'malformed_request'
  // RFC 9112 §3.2: exactly one Host, and a valid one. Repeated ones are joined by a comma and a space.
  const { host } = headers
  if (host === undefined ? httpVersion === '1.1' : !isHost(host)) return 'malformed_request'
  // RFC 9112 §6.1: no other coding is understood, and none is defined for HTTP/1.0.
  const coding = headers['transfer-encoding']
  if (coding === undefined) return
  if (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked') return 'malformed_request'
}

/**
 * The target of a request in origin form. Proxies may send the absolute form (RFC 9112 §3.2.2).
 *
 * @returns `undefined` for the asterisk and authority forms, which name nothing here.
 */
export function originForm(url: string): string | undefined {
  if (url.charCodeAt(0) === 0x2f) return url
  const absolute = /^https?:\/\/[^/?#]+(.*)$/i.exec(url)?.[1]
  return absolute?.startsWith('/') === false ? `/${absolute}` : absolute
}

/** What Node's parser, its timer or the socket complained about. */
export type ConnectionError = Error & { readonly code?: string; readonly rawPacket?: Buffer }

/**
 * The code for an error that Node reports for a connection.
 *
 * @returns `undefined` when the connection itself is broken and there is nobody to tell.
 */
export function refusalFor({ code }: ConnectionError): ProblemCode | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  // Of a head, or of the trailers behind a body. In a head it may be the target: see `overflowIn`.
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 'body_too_large'
  return code?.startsWith('HPE_') ? 'malformed_request' : undefined
}

/**
 * Which limit a head broke when the parser gave up on it. It shows one packet at a time, and goes on to: a target is
 * what ends as a request line does.
 *
 * @param text The packets since then.
 * @returns `undefined` until the line has ended.
 */
export function overflowIn(text: string): ProblemCode | undefined {
  const end = text.indexOf('\n')
  if (end < 0) return undefined
  const line = text.slice(0, end)
  if (!/ HTTP\/\d\.\d\r?$/.test(line)) return 'headers_too_large'
  const [, target, version] = line.split(' ')
  // Of a target that began in an earlier packet only the end is there.
  return version !== undefined && target!.length <= maxTargetBytes ? 'headers_too_large' : 'uri_too_long'
}

/** An answer as bytes, for a connection on which Node has no response to write it with. */
export function serialize({ status, headers, body }: Answer): Uint8Array {
  let head = `HTTP/1.1 ${status} ${loadHttp().STATUS_CODES[status]}\r\ndate: ${new Date().toUTCString()}\r\n`
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
  head += 'connection: close\r\n\r\n'
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body ?? '')])
}
