import { connect } from 'node:net'

/** A response as received. */
export interface RawAnswer {
  readonly status: number
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** A TCP connection that sends raw bytes and parses responses. */
export type RawConnection = Awaited<ReturnType<typeof connectRaw>>

/** Connects. The connection keeps its half open when the peer closes. */
export async function connectRaw(host: string, port: number) {
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true })
  let received = ''
  let ending: Error | true | undefined
  let wake = () => {}
  const nextEvent = () => new Promise<void>((resolve) => wake = resolve)
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  socket.on('data', (bytes) => {
    received += bytes.toString('latin1')
    wake()
  })
  socket.on('end', () => {
    ending ??= true
    wake()
  })
  // A write to a closed peer fails before the peer's last bytes are read.
  socket.on('error', (error) => {
    ending ??= error
    wake()
  })

  return {
    write: (bytes: Uint8Array | string) => void socket.write(bytes),
    /** Resolves when the written bytes were sent and the peer could read them. */
    async flushed() {
      if (socket.writable) await new Promise((resolve) => socket.write('', resolve))
      await new Promise((resolve) => setTimeout(resolve, 2))
    },
    /**
     * The next response.
     *
     * @param bodiless Whether it has no body despite its Content-Length, as for HEAD.
     * @throws when the connection ends before, with the received bytes.
     */
    async answer(bodiless = false): Promise<RawAnswer> {
      for (;;) {
        const found = parse(received, bodiless)
        if (found !== undefined) {
          received = received.slice(found.length)
          return found.answer
        }
        if (ending !== undefined) {
          throw new Error(`The connection ended after ${JSON.stringify(received)}: ${ending}`)
        }
        await nextEvent()
      }
    },
    /**
     * Waits for the peer to close its half.
     *
     * @returns The received bytes that were not parsed.
     * @throws when the connection is reset instead.
     */
    async ended(): Promise<string> {
      while (ending === undefined) await nextEvent()
      if (ending !== true) throw ending
      return received
    },
    /** Closes this half. */
    end: () => void socket.end(),
    /** Resets the connection (RST). */
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
  // A server may refuse a request with a bare status line.
  const isBare = headers.get('connection') === 'close' && !headers.has('transfer-encoding')
  const length = end + 4 + (none ? 0 : Number(headers.get('content-length') ?? (isBare ? 0 : undefined)))
  if (Number.isNaN(length) || Number.isNaN(status)) throw new Error(`Not a response: ${JSON.stringify(text)}`)
  if (text.length < length) return
  return { answer: { status, headers, body: text.slice(end + 4, length) }, length }
}
