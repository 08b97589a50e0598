import type { ServerResponse } from 'node:http'
import type { HttpResponse } from '../../core/http/message.ts'
import { loadHttp } from './node-request.ts'

export const isDeno: boolean = 'Deno' in globalThis

export function writeResponse(
  response: ServerResponse,
  { status, headers, body, utf8 }: HttpResponse,
  closesConnection: boolean,
): void {
  // Deno does not validate header values.
  if (isDeno) fieldLines(headers)
  response.writeHead(status, closesConnection ? [...headers, 'Connection', 'close'] : headers as string[])
  if (body === undefined) response.end()
  else response.end(utf8 ?? toLatin1(body), 'latin1')
}

/** Sets headers without `writeHead`, whose array is misread by middleware that replaces it (`on-headers` before 1.1). */
export function setHeaders(response: ServerResponse, headers: readonly string[]): void {
  if (isDeno) fieldLines(headers)
  for (let i = 0; i < headers.length; i += 2) response.setHeader(headers[i]!, headers[i + 1]!)
}

/** A response as bytes, for a connection on which Node has no response object. */
export function serializeResponse({ status, headers, body = '' }: HttpResponse): Uint8Array {
  const lines = `date: ${new Date().toUTCString()}\r\n${fieldLines(headers)}connection: close\r\n\r\n`
  return Buffer.from(statusLine(status) + lines + toLatin1(body), 'latin1')
}

/**
 * Creates a writer of responses after which the connection stays open. It writes what `writeResponse` would. For each
 * response, Node renders and validates all headers, and writes a body of bytes apart from them. This
 * writer keeps the text of bodies that are sent again, and of the headers that every response with them has.
 */
export function createResponseWriter(keepAliveTimeoutMs: number) {
  const keptBodies = new WeakMap<Uint8Array, { headers: readonly string[]; lines: string; text: string }>()
  const keepAlive = keepAliveTimeoutMs === 0
    ? ''
    : `Keep-Alive: timeout=${Math.floor(keepAliveTimeoutMs / 1000)}\r\n`
  let second = 0
  let finalLines = ''

  function keep(body: Uint8Array, allHeaders: readonly string[]) {
    const headers = allHeaders.slice(0, Math.max(0, allHeaders.indexOf('X-Request-Id')))
    const kept = { headers, lines: fieldLines(headers), text: toLatin1(body) }
    keptBodies.set(body, kept)
    return kept
  }

  return (response: ServerResponse, httpResponse: HttpResponse): void => {
    const { status, headers, body, utf8 } = httpResponse
    if (body === undefined) return writeResponse(response, httpResponse, false)
    let kept = typeof body === 'string' ? undefined : keptBodies.get(body)
    if (typeof body !== 'string' && !kept?.headers.every((text, index) => text === headers[index])) {
      kept = keep(body, headers)
    }
    const now = Math.floor(Date.now() / 1000)
    if (now !== second) {
      second = now
      finalLines = `Date: ${new Date(now * 1000).toUTCString()}\r\nConnection: keep-alive\r\n${keepAlive}\r\n`
    }
    const lines = (kept?.lines ?? '') + fieldLines(headers, kept?.headers.length)
    // Undocumented, but as old as Node: the text that `end` sends before the body.
    const message = response as ServerResponse & { _header: string; _headerSent: boolean }
    message.statusCode = status
    message._header = statusLine(status) + lines + finalLines
    message._headerSent = false
    // On a runtime that ignores these properties.
    if (!response.headersSent) return writeResponse(response, httpResponse, false)
    response.end(kept?.text ?? utf8 ?? toLatin1(body), 'latin1')
  }
}

/** @throws {TypeError} for a value with a control character or a character outside Latin-1. */
function fieldLines(headers: readonly string[], start = 0): string {
  let lines = ''
  for (let i = start; i < headers.length; i += 2) {
    const value = headers[i + 1] as string
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) throw new TypeError(`The value of ${headers[i]} is invalid.`)
    lines += `${headers[i]}: ${value}\r\n`
  }
  return lines
}

function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${loadHttp().STATUS_CODES[status]}\r\n`
}

/** The bytes of a body, each as a character: Node writes Latin-1 as it is, and in one piece with the head. */
function toLatin1(body: string | Uint8Array): string {
  if (typeof body !== 'string') {
    return Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1')
  }
  return Buffer.byteLength(body) === body.length ? body : Buffer.from(body).toString('latin1')
}
