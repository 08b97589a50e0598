import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Answer } from '../../core/http/exchange.ts'
import type { ProblemCode } from '../../core/http/problem.ts'
import type { Mounted, RequestsUnderWay } from './listening.ts'
import { NodeExchange } from './node-exchange.ts'
import {
  type ConnectionError,
  objectionTo,
  originForm,
  overflowIn,
  refusalFor,
  serialize,
} from './node-framing.ts'

const nothing = new Uint8Array()
/** How much of a body nobody read is let in so that the connection can be used again, in bytes. */
const maxLeftoverBytes = 65_536
/** How much may wait to be sent before no more requests are read, in bytes. */
const maxUnsentBytes = 65_536
const isDeno = 'Deno' in globalThis
/** How long a client may go on sending after the last answer, in milliseconds. */
const lingerMs = 5_000

/**
 * Makes `server` answer with `api`: requests, what its parser refuses, and what came too late.
 *
 * @param isDraining Whether answers are to end their connections.
 * @param underWay Gets the requests whose answers are awaited.
 */
export function listen(
  server: Server,
  api: Mounted,
  isDraining: () => boolean,
  underWay: RequestsUnderWay,
): void {
  // The latest request of a connection that has a body, or whose answer waits for something or behind another's: an
  // error of the connection may be its own, and must not overtake it. All others were answered before the parser read on.
  const latest = new WeakMap<Duplex, NodeExchange>()
  // Connections whose last answer is on its way: nothing more is processed (RFC 9112 §9.6).
  const closing = new Set<Duplex>()
  // How the latest packet ended of a head that is too large.
  const overflows = new WeakMap<Duplex, string>()

  function receive(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const { socket } = request
    if (closing.size > 0 && closing.has(socket)) return void request.resume()
    const target = originForm(request.url as string)
    const exchange = new NodeExchange(request, response, target ?? '/', expectsContinue)
    // Node gives the socket to one response at a time.
    if (exchange.hasBody || response.socket === null) latest.set(socket, exchange)
    const objection = objectionTo(request) ?? (target === undefined ? 'malformed_request' : undefined)
    if (objection !== undefined) return settle(exchange, api.refuse(objection, exchange.address), true)
    const answer = api.handle(exchange)
    if (!(answer instanceof Promise)) return settle(exchange, answer, isDraining())
    latest.set(socket, exchange)
    const settled = answer.then((later) =>
      settle(exchange, later, isDraining() && latest.get(socket) === exchange)
    )
    underWay.add(exchange, settled)
  }

  function settle(exchange: NodeExchange, answer: Answer, isLast: boolean): void {
    const { request, response } = exchange
    const { socket } = request
    if (response.destroyed) return
    const closes = isLast || !response.shouldKeepAlive || offersUpgrade(request) ||
      exchange.isReceiving && leavesTooMuch(exchange)
    if (closes) {
      closing.add(socket)
      // This is how Node closes behind the last answer.
      socket.destroySoon = () => hangUp(socket)
    }
    try {
      write(response, answer, closes)
    } catch {
      // A header that Node refuses to send: nothing has been sent.
      write(response, api.refuse('internal'), closes)
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
  function hangUp(socket: Duplex, lastWords: Uint8Array = nothing): void {
    if (socket.writableEnded) return
    closing.add(socket)
    socket.end(lastWords)
    const timer = setTimeout(() => socket.destroy(), lingerMs)
    socket.once('close', () => clearTimeout(timer))
  }

  /** Refuses what follows the requests that were read, when it is its turn. */
  function refuseNext(socket: Duplex, code: ProblemCode): void {
    if (closing.has(socket)) return
    const exchange = latest.get(socket)
    const refuse = (): void => hangUp(socket, serialize(api.refuse(code, (socket as Socket).remoteAddress)))
    if (exchange === undefined) refuse()
    else afterAnswer(exchange, refuse)
  }

  /** Waits with an answer until it is known what was too large. */
  function overflow(packet: Buffer | undefined, socket: Duplex): void {
    const text = (overflows.get(socket) ?? '') + (packet?.toString('latin1') ?? '')
    const code = overflowIn(text)
    if (code !== undefined) return refuseNext(socket, code)
    overflows.set(socket, text.slice(-16))
  }

  function fail(error: ConnectionError, socket: Duplex): void {
    const code = refusalFor(error)
    if (code === undefined) return void socket.destroy()
    const exchange = latest.get(socket)
    if (!exchange?.isReceiving) {
      return code === 'headers_too_large' ? overflow(error.rawPacket, socket) : refuseNext(socket, code)
    }
    exchange.fail(code)
    // Answered before: there is no second answer, and no telling where a next request would begin.
    if (exchange.response.writableEnded) afterAnswer(exchange, () => hangUp(socket))
  }

  server.on('connection', (socket: Socket) => {
    // Asked for once, it is still known when the client has gone.
    void socket.remoteAddress
    socket.once('close', () => closing.delete(socket))
    // Deno's parser reports no body that ends too early.
    socket.once('end', () => latest.get(socket)?.fail('malformed_request'))
  })
  server.on('request', (request, response) => receive(request, response, false))
  server.on('checkContinue', (request, response) => receive(request, response, true))
  // RFC 9110 §10.1.1: an expectation that is not understood may be ignored.
  server.on('checkExpectation', (request, response) => receive(request, response, false))
  server.on('clientError', fail)
  server.on('connect', (request, socket) => {
    // Node has let go of the socket.
    socket.on('error', () => socket.destroy()).resume()
    refuseNext(socket, objectionTo(request) ?? 'malformed_request')
  })
}

function afterAnswer({ response }: NodeExchange, act: () => void): void {
  if (response.writableFinished) act()
  else response.once('finish', act)
}

/** Sends an answer. @param closes Whether it is the last one of its connection. */
export function write(response: ServerResponse, { status, headers, body }: Answer, closes: boolean): void {
  // Deno sends whatever it is given.
  if (isDeno) {
    for (const text of headers) {
      if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) throw new TypeError('A header has a control character.')
    }
  }
  response.writeHead(status, closes ? [...headers, 'Connection', 'close'] : headers as string[])
  // Node writes Latin-1 as it is, and has to make room for three bytes a character of anything else.
  if (typeof body === 'string' && Buffer.byteLength(body) === body.length) response.end(body, 'latin1')
  else response.end(body)
}

/** Whether bytes behind the request may be of another protocol (RFC 9110 §7.8). */
function offersUpgrade({ headers: { connection } }: IncomingMessage): boolean {
  return connection !== undefined && /\bupgrade\b/i.test(connection)
}

/** Whether a body that nobody waits for makes the connection useless. */
function leavesTooMuch({ awaitsContinue, hasFailed, request }: NodeExchange): boolean {
  if (awaitsContinue || hasFailed) return true
  return !(Number(request.headers['content-length']) <= maxLeftoverBytes)
}
