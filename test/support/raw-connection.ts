import { connect } from 'node:net'

/** One answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** A connection that sends what it is given and reads answers. */
export interface RawConnection {
  write(bytes: Uint8Array | string): void
  /** Resolves when what was written has left, and the other side had a turn to read it. */
  flushed(): Promise<void>
  /**
   * The next answer.
   *
   * @param bodiless Whether it has no body whatever its length says: it answers a HEAD.
   * @throws when the connection ends before, with what had come.
   */
  answer(bodiless?: boolean): Promise<RawAnswer>
  /**
   * Waits for the other side to close its half.
   *
   * @returns What came before and was not read.
   * @throws when the connection is reset instead.
   */
  ended(): Promise<string>
  /** Closes this half. */
  end(): void
  /** Breaks the connection off with an RST. */
  reset(): void
  destroy(): void
}

/** @returns A connection, once it stands. It keeps its own half open when the other side closes. */
export async function connectRaw(host: string, port: number): Promise<RawConnection> {
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true })
  let received = ''
  let over: Error | true | undefined
  let wake = () => {}
  const news = () => new Promise<void>((resolve) => wake = resolve)
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  socket.on('data', (bytes) => {
    received += bytes.toString('latin1')
    wake()
  })
  socket.on('end', () => {
    over ??= true
    wake()
  })
  // What was written to a side that reads no more fails before what it has sent is read.
  socket.on('error', (error) => {
    over ??= error
    wake()
  })

  async function answer(bodiless = false): Promise<RawAnswer> {
    for (;;) {
      const found = parse(received, bodiless)
      if (found !== undefined) {
        received = received.slice(found.length)
        return found.answer
      }
      if (over !== undefined) {
        throw new Error(`The connection is over after ${JSON.stringify(received)}: ${over}`)
      }
      await news()
    }
  }

  async function ended(): Promise<string> {
    while (over === undefined) await news()
    if (over !== true) throw over
    return received
  }

  return {
    write: (bytes) => void socket.write(bytes),
    async flushed() {
      if (socket.writable) await new Promise((resolve) => socket.write('', resolve))
      await new Promise((resolve) => setTimeout(resolve, 2))
    },
    answer,
    ended,
    end: () => void socket.end(),
    reset: () => void socket.resetAndDestroy(),
    destroy: () => void socket.destroy(),
  }
}

function parse(text: string, bodiless: boolean): { answer: RawAnswer; length: number } | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return
  const [first = '', ...lines] = text.slice(0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.[01] (\d{3}) /.exec(first)?.[1])
  const headers = new Map(lines.map((line) => {
    const colon = line.indexOf(': ')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 2)]
  }))
  const none = bodiless || status < 200 || status === 204 || status === 304
  // A refusal that a server makes without the service may be a bare status line.
  const isBare = headers.get('connection') === 'close' && !headers.has('transfer-encoding')
  const length = end + 4 + (none ? 0 : Number(headers.get('content-length') ?? (isBare ? 0 : undefined)))
  if (Number.isNaN(length) || Number.isNaN(status)) throw new Error(`No answer: ${JSON.stringify(text)}`)
  if (text.length < length) return
  return { answer: { status, headers, body: text.slice(end + 4, length) }, length }
}
