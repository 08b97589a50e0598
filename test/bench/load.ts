/**
 * A load generator that costs little and counts exactly: it writes one request again and again, reads only the status and
 * length of responses, and allocates nothing for received data.
 */
import { execFileSync } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { availableParallelism } from 'node:os'
import process from 'node:process'

/** The outcome of a load. */
export interface Load {
  /** The milliseconds that each response took. */
  readonly times: readonly number[]
  readonly perSecond: number
}

/**
 * Sends a request over several connections, on each again after its response, and waits for all responses.
 *
 * @param ports Of servers, to which the connections go in turn.
 * @param request The bytes, or what makes those of each request.
 * @throws if a response has another status than 200 and 201, or no `Content-Length`.
 */
export async function load(
  ports: readonly number[],
  connections: number,
  seconds: number,
  request: string | (() => string),
): Promise<Load> {
  const next = typeof request === 'string' ? () => request : request
  const startedAt = performance.now()
  const until = startedAt + seconds * 1000
  const conversations = Array.from(
    { length: connections },
    (_, index) => converse(ports[index % ports.length]!, until, next),
  )
  const times = (await Promise.all(conversations)).flat()
  return { times, perSecond: times.length / ((performance.now() - startedAt) / 1000) }
}

/** @returns The milliseconds that each response took. */
function converse(port: number, until: number, next: () => string): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const times: number[] = []
    let sentAt = 0
    /** Bytes of the response that have not arrived. */
    let missing = 0

    function arrived(length: number, buffer: Buffer): void {
      if (missing === 0) missing = lengthOf(buffer.subarray(0, length))
      missing -= length
      if (missing < 0) throw new Error('More data arrived than expected.')
      if (missing > 0) return
      times.push(performance.now() - sentAt)
      if (performance.now() < until) return send()
      socket.end()
      resolve(times)
    }

    function send(): void {
      sentAt = performance.now()
      socket.write(next(), 'latin1')
    }

    const socket: Socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafe(65_536),
        callback(length, buffer) {
          try {
            arrived(length, buffer as Buffer)
          } catch (error) {
            reject(error)
            socket.destroy()
          }
          return true
        },
      },
    })
    socket.once('connect', send)
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('The server closed a connection.')))
  })
}

/** The length of the response that begins here. Servers send the head in one piece. */
function lengthOf(start: Buffer): number {
  const end = start.indexOf('\r\n\r\n')
  const head = start.toString('latin1', 0, end)
  if (end < 0 || !/^HTTP\/1\.1 20[01] /.test(head)) {
    throw new Error(`Unexpected response: ${start.toString('latin1', 0, 300)}`)
  }
  const field = /\r\ncontent-length: *(\d+)/i.exec(head)
  if (field === null) throw new Error(`Response without Content-Length: ${head}`)
  return end + 4 + Number(field[1])
}

/** The core of the servers, and that of the load generator. */
export const CORES = { server: 0, loader: 1 }

const pins = process.platform === 'linux' && availableParallelism() > 1 && hasTaskset()

/** A command line that runs on one core, if the machine has `taskset`. */
export function pinned(core: number, command: readonly string[]): readonly string[] {
  return pins ? ['taskset', '-c', String(core), ...command] : command
}

/** Keeps this process on one core during `work`. */
export async function whilePinned<T>(core: number, work: () => Promise<T>): Promise<T> {
  if (!pins) return await work()
  const all = `0-${availableParallelism() - 1}`
  pinSelf(String(core))
  try {
    return await work()
  } finally {
    pinSelf(all)
  }
}

function pinSelf(cores: string): void {
  execFileSync('taskset', ['-a', '-p', '-c', cores, String(process.pid)], { stdio: 'ignore' })
}

function hasTaskset(): boolean {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
