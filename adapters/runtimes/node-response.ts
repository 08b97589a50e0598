import type { ServerResponse } from 'node:http'
import type { HttpResponse } from '../../core/http/message.ts'
import { loadHttp } from './node-request.ts'

export const isDeno: boolean = 'Deno' in globalThis

export function writeResponse(
  response: ServerResponse,
  { status, headers, body }: HttpResponse,
  closesConnection: boolean,
): void {
  if (isDeno) validate(headers)
  response.writeHead(status, closesConnection ? [...headers, 'Connection', 'close'] : headers as string[])
  if (body === undefined) response.end()
  // Node writes a text in one piece with the head, and Latin-1 as it is.
  else response.end(typeof body === 'string' ? toLatin1(body) : keptText(body), 'latin1')
}

/**
 * Sets headers without `writeHead`, whose array is misread by middleware that replaces it (`on-headers` before 1.1).
 */
export function setHeaders(response: ServerResponse, headers: readonly string[]): void {
  if (isDeno) validate(headers)
  for (let i = 0; i < headers.length; i += 2) response.setHeader(headers[i]!, headers[i + 1]!)
}

/** A response as bytes, for a connection on which Node has no response object. */
export function serializeResponse({ status, headers, body = '' }: HttpResponse): Uint8Array {
  validate(headers)
  const fields = ['Date', new Date().toUTCString(), ...headers, 'Connection', 'close']
  let text = `HTTP/1.1 ${status} ${loadHttp().STATUS_CODES[status]}\r\n`
  for (let i = 0; i < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`
  return Buffer.from(`${text}\r\n${toLatin1(body)}`, 'latin1')
}

/** @throws {TypeError} for a value with a control character or a character outside Latin-1: Deno sends them. */
function validate(headers: readonly string[]): void {
  for (let i = 1; i < headers.length; i += 2) {
    if (/[^\t\x20-\x7e\x80-\xff]/.test(headers[i]!)) {
      throw new TypeError(`The value of ${headers[i - 1]} is invalid.`)
    }
  }
}

/** The texts of bodies that are sent again. */
const keptTexts = new WeakMap<Uint8Array, string>()

function keptText(body: Uint8Array): string {
  let text = keptTexts.get(body)
  if (text === undefined) keptTexts.set(body, text = toLatin1(body))
  return text
}

/** The bytes of a body, each as a character. */
function toLatin1(body: string | Uint8Array): string {
  if (typeof body !== 'string') {
    return Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1')
  }
  return Buffer.byteLength(body) === body.length ? body : Buffer.from(body).toString('latin1')
}
