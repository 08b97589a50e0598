import { Pool } from 'undici'

/** What came of a request. Instants are those of `performance.now()`. */
export interface Reply {
  readonly askedAt: number
  readonly answeredAt: number
  /** 0 when there was no answer: the connection was refused or lost, or nothing came in time. */
  readonly status: number
  readonly body: string
}

/** What a request has besides its path. */
export interface Request {
  readonly key?: string
  /** Is posted as JSON. */
  readonly body?: unknown
  readonly idempotencyKey?: string
  /** Milliseconds to wait for the answer, default 15,000. */
  readonly patienceMs?: number
}

/** Somebody who asks one replica, over as many connections as there are requests at once. */
export interface Client {
  ask(path: string, request?: Request): Promise<Reply>
  /** Replies that no fault of a store excuses: any 5xx but 503, and no answer at all. */
  readonly failures: readonly Reply[]
  close(): Promise<void>
}

/** @param base Where the replica listens. Paths are below `/service`. */
export function createClient(base: string): Client {
  const pool = new Pool(base, { pipelining: 1 })
  const failures: Reply[] = []

  function noted(reply: Reply): Reply {
    if (reply.status === 0 || (reply.status >= 500 && reply.status !== 503)) failures.push(reply)
    return reply
  }

  return {
    failures,
    async ask(path, { key, body, idempotencyKey, patienceMs = 15_000 } = {}) {
      const askedAt = performance.now()
      try {
        const { statusCode, body: answer } = await pool.request({
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
        const text = await answer.text()
        return noted({ askedAt, answeredAt: performance.now(), status: statusCode, body: text })
      } catch {
        return noted({ askedAt, answeredAt: performance.now(), status: 0, body: '' })
      }
    },
    close: () => pool.destroy(),
  }
}

/** Somebody who goes on asking. */
export interface Load {
  /** What has been answered so far. */
  readonly replies: readonly Reply[]
  /** Asks no more. @returns All replies, once the last one is there. */
  stop(): Promise<readonly Reply[]>
}

/** Asks again and again, each of so many askers its next question a moment after its last answer. */
export function startLoad(ask: () => Promise<Reply>, askers: number, pauseMs: number): Load {
  const replies: Reply[] = []
  let isOver = false
  const all = Promise.all(Array.from({ length: askers }, async () => {
    while (!isOver) {
      replies.push(await ask())
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
