/** Clients of the trial, and promises with a verdict. */
import process from 'node:process'
import { Pool } from 'undici'
import { PARTNER } from '../../support/partner.ts'

/** A path with a cached response, so that requests only check the key. */
export const READ: string = `/public/plans?partner=${PARTNER}`

/** Options of `serve` without limits, so that only the key matters. */
export const NO_LIMITS: readonly string[] = ['key=0', 'signup=0', 'verify=0', 'authfail=0']
  .flatMap((limit) => ['--limit', limit])

/** The outcome of a request. Instants are those of `performance.now()`. */
export interface Reply {
  readonly askedAt: number
  readonly answeredAt: number
  /** 0 without a response: the connection was refused or lost, or the request timed out. */
  readonly status: number
  readonly body: string
}

export type Client = ReturnType<typeof createClient>

/**
 * A client of one replica, with one connection per concurrent request.
 *
 * @param base The origin of the replica. Paths are below `/service`.
 */
export function createClient(base: string) {
  const pool = new Pool(base, { pipelining: 1, headersTimeout: 15_000, bodyTimeout: 15_000 })
  const failures: Reply[] = []

  async function request(
    path: string,
    { key, body, idempotencyKey }: {
      readonly key?: string
      /** Posted as JSON. */
      readonly body?: unknown
      readonly idempotencyKey?: string
    },
  ) {
    try {
      const response = await pool.request({
        path: `/service${path}`,
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          ...(key !== undefined && { 'x-service-partner-key': key }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return { status: response.statusCode, body: await response.body.text() }
    } catch {
      return { status: 0, body: '' }
    }
  }

  return {
    /** Responses that no store failure excuses: 5xx other than 503, and lost connections. */
    failures: failures as readonly Reply[],
    async send(path: string, options: Parameters<typeof request>[1] = {}): Promise<Reply> {
      const askedAt = performance.now()
      const reply = { ...await request(path, options), askedAt, answeredAt: performance.now() }
      if (reply.status === 0 || (reply.status >= 500 && reply.status !== 503)) failures.push(reply)
      return reply
    },
    close: () => pool.destroy(),
  }
}

for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => process.exit(1))

/** Prints whether a promise was kept. A broken promise sets exit code 1. */
export function check(promise: string, isKept: boolean): void {
  console.log(`  ${isKept ? 'kept  ' : 'BROKEN'}  ${promise}`)
  if (!isKept) process.exitCode = 1
}

/** Checks that replicas answered every request, whatever happened to their store. */
export function checkFailures(clients: readonly Client[]): void {
  const statuses = clients.flatMap(({ failures }) => failures.map(({ status }) => status || 'no answer'))
  check(`no request gets 500 or loses its connection (${statuses.length})`, statuses.length === 0)
  if (statuses.length > 0) console.log(`          ${[...new Set(statuses)].join(', ')}`)
}

/** Fails the program if it has not ended by then. */
export function endWithin(seconds: number): void {
  setTimeout(() => {
    console.log(`  BROKEN  the trial did not end within ${seconds} s`)
    process.exit(1)
  }, seconds * 1000).unref()
}

/** Formats milliseconds. */
export function ms(milliseconds: number): string {
  return Number.isFinite(milliseconds) ? `${Math.round(milliseconds).toLocaleString('en')} ms` : 'never'
}
