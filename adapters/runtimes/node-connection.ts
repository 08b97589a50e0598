import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { HttpResponse } from '../../core/http/message.ts'
import type { ProblemCode } from '../../core/http/problem.ts'
import {
  classifyOverflow,
  type ConnectionError,
  findHeadProblem,
  loadHttp,
  NodeHttpRequest,
  problemForError,
  toOriginForm,
} from './node-request.ts'
import type { PendingRequests, ServableApi } from './server.ts'

const emptyBytes = new Uint8Array()
/** How much of a body nobody read is let in so that the connection can be used again, in bytes. */
const maxUnreadBytes = 65_536
/** How much may wait to be sent before no more requests are read, in bytes. */
const maxUnsentBytes = 65_536
const isDeno = 'Deno' in globalThis
/** How long a client may go on sending after the last answer, in milliseconds. */
const lingerMs = 5_000

/**
 * Makes `server` answer with `api`: requests, what its parser refuses, and what came too late.
 *
 * @param isDraining Whether answers are to end their connections.
 * @param pending Gets the requests whose answers are awaited.
 */
export function attachApi(
  server: Server,
  api: ServableApi,
  isDraining: () => boolean,
  pending: PendingRequests,
): void {
  // The latest request of a connection that has a body, or whose answer waits for something or behind another's: an
  // error of the connection may be its own, and must not overtake it. All others were answered before the parser read on.
  const latestRequests = new WeakMap<Duplex, NodeHttpRequest>()
  // Connections whose last answer is on its way: nothing more is processed (RFC 9112 §9.6).
  const closingSockets = new Set<Duplex>()
  // How the latest packet ended of a head that is too large.
  const overflowTails = new WeakMap<Duplex, string>()

  function handleRequest(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const { socket } = request
    if (closingSockets.size > 0 && closingSockets.has(socket)) return void request.resume()
    const target = toOriginForm(request.url as string)
    const httpRequest = new NodeHttpRequest(request, response, target ?? '/', expectsContinue)
    // Node gives the socket to one response at a time.
    if (httpRequest.hasBody || response.socket === null) latestRequests.set(socket, httpRequest)
    const problemCode = findHeadProblem(request) ?? (target === undefined ? 'malformed_request' : undefined)
    if (problemCode !== undefined) {
      return respond(httpRequest, api.refuse(problemCode, httpRequest.address), true)
    }
    const result = api.handle(httpRequest)
    if (!(result instanceof Promise)) return respond(httpRequest, result, isDraining())
    latestRequests.set(socket, httpRequest)
    const completed = result.then((later) =>
      respond(httpRequest, later, isDraining() && latestRequests.get(socket) === httpRequest)
    )
    pending.add(httpRequest, completed)
  }

  function respond(httpRequest: NodeHttpRequest, httpResponse: HttpResponse, isLast: boolean): void {
    const { request, response } = httpRequest
    const { socket } = request
    if (response.destroyed) return
    const closesConnection = isLast || !response.shouldKeepAlive || requestsUpgrade(request) ||
      httpRequest.isReceiving && hasTooMuchUnread(httpRequest)
    if (closesConnection) {
      closingSockets.add(socket)
      // This is how Node closes behind the last answer.
      socket.destroySoon = () => closeGracefully(socket)
    }
    try {
      writeResponse(response, httpResponse, closesConnection)
    } catch {
      // A header that Node refuses to send: nothing has been sent.
      writeResponse(response, api.refuse('internal'), closesConnection)
    }
    // Deno reads requests on, whatever waits to be sent.
    if (isDeno && socket.writableLength > maxUnsentBytes && !socket.isPaused()) {
      socket.pause().once('drain', () => socket.resume())
    }
  }

  /**
   * Closes a connection without losing what was sent: one that is closed on unread bytes is reset, and that may
   * overtake the answer (RFC 9112 §9.6).
   */
  function closeGracefully(socket: Duplex, finalBytes: Uint8Array = emptyBytes): void {
    if (socket.writableEnded) return
    closingSockets.add(socket)
    socket.end(finalBytes)
    const timer = setTimeout(() => socket.destroy(), lingerMs)
    socket.once('close', () => clearTimeout(timer))
  }

  /** Refuses what follows the requests that were read, when it is its turn. */
  function rejectNext(socket: Duplex, code: ProblemCode): void {
    if (closingSockets.has(socket)) return
    const httpRequest = latestRequests.get(socket)
    const sendProblem = (): void =>
      closeGracefully(socket, serializeResponse(api.refuse(code, (socket as Socket).remoteAddress)))
    if (httpRequest === undefined) sendProblem()
    else afterResponse(httpRequest, sendProblem)
  }

  /** Waits with an answer until it is known what was too large. */
  function handleHeaderOverflow(packet: Buffer | undefined, socket: Duplex): void {
    const text = (overflowTails.get(socket) ?? '') + (packet?.toString('latin1') ?? '')
    const code = classifyOverflow(text)
    if (code !== undefined) return rejectNext(socket, code)
    overflowTails.set(socket, text.slice(-16))
  }

  function handleConnectionError(error: ConnectionError, socket: Duplex): void {
    const code = problemForError(error)
    if (code === undefined) return void socket.destroy()
    const httpRequest = latestRequests.get(socket)
    if (!httpRequest?.isReceiving) {
      return code === 'headers_too_large'
        ? handleHeaderOverflow(error.rawPacket, socket)
        : rejectNext(socket, code)
    }
    httpRequest.fail(code)
    // Answered before: there is no second answer, and no telling where a next request would begin.
    if (httpRequest.response.writableEnded) afterResponse(httpRequest, () => closeGracefully(socket))
  }

  server.on('connection', (socket: Socket) => {
    // Asked for once, it is still known when the client has gone.
    void socket.remoteAddress
    socket.once('close', () => closingSockets.delete(socket))
    // Deno's parser reports no body that ends too early.
    socket.once('end', () => latestRequests.get(socket)?.fail('malformed_request'))
  })
  server.on('request', (request, response) => handleRequest(request, response, false))
  server.on('checkContinue', (request, response) => handleRequest(request, response, true))
  // RFC 9110 §10.1.1: an expectation that is not understood may be ignored.
  server.on('checkExpectation', (request, response) => handleRequest(request, response, false))
  server.on('clientError', handleConnectionError)
  server.on('connect', (request, socket) => {
    // Node has let go of the socket.
    socket.on('error', () => socket.destroy()).resume()
    rejectNext(socket, findHeadProblem(request) ?? 'malformed_request')
  })
}

function afterResponse({ response }: NodeHttpRequest, callback: () => void): void {
  if (response.writableFinished) callback()
  else response.once('finish', callback)
}

/** Sends an answer. @param closesConnection Whether it is the last one of its connection. */
export function writeResponse(
  response: ServerResponse,
  { status, headers, body }: HttpResponse,
  closesConnection: boolean,
): void {
  // Deno sends whatever it is given.
  if (isDeno) {
    for (const text of headers) {
      if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) throw new TypeError('A header has a control character.')
    }
  }
  response.writeHead(status, closesConnection ? [...headers, 'Connection', 'close'] : headers as string[])
  // Node writes Latin-1 as it is, and has to make room for three bytes a character of anything else.
  if (typeof body === 'string' && Buffer.byteLength(body) === body.length) response.end(body, 'latin1')
  else response.end(body)
}

/** Whether bytes behind the request may be of another protocol (RFC 9110 §7.8). */
function requestsUpgrade({ headers: { connection } }: IncomingMessage): boolean {
  return connection !== undefined && /\bupgrade\b/i.test(connection)
}

/** Whether a body that nobody waits for makes the connection useless. */
function hasTooMuchUnread({ awaitsContinue, hasFailed, request }: NodeHttpRequest): boolean {
  if (awaitsContinue || hasFailed) return true
  return !(Number(request.headers['content-length']) <= maxUnreadBytes)
}

/** An answer as bytes, for a connection on which Node has no response to write it with. */
export function serializeResponse({ status, headers, body }: HttpResponse): Uint8Array {
  let head = `HTTP/1.1 ${status} ${loadHttp().STATUS_CODES[status]}\r\ndate: ${new Date().toUTCString()}\r\n`
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
  head += 'connection: close\r\n\r\n'
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body ?? '')])
}
