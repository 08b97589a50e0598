import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { atPort } from './server.ts'

/** What ends a request of a client (Sync, Query), and the answer to it (ReadyForQuery). */
const ends = new Set([0x53, 0x51])
const answered = 0x5a

/** A TCP proxy in the test's process that counts pending requests per connection. */
export async function startCounter(target: number) {
  const sockets = new Set<Socket>()
  let most = 0

  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ host: '127.0.0.1', port: target, noDelay: true })
    // The first answer is to the greeting, which is no request.
    let underWay = 1
    // A greeting has no type: its length comes first.
    forward(
      near,
      far,
      readMessages(1, (type) => {
        if (!ends.has(type)) return
        underWay++
        most = Math.max(most, underWay)
      }),
    )
    forward(
      far,
      near,
      readMessages(0, (type) => {
        if (type === answered) underWay--
      }),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')

  function forward(from: Socket, to: Socket, read: (bytes: Uint8Array) => void): void {
    sockets.add(from)
    from.on('data', read).on('error', () => {}).on('close', () => to.destroy())
    from.pipe(to)
  }

  return {
    /** The same database through this proxy, without TLS. */
    url: (databaseUrl: string) =>
      `${atPort(databaseUrl, (server.address() as AddressInfo).port)}?sslmode=disable`,
    /** The maximum number of pending requests on any connection. */
    most: () => most,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
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
