import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import process from 'node:process'
import type { Duplex } from 'node:stream'
import type { PartnerApi } from '../../core/api.ts'
import type { HttpResponse } from '../../core/http/message.ts'
import type { ProblemCode } from '../../core/http/problem.ts'
import type { Internals } from '../../core/internals.ts'
import {
  classifyOverflow,
  type ConnectionError,
  findHeadProblem,
  NodeHttpRequest,
  problemForError,
  toOriginForm,
} from './node-request.ts'
import { isDeno, serializeResponse, writeResponse } from './node-response.ts'
import type { PendingRequests } from './server.ts'

/** How much of an unread body the server receives in order to keep the connection, in bytes. */
const maxUnreadBytes = 65_536
/** How long a client may continue to send after the last response, in milliseconds. */
const lingerMs = 5_000

/** A server and its open connections. */
export interface Serving {
  readonly handle: PartnerApi['handle']
  readonly refuse: Internals['refuse']
  readonly pending: PendingRequests
  readonly writeTimeoutMs: number
  readonly connections: Map<Duplex, Connection>
}

interface Connection {
  readonly socket: Socket
  /** Whether the connection was opened while the server drained: its first request may be on its way. */
  readonly isLate: boolean
  /**
   * The latest request, if it has a body or its response is not sent yet: a connection error may belong to it, and must
   * not overtake its response.
   */
  latest: NodeHttpRequest | undefined
  /** Whether the connection gets its last response: nothing more is processed on it (RFC 9112 §9.6). */
  isClosing: boolean
  /** End of the latest packet of a request head that is too large. */
  overflow: string
}

/** Answers on a server: requests, and what the parser rejects. */
export function attachApi(server: Server, serving: Serving): void {
  const { connections } = serving
  server.on('connection', (socket: Socket) => {
    const isLate = serving.pending.isDraining
    const connection: Connection = { socket, isLate, latest: undefined, isClosing: false, overflow: '' }
    connections.set(socket, connection)
    // Node caches the address on first access, so that it is still known after the client has disconnected.
    void socket.remoteAddress
    socket.setTimeout(serving.writeTimeoutMs).on('close', onClose).on('end', onEnd)
  })
  // One for all: closures would take a kilobyte of each idle connection.
  function onClose(this: Socket): void {
    connections.delete(this)
  }
  function onEnd(this: Socket): void {
    // Deno's parser does not report a truncated body.
    connections.get(this)?.latest?.fail('malformed_request')
  }
  const handle = (request: IncomingMessage, response: ServerResponse, expectsContinue = false): void => {
    const connection = connections.get(request.socket)
    if (connection === undefined || connection.isClosing) request.resume()
    else handleRequest(serving, connection, request, response, expectsContinue)
  }
  server.on('request', (request, response) => handle(request, response))
  server.on('checkContinue', (request, response) => handle(request, response, true))
  // RFC 9110 §10.1.1: a server may ignore an unknown expectation.
  server.on('checkExpectation', (request, response) => handle(request, response))
  server.on('clientError', (error, socket) => {
    const connection = connections.get(socket)
    if (connection === undefined) {
      socket.destroy()
      return
    }
    if (isDeno) detachParser(serving, error, connection)
    handleConnectionError(serving, error, connection)
  })
  server.on('connect', (request, socket) => {
    // Node no longer handles errors of this socket.
    socket.on('error', () => socket.destroy()).resume()
    rejectNext(serving, connections.get(socket)!, findHeadProblem(request) ?? 'malformed_request')
  })
}

/** Idle connections keep neither their latest request nor its response, which take 3 KB. */
export function releaseIdle(connections: Serving['connections']): void {
  for (const connection of connections.values()) {
    const { latest } = connection
    if (latest === undefined || latest.isReceiving || !latest.response.writableFinished) continue
    connection.latest = undefined
    // Node keeps a request until its end has been read.
    latest.request.resume()
  }
}

function handleRequest(
  serving: Serving,
  connection: Connection,
  request: IncomingMessage,
  response: ServerResponse,
  expectsContinue: boolean,
): void {
  const target = toOriginForm(request.url as string, request.method)
  const httpRequest = new NodeHttpRequest(request, response, target ?? '/', expectsContinue)
  // Node assigns the socket to one response at a time.
  if (httpRequest.hasBody || response.socket === null) connection.latest = httpRequest
  const problemCode = findHeadProblem(request) ?? (target === undefined ? 'malformed_request' : undefined)
  if (problemCode !== undefined) {
    return respond(
      serving,
      connection,
      httpRequest,
      serving.refuse(problemCode, httpRequest.address),
      true,
    )
  }
  // The parser reports the head before the body that has arrived with it.
  if (httpRequest.hasBody && !expectsContinue) process.nextTick(answer, serving, connection, httpRequest)
  else answer(serving, connection, httpRequest)
}

function answer(serving: Serving, connection: Connection, httpRequest: NodeHttpRequest): void {
  const { handle, pending, writeTimeoutMs } = serving
  const result = handle(httpRequest)
  const isLast = (): boolean => pending.isDraining && connection.latest === httpRequest
  if (!(result instanceof Promise)) {
    const closes = pending.isDraining && !httpRequest.hasBody || isLast()
    return respond(serving, connection, httpRequest, result, closes)
  }
  connection.latest = httpRequest
  connection.socket.setTimeout(writeTimeoutMs)
  pending.begin(httpRequest)
  result.then((httpResponse) => {
    pending.end(httpRequest)
    respond(serving, connection, httpRequest, httpResponse, isLast())
  })
}

function respond(
  { refuse, writeTimeoutMs }: Serving,
  connection: Connection,
  httpRequest: NodeHttpRequest,
  httpResponse: HttpResponse,
  isLast: boolean,
): void {
  const { request, response } = httpRequest
  const { socket } = connection
  if (response.destroyed) return
  const isWaiting = response.socket === null
  const closesConnection = isLast || !response.shouldKeepAlive || requestsUpgrade(request) ||
    httpRequest.isReceiving && hasTooMuchUnread(httpRequest)
  if (closesConnection) {
    connection.isClosing = true
    // Node calls this method after the last response.
    socket.destroySoon = () => closeGracefully(connection)
  }
  try {
    writeResponse(response, httpResponse, closesConnection)
  } catch (error) {
    // Node rejected a header. Nothing has been sent yet.
    writeResponse(response, refuse('internal', undefined, error), closesConnection)
  }
  // `server.timeout` would set and clear a timer for every request, which is slow on Deno.
  if (isWaiting || socket.writableLength > 0) socket.setTimeout(writeTimeoutMs)
}

/** Closing with unread input would reset the connection, and the reset may overtake the response (RFC 9112 §9.6). */
function closeGracefully(connection: Connection, finalBytes: Uint8Array = new Uint8Array()): void {
  const { socket } = connection
  if (socket.writableEnded) return
  connection.isClosing = true
  socket.end(finalBytes)
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
}

/** Answers invalid input with a problem, after the responses to the requests before it. */
function rejectNext({ refuse }: Serving, connection: Connection, code: ProblemCode): void {
  const { isClosing, latest, socket } = connection
  if (isClosing) return
  afterResponse(latest, () => {
    closeGracefully(connection, serializeResponse(refuse(code, socket.remoteAddress)))
  })
}

function afterResponse(httpRequest: NodeHttpRequest | undefined, callback: () => void): void {
  if (httpRequest === undefined || httpRequest.response.writableFinished) callback()
  else httpRequest.response.once('finish', callback)
}

function handleConnectionError(serving: Serving, error: ConnectionError, connection: Connection): void {
  const { latest } = connection
  const code = problemForError(error)
  if (code === undefined) connection.socket.destroy()
  else if (latest?.isReceiving) {
    latest.fail(code)
    // The response was sent before the error, and where the next request would begin is unknown.
    if (latest.response.writableEnded) afterResponse(latest, () => closeGracefully(connection))
  } else if (code !== 'headers_too_large') rejectNext(serving, connection, code)
  else {
    // Once enough of the head has arrived to decide whether the target or the headers are too large.
    const text = connection.overflow + (error.rawPacket?.toString('latin1') ?? '')
    const overflow = classifyOverflow(text)
    if (overflow !== undefined) rejectNext(serving, connection, overflow)
    else connection.overflow = text.slice(-16)
  }
}

/**
 * Discards what arrives after an error. Deno would pass it to the connection's parser, which another
 * connection may have by then. On Node, a connection keeps its parser, which repeats the error for every
 * packet: an overflow needs that.
 */
function detachParser(serving: Serving, error: ConnectionError, connection: Connection): void {
  const { socket } = connection
  socket.removeAllListeners('data')
  if (error.code !== 'HPE_HEADER_OVERFLOW') return
  socket.on('data', (rawPacket: Buffer) => {
    handleConnectionError(serving, Object.assign(error, { rawPacket }), connection)
  })
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
