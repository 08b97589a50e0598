import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from './free-port.ts'
import { atPort } from './server.ts'

export type Gate = Awaited<ReturnType<typeof startGate>>

type Read = (bytes: Uint8Array) => void
const noReaders = { near: () => {}, far: () => {} }

/**
 * A TCP proxy to a server in the test's process, which tests can interrupt.
 *
 * @param read Creates the readers of one connection: `near` of the client's bytes, and `far` of the server's.
 */
export async function startGate(target: number, read: () => { near: Read; far: Read } = () => noReaders) {
  let port = await freePort()
  const host = '127.0.0.1'
  // From either side to the other one; a connection made while the gate is cut has no other side yet.
  const others = new Map<Socket, Socket | undefined>()
  let isCut = false
  let server: Server | undefined
  for (let tries = 5; server === undefined; tries--) {
    try {
      server = await listen()
    } catch (error) {
      // Another program took the port.
      if (tries === 1) throw error
      port = await freePort()
    }
  }

  function listen(): Promise<Server> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, enter)
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port, host, exclusive: true }, () => resolve(server))
    })
  }

  function enter(near: Socket): void {
    others.set(near, undefined)
    near.on('error', () => {}).on('close', () => leave(near))
    if (!isCut) join(near)
  }

  function join(near: Socket): void {
    const far = connect({ host, port: target, allowHalfOpen: true, noDelay: true })
    far.on('error', () => {}).on('close', () => leave(far))
    others.set(near, far).set(far, near)
    const readers = read()
    forward(near, far, readers.near)
    forward(far, near, readers.far)
    near.resume()
  }

  function forward(from: Socket, to: Socket, read: Read): void {
    from.on('data', (bytes: Buffer) => {
      read(bytes)
      if (!to.write(bytes)) from.pause()
    })
    from.on('end', () => to.end())
    to.on('drain', () => {
      if (!isCut) from.resume()
    })
  }

  function leave(one: Socket): void {
    if (isCut) return
    const other = others.get(one)
    others.delete(one)
    // Unless both have ended in order.
    if (other !== undefined && !other.writableEnded) other.resetAndDestroy()
  }

  /**
   * Stops forwarding in both directions, including the end of connections: data is held back, as in a
   * network that drops packets. The system still accepts connections, but the server does not answer.
   */
  function cut(): void {
    isCut = true
    for (const socket of others.keys()) socket.pause()
  }

  /** Resets all connections and refuses new ones. */
  async function reset(): Promise<void> {
    isCut = false
    const closed = new Promise<unknown>((resolve) =>
      server === undefined ? resolve(0) : server.close(resolve)
    )
    server = undefined
    for (const socket of others.keys()) {
      // To reset a socket that is about to end has Node 26 turn in circles when the process is to end.
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
    await closed
  }

  /** Forwards again, first what was held back. */
  async function restore(): Promise<void> {
    isCut = false
    server ??= await listen()
    for (const [socket, other] of [...others]) {
      if (socket.destroyed) leave(socket)
      else if (other === undefined) join(socket)
      else socket.resume()
    }
  }

  return {
    port,
    /** The same database, through the gate. */
    url: (databaseUrl: string) => atPort(databaseUrl, port),
    cut,
    reset,
    restore,
    close: reset,
  }
}

/** What ends a request of a client (Sync, Query), and the answer to it (ReadyForQuery). */
const ends = new Set([0x53, 0x51])
const answered = 0x5a

/** A TCP proxy that counts pending requests per connection. */
export async function startCounter(target: number) {
  let most = 0
  const gate = await startGate(target, () => {
    // The first answer is to the greeting, which is no request, and has no type: its length comes first.
    let pending = 1
    return {
      near: readMessages(1, (type) => {
        if (ends.has(type)) most = Math.max(most, ++pending)
      }),
      far: readMessages(0, (type) => {
        if (type === answered) pending--
      }),
    }
  })
  return {
    /** The same database through this proxy, without TLS. */
    url: (databaseUrl: string) => `${gate.url(databaseUrl)}?sslmode=disable`,
    /** The maximum number of pending requests on any connection. */
    most: () => most,
    close: gate.close,
  }
}

/** Calls back with the type of each message, wherever packets begin and end. */
function readMessages(untyped: number, read: (type: number) => void): (bytes: Uint8Array) => void {
  let rest: Uint8Array = new Uint8Array()
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    for (;;) {
      const start = untyped > 0 ? 0 : 1
      if (rest.length < start + 4) return
      const length = start + new DataView(rest.buffer, rest.byteOffset).getInt32(start)
      if (rest.length < length) return
      if (untyped > 0) untyped--
      else read(rest[0]!)
      rest = rest.subarray(length)
    }
  }
}
