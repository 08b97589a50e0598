/**
 * Sends a delivery once, to an address that is checked when the connection is made: names may change their addresses.
 */
// By its file: Bun replaces `undici` by an implementation that ignores connectors.
import { Agent, buildConnector, type Dispatcher } from 'undici/index.js'
import { parseRetryAfter } from '../client/response.ts'
import { explainNetworkError } from '../client/transport.ts'
import { AttemptError, createLookup, isPublicAddress, isPublicUrl } from './addresses.ts'
import { signWebhook } from './secrets.ts'

export interface Attempt {
  /** Absent without a response. */
  readonly status?: number
  /** Why it failed; absent for a status of 200 to 299. */
  readonly error?: string
  /** Milliseconds that `Retry-After` of a 429 or 503 asks for. */
  readonly retryAfterMs?: number
}

/** Sends deliveries over its own connections. */
export interface WebhookSender {
  /**
   * Sends a body and does not follow redirects. Never rejects.
   *
   * @param mayBeCalled Called once there is a connection. If it returns false, nothing is sent, and
   * `undefined` is returned.
   */
  send(
    url: string,
    secrets: readonly string[],
    id: string,
    body: string,
    mayBeCalled?: () => boolean,
  ): Promise<Attempt | undefined>
  /** Ends pending attempts. */
  close(): Promise<void>
}

/** Milliseconds to resolve and connect; and then to send, and read the response. Together less than a lease. */
const connectTimeoutMs = 10_000
const timeoutMs = 15_000
/** Bytes of a response that are read, so that its connection can be used again. */
const maxResponseBytes = 4_096
/** Informational responses before the response, and the size of their headers: they can go on without end. */
const maxInformational = 10
const maxInformationalBytes = 65_536
/** How long a receiver may ask to wait. */
const maxRetryAfterMs = 3_600_000

/** @param allowPrivate Whether to send to private addresses and by http://, too. */
export function createWebhookSender(allowPrivate: boolean): WebhookSender {
  const agent = new Agent({ connect: createConnector(allowPrivate), allowH2: false })

  return {
    send(url, secrets, id, body, mayBeCalled = () => true) {
      const { origin, pathname, search } = new URL(url)
      const timestamp = Math.floor(Date.now() / 1_000)
      const headers = {
        'content-type': 'application/json',
        'user-agent': 'partner-api-webhooks',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signWebhook(secrets, id, timestamp, body),
      }
      return new Promise((resolve) => {
        const handler = createHandler(mayBeCalled, resolve)
        agent.dispatch({ origin, path: pathname + search, method: 'POST', headers, body }, handler)
      })
    },
    close: () => agent.destroy(),
  }
}

function createHandler(
  mayBeCalled: () => boolean,
  end: (attempt: Attempt | undefined) => void,
): Dispatcher.DispatchHandler {
  let timer: NodeJS.Timeout | undefined
  let informational = 0
  let informationalBytes = 0
  let bodyBytes = 0
  let isSent = true
  let attempt: Attempt | undefined
  function finish(error?: Error): void {
    clearTimeout(timer)
    // The receiver has decided: a response that does not end changes nothing.
    end(attempt ?? (isSent ? { error: describe(error) } : undefined))
  }
  return {
    onRequestStart(controller) {
      isSent = mayBeCalled()
      // Unlike `abort`, an exception keeps the connection.
      if (!isSent) throw new AttemptError('the webhook may not be called')
      const late = new AttemptError(`no response within ${timeoutMs / 1_000} s`)
      timer = setTimeout(() => controller.abort(late), timeoutMs)
    },
    onResponseStart(_, status, headers) {
      if (status >= 200) {
        attempt = toAttempt(status, headers['retry-after'])
        return
      }
      informationalBytes += JSON.stringify(headers).length
      if (++informational <= maxInformational && informationalBytes <= maxInformationalBytes) return
      throw new AttemptError('too many informational responses')
    },
    onResponseData(controller, chunk) {
      bodyBytes += chunk.length
      if (bodyBytes > maxResponseBytes) {
        controller.abort(new AttemptError(`the response is longer than ${maxResponseBytes} bytes`))
      }
    },
    onResponseEnd: () => finish(),
    onResponseError: (_, error) => finish(error),
  }
}

function toAttempt(status: number, retryAfter: string | string[] | undefined): Attempt {
  if (status < 300) return { status }
  const seconds = status === 429 || status === 503 ? parseRetryAfter(String(retryAfter)) : undefined
  return {
    status,
    error: `status ${status}`,
    retryAfterMs: Math.min((seconds ?? 0) * 1_000, maxRetryAfterMs),
  }
}

function describe(error: unknown): string {
  if (error instanceof AttemptError) return error.message
  return explainNetworkError(error)?.text ?? (error as { code?: string }).code ?? 'the request failed'
}

/** A connector of undici. Unless `allowPrivate`, it connects to public addresses only, by TLS. */
function createConnector(allowPrivate: boolean): buildConnector.connector {
  const lookup = createLookup(allowPrivate ? () => true : isPublicAddress, refusal)
  const connect = buildConnector({ timeout: connectTimeoutMs, allowH2: false, lookup })
  if (allowPrivate) return connect
  return (options, callback) => {
    // Addresses are not looked up.
    if (!isPublicUrl(options)) return callback(refusal(), null)
    connect(options, (...result) => {
      // Absent when it failed, although the types do not say so.
      const socket: typeof result[1] | undefined = result[1]
      if (!socket || isPublicAddress(socket.remoteAddress ?? '')) return callback(...result)
      socket.destroy()
      callback(refusal(), null)
    })
  }
}

function refusal(): AttemptError {
  return new AttemptError(
    'The address is private, or not https://. Servers need --allow-private-webhooks for it',
  )
}
