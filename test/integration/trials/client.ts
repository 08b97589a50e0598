import { Pool } from 'undici'

/** The outcome of a request. Instants are those of `performance.now()`. */
export interface Reply {
  readonly askedAt: number
  readonly answeredAt: number
  /** 0 without a response: the connection was refused or lost, or the request timed out. */
  readonly status: number
  readonly body: string
}

/** What a request has besides its path. */
export interface Request {
  readonly key?: string
  /** Posted as JSON. */
  readonly body?: unknown
  readonly idempotencyKey?: string
  /** Milliseconds to wait for the response, default 15,000. */
  readonly patienceMs?: number
}

/** A client of one replica, with one connection per concurrent request. */
export interface Client {
  send(path: string, request?: Request): Promise<Reply>
  /** Responses that no store failure excuses: 5xx other than 503, and lost connections. */
  readonly failures: readonly Reply[]
  close(): Promise<void>
}

/** @param base The origin of the replica. Paths are below `/service`. */
export function createClient(base: string): Client {
  const pool = new Pool(base, { pipelining: 1 })
  const failures: Reply[] = []

  function record(reply: Reply): Reply {
    if (reply.status === 0 || (reply.status >= 500 && reply.status !== 503)) failures.push(reply)
    return reply
  }

  return {
    failures,
    async send(path, { key, body, idempotencyKey, patienceMs = 15_000 } = {}) {
      const askedAt = performance.now()
      try {
        const { statusCode, body: response } = await pool.request({
          path: `/service${path}`,
          method: body === undefined ? 'GET' : 'POST',
          headers: {
            ...(key !== undefined && { 'x-service-partner-key': key }),
            ...(body !== undefined && { 'content-type': 'application/json' }),
            ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
          },
          ...(body !== undefined && { body: JSON.stringify(body) }),
          headersTimeout: patienceMs,
          bodyTimeout: patienceMs,
        })
        const text = await response.text()
        return record({ askedAt, answeredAt: performance.now(), status: statusCode, body: text })
      } catch {
        return record({ askedAt, answeredAt: performance.now(), status: 0, body: '' })
      }
    },
    close: () => pool.destroy(),
  }
}

/** Requests that are repeated until stopped. */
export interface Load {
  /** The responses so far. */
  readonly replies: readonly Reply[]
  /** Stops sending. @returns All responses, once the last has arrived. */
  stop(): Promise<readonly Reply[]>
}

/** Sends requests from `concurrency` clients, each with a pause after its last response. */
export function startLoad(send: () => Promise<Reply>, concurrency: number, pauseMs: number): Load {
  const replies: Reply[] = []
  let isOver = false
  const all = Promise.all(Array.from({ length: concurrency }, async () => {
    while (!isOver) {
      replies.push(await send())
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }))
  return {
    replies,
    async stop() {
      isOver = true
      await all
      return replies
    },
  }
}
