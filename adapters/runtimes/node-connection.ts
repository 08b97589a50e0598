import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import process from 'node:process'
import type { Duplex } from 'node:stream'
import type { HttpResponse } from '../../core/http/message.ts'
import type { ProblemCode } from '../../core/http/problem.ts'
import {
  classifyOverflow,
  type ConnectionError,
  findHeadProblem,
  NodeHttpRequest,
  problemForError,
  toOriginForm,
} from './node-request.ts'
import { isDeno, serializeResponse, writeResponse } from './node-response.ts'
import type { PendingRequests, ServableApi } from './server.ts'

/** How much of an unread body the server receives in order to keep the connection, in bytes. */
const maxUnreadBytes = 65_536
/** How much may wait to be sent before the server stops reading requests, in bytes. */
const maxUnsentBytes = 65_536
/** How long a client may continue to send after the last response, in milliseconds. */
const lingerMs = 5_000

interface ConnectionState {
  readonly api: ServableApi
  /** Whether every response ends its connection. */
  readonly isDraining: () => boolean
  readonly pending: PendingRequests
  readonly writeTimeoutMs: number
  /**
   * The latest request of a connection, if it has a body or its response is not sent yet: a connection error may belong
   * to it, and must not overtake its response.
   */
  readonly latestRequests: WeakMap<Duplex, NodeHttpRequest>
  /** Connections that get their last response: nothing more is processed on them (RFC 9112 §9.6). */
  readonly closingSockets: Set<Duplex>
  /** End of the latest packet of a request head that is too large. */
  readonly overflowTails: WeakMap<Duplex, string>
}

/**
 * Answers with `api` on a server: requests, and what the parser rejects.
 *
 * @param pending Receives the requests with pending responses.
 */
export function attachApi(
  server: Server,
  api: ServableApi,
  isDraining: () => boolean,
  pending: PendingRequests,
  writeTimeoutMs: number,
): void {
  const state: ConnectionState = {
    api,
    isDraining,
    pending,
    writeTimeoutMs,
    latestRequests: new WeakMap(),
    closingSockets: new Set(),
    overflowTails: new WeakMap(),
  }
  server.on('connection', (socket: Socket) => {
    // Node caches the address on first access, so that it is still known after the client has disconnected.
    void socket.remoteAddress
    socket.setTimeout(writeTimeoutMs)
    socket.once('close', () => state.closingSockets.delete(socket))
    // Deno's parser does not report a truncated body.
    socket.once('end', () => state.latestRequests.get(socket)?.fail('malformed_request'))
  })
  server.on('request', (request, response) => handleRequest(state, request, response, false))
  server.on('checkContinue', (request, response) => handleRequest(state, request, response, true))
  // RFC 9110 §10.1.1: a server may ignore an unknown expectation.
  server.on('checkExpectation', (request, response) => handleRequest(state, request, response, false))
  server.on('clientError', (error, socket) => {
    if (isDeno) detachParser(state, error, socket)
    handleConnectionError(state, error, socket)
  })
  server.on('connect', (request, socket) => {
    // Node no longer handles errors of this socket.
    socket.on('error', () => socket.destroy()).resume()
    rejectNext(state, socket, findHeadProblem(request) ?? 'malformed_request')
  })
}

function handleRequest(
  state: ConnectionState,
  request: IncomingMessage,
  response: ServerResponse,
  expectsContinue: boolean,
): void {
  const { api, closingSockets, latestRequests } = state
  const { socket } = request
  if (closingSockets.size > 0 && closingSockets.has(socket)) return void request.resume()
  const target = toOriginForm(request.url as string, request.method)
  const httpRequest = new NodeHttpRequest(request, response, target ?? '/', expectsContinue)
  // Node assigns the socket to one response at a time.
  if (httpRequest.hasBody || response.socket === null) latestRequests.set(socket, httpRequest)
  const problemCode = findHeadProblem(request) ?? (target === undefined ? 'malformed_request' : undefined)
  if (problemCode !== undefined) {
    return respond(state, httpRequest, api.refuse(problemCode, httpRequest.address), true)
  }
  // The parser reports the head before the body that has arrived with it.
  if (httpRequest.hasBody && !expectsContinue) process.nextTick(answer, state, httpRequest)
  else answer(state, httpRequest)
}

function answer(state: ConnectionState, httpRequest: NodeHttpRequest): void {
  const { isDraining, latestRequests } = state
  const { socket } = httpRequest.request
  const isLatest = (): boolean => latestRequests.get(socket) === httpRequest
  const result = state.api.handle(httpRequest)
  if (!(result instanceof Promise)) {
    return respond(state, httpRequest, result, isDraining() && (!httpRequest.hasBody || isLatest()))
  }
  latestRequests.set(socket, httpRequest)
  socket.setTimeout(state.writeTimeoutMs)
  state.pending.add(
    httpRequest,
    result,
    (httpResponse) => respond(state, httpRequest, httpResponse, isDraining() && isLatest()),
  )
}

function respond(
  { api, closingSockets, writeTimeoutMs }: ConnectionState,
  httpRequest: NodeHttpRequest,
  httpResponse: HttpResponse,
  isLast: boolean,
): void {
  const { request, response } = httpRequest
  const { socket } = request
  if (response.destroyed) return
  const isWaiting = response.socket === null
  const closesConnection = isLast || !response.shouldKeepAlive || requestsUpgrade(request) ||
    httpRequest.isReceiving && hasTooMuchUnread(httpRequest)
  if (closesConnection) {
    closingSockets.add(socket)
    // Node calls this method after the last response.
    socket.destroySoon = () => closeGracefully(closingSockets, socket)
  }
  try {
    writeResponse(response, httpResponse, closesConnection)
  } catch {
    // Node rejected a header. Nothing has been sent yet.
    writeResponse(response, api.refuse('internal'), closesConnection)
  }
  // `server.timeout` would set and clear a timer for every request, which is slow on Deno.
  if (isWaiting || socket.writableLength > 0) socket.setTimeout(writeTimeoutMs)
  // Deno would continue to read requests.
  if (isDeno && socket.writableLength > maxUnsentBytes && !socket.isPaused()) {
    socket.pause().once('drain', () => socket.resume())
  }
}

/**
 * Closes a connection without losing sent data. Closing with unread input would reset the connection, and the reset may
 * overtake the response (RFC 9112 §9.6).
 */
function closeGracefully(
  closingSockets: Set<Duplex>,
  socket: Duplex,
  finalBytes: Uint8Array = new Uint8Array(),
): void {
  if (socket.writableEnded) return
  closingSockets.add(socket)
  socket.end(finalBytes)
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
}

/** Answers invalid input with a problem, after the responses to the requests before it. */
function rejectNext(
  { api, closingSockets, latestRequests }: ConnectionState,
  socket: Duplex,
  code: ProblemCode,
): void {
  if (closingSockets.has(socket)) return
  afterResponse(latestRequests.get(socket), () => {
    const { remoteAddress } = socket as Socket
    closeGracefully(closingSockets, socket, serializeResponse(api.refuse(code, remoteAddress)))
  })
}

function afterResponse(httpRequest: NodeHttpRequest | undefined, callback: () => void): void {
  if (httpRequest === undefined || httpRequest.response.writableFinished) callback()
  else httpRequest.response.once('finish', callback)
}

function handleConnectionError(state: ConnectionState, error: ConnectionError, socket: Duplex): void {
  const code = problemForError(error)
  if (code === undefined) return void socket.destroy()
  const httpRequest = state.latestRequests.get(socket)
  if (!httpRequest?.isReceiving) {
    return code === 'headers_too_large'
      ? handleHeaderOverflow(state, error.rawPacket, socket)
      : rejectNext(state, socket, code)
  }
  httpRequest.fail(code)
  // The response was sent before the error, and where the next request would begin is unknown.
  if (httpRequest.response.writableEnded) {
    afterResponse(httpRequest, () => closeGracefully(state.closingSockets, socket))
  }
}

/**
 * Discards what arrives after an error. By then, Deno has returned the connection's parser to its pool but still passes
 * packets to it, so that they would enter the request of another connection that has been given the parser. On Node, a
 * connection keeps its parser, which repeats the error for every packet: `handleHeaderOverflow` needs that.
 */
function detachParser(state: ConnectionState, error: ConnectionError, socket: Duplex): void {
  socket.removeAllListeners('data')
  if (error.code !== 'HPE_HEADER_OVERFLOW') return
  socket.on('data', (rawPacket: Buffer) => {
    handleConnectionError(state, Object.assign(error, { rawPacket }), socket)
  })
}

/** Rejects a request head once enough of it has arrived to decide whether the target or the headers are too large. */
function handleHeaderOverflow(state: ConnectionState, packet: Buffer | undefined, socket: Duplex): void {
  const text = (state.overflowTails.get(socket) ?? '') + (packet?.toString('latin1') ?? '')
  const code = classifyOverflow(text)
  if (code !== undefined) rejectNext(state, socket, code)
  else state.overflowTails.set(socket, text.slice(-16))
}

/** Whether the bytes after the request may belong to another protocol (RFC 9110 §7.8). */
function requestsUpgrade({ headers: { connection } }: IncomingMessage): boolean {
  return connection !== undefined && /\bupgrade\b/i.test(connection)
}

/** Whether the unread rest of a body is too long, or of unknown length, to keep the connection. */
function hasTooMuchUnread({ awaitsContinue, failure, request }: NodeHttpRequest): boolean {
  return awaitsContinue || failure !== undefined ||
    !(Number(request.headers['content-length']) <= maxUnreadBytes)
}
