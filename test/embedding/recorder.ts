/** A server between a partner's program and the service: it records requests, and fails as it is told to. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { FAILURES, SHAPES } from '../support/hostile-answers.ts'

const hostile = { ...FAILURES, ...SHAPES }
export const HOSTILE = Object.keys(hostile) as readonly (keyof typeof hostile)[]

export interface Recorded {
  /** Method and target. */
  readonly line: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** Of the service's response; undefined where the request did not reach it. */
  readonly status: number | undefined
}

export interface Recorder {
  readonly url: string
  /**
   * `pass` requests on; close the connection of each (`down`), or that of the next one once the service has responded
   * (`lose`); or respond to each with a hostile answer, which redirects to `/redirected`.
   */
  mode: 'pass' | 'down' | 'lose' | keyof typeof hostile
  /** The requests since the last call. */
  take(): Recorded[]
  close(): void
}

/** Starts a server in front of a service. */
export async function startRecorder(service: string): Promise<Recorder> {
  let requests: Recorded[] = []
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request
    const record = { line: `${method} ${url}`, headers, body: await text(request) }
    const { mode } = recorder
    if (mode === 'pass' || mode === 'lose') {
      recorder.mode = 'pass'
      const { host: _host, connection: _connection, 'content-length': _length, ...passed } = headers
      const answer = await fetch(service + url, {
        method,
        headers: passed as Record<string, string>,
        ...(method === 'POST' ? { body: record.body } : {}),
      })
      requests.push({ ...record, status: answer.status })
      const body = Buffer.from(await answer.arrayBuffer())
      if (mode === 'lose') request.socket.destroy()
      else response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(body)
      return
    }
    requests.push({ ...record, status: undefined })
    if (mode === 'down') request.socket.destroy()
    else hostile[mode](response, `${recorder.url}/redirected`)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const recorder: Recorder = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    mode: 'pass',
    take() {
      const taken = requests
      requests = []
      return taken
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
  return recorder
}
