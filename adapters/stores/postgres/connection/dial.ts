import { readFile } from 'node:fs/promises'
import { connect as connectSocket, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Host, Tls } from './address.ts'
import type { Closing } from './closing.ts'
import { Lost, reasonOf } from './sql-error.ts'

/** What to reach, and how. */
export interface Way {
  readonly host: Host
  readonly tls: Tls
  /** Milliseconds for which the other side may be silent at each step. */
  readonly silenceMs: number
  readonly closing: Closing
}

/** SSLRequest: its length, and the number that stands for it. The server answers S or N, or else with an error. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])
const [YES, NO, ERROR] = ['S', 'N', 'E'].map((letter) => letter.charCodeAt(0))

/**
 * Opens a socket to a server, encrypted if that is to be. It keeps no process alive by itself, and notices within some
 * seconds of silence that the other side is gone.
 *
 * @throws {Lost} saying why, when it cannot be had.
 */
export async function dial(way: Way): Promise<Socket> {
  const { host, tls, silenceMs, closing } = way
  // Who listens on a file of this machine is not asked for a certificate.
  if (tls.mode === 'disable' || host.isSocket) return await open(way)
  // Before there is a socket: nobody listens to what goes wrong with it between two steps.
  const [ca, cert, key] = await Promise.all([
    tls.rootFile,
    tls.certificate?.certFile,
    tls.certificate?.keyFile,
  ].map(readIfNamed))
  const socket = await open(way)
  try {
    const answer = await greet(socket, way)
    if (answer !== YES) {
      if (answer === NO && tls.mode === 'prefer') return socket
      throw new Lost('the server takes no encrypted connections')
    }
    const encrypted = connectTls({
      socket,
      host: host.name,
      // RFC 6066 §3: no address stands there.
      servername: isIP(host.name) === 0 ? host.name : '',
      rejectUnauthorized: tls.mode === 'verify-ca' || tls.mode === 'verify-full',
      ...(tls.mode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined || key === undefined ? {} : { cert, key }),
    })
    await step(encrypted, 'secureConnect', silenceMs, closing)
    encrypted.unref()
    return encrypted
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Whether there is a server that answers, whatever else it does: it need not have a connection to spare. */
export async function isAnswering(way: Way): Promise<boolean> {
  try {
    const socket = await open(way)
    try {
      await greet(socket, way)
      return true
    } finally {
      socket.destroy()
    }
  } catch {
    return false
  }
}

async function open({ host, silenceMs, closing }: Way): Promise<Socket> {
  const socket = host.isSocket
    ? connectSocket(host.name)
    : connectSocket({ host: host.name, port: host.port, noDelay: true })
  // One at a time: workerd's sockets return nothing.
  socket.unref()
  await step(socket, 'connect', silenceMs, closing)
  socket.setKeepAlive(true, 5_000)
  return socket
}

/** @returns The byte with which the server answers whether it encrypts. */
async function greet(socket: Socket, { silenceMs, closing }: Way): Promise<number> {
  socket.write(SSL_REQUEST)
  const answer = await step(socket, 'data', silenceMs, closing) as Buffer
  // More than a byte was put there by somebody in between, for us to take it for the encrypted server's word.
  if (answer.length !== 1 && answer[0] !== ERROR) throw new Lost('what answers there is no Postgres server')
  return answer[0]!
}

/** Waits for an event of a socket, and destroys it when that does not come. */
function step(socket: Socket, event: string, silenceMs: number, closing: Closing): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(`no answer within ${silenceMs} ms`), silenceMs)
    const onError = (error: unknown) => fail(reasonOf(error))
    const onClose = () => fail('the connection was closed')

    function settle(): void {
      clearTimeout(timer)
      socket.off(event, done).off('error', onError).off('close', onClose)
      forget()
    }

    function done(value: unknown): void {
      settle()
      resolve(value)
    }

    function fail(reason: string): void {
      settle()
      // What else goes wrong with it is nobody's concern.
      socket.on('error', () => {})
      socket.destroy()
      reject(new Lost(reason))
    }

    socket.once(event, done).once('error', onError).once('close', onClose)
    const forget = closing.whenClosed(() => queueMicrotask(() => fail('the store was closed')))
  })
}

async function readIfNamed(file: string | undefined): Promise<Buffer | undefined> {
  if (file === undefined) return undefined
  try {
    return await readFile(file)
  } catch (error) {
    throw new Lost(`a file that its address names cannot be read (${reasonOf(error)})`)
  }
}
