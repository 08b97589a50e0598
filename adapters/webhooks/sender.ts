/** Sends a delivery once, to an address that is checked when the connection is made: names may change their addresses. */
import dns, { type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
// By its file: Bun replaces `undici` by an implementation that ignores connectors.
import { Agent, buildConnector, request } from 'undici/index.js'
import { describeNetworkError } from '../client/transport.ts'
import { isPublicAddress, isPublicUrl } from './addresses.ts'
import { signWebhook } from './secrets.ts'

/** What came of an attempt. */
export interface Attempt {
  /** `undefined` without a response. */
  readonly status: number | undefined
  /** Why it failed; `undefined` for a status of 200 to 299. */
  readonly error: string | undefined
  /** What `Retry-After` of a 429 or 503 asks for, in milliseconds. */
  readonly retryAfterMs: number | undefined
}

export type WebhookSender = ReturnType<typeof createWebhookSender>

/** Milliseconds for an attempt: to resolve, connect, send, and read the response. */
const timeoutMs = 15_000
/** To one receiver. */
const connections = 50
/** What is read of a response, so that its connection can be used again. */
const maxResponseBytes = 4_096
/** How long a receiver may ask to wait. */
const maxRetryAfterMs = 3_600_000

/** @param allowPrivate Whether to send to private addresses and by http://, too. */
export function createWebhookSender(allowPrivate: boolean) {
  const agent = new Agent({ connect: createConnector(allowPrivate), connections, allowH2: false })

  return {
    /** Sends a body and does not follow redirects. Never rejects. */
    async send(url: string, secrets: readonly string[], id: string, body: string): Promise<Attempt> {
      const signal = AbortSignal.timeout(timeoutMs)
      const timestamp = Math.floor(Date.now() / 1_000)
      const headers = {
        'content-type': 'application/json',
        'user-agent': 'partner-api-webhooks',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signWebhook(secrets, id, timestamp, body),
      }
      try {
        const response = await request(url, { method: 'POST', headers, body, dispatcher: agent, signal })
        const { statusCode: status, headers: { 'retry-after': retryAfter } } = response
        // The receiver has decided: a response that does not end changes nothing.
        await response.body.dump({ limit: maxResponseBytes, signal }).catch(() => {})
        const error = status >= 200 && status < 300 ? undefined : `status ${status}`
        const retryAfterMs = status === 429 || status === 503
          ? parseRetryAfter(String(retryAfter))
          : undefined
        return { status, error, retryAfterMs }
      } catch (error) {
        return { status: undefined, error: describe(error, signal), retryAfterMs: undefined }
      }
    },
    /** Ends pending attempts. */
    close(): Promise<void> {
      return agent.destroy()
    },
  }
}

function describe(error: unknown, { aborted }: AbortSignal): string {
  if (aborted) return `no response within ${timeoutMs / 1_000} s`
  if (error instanceof PrivateAddressError) return error.message
  return describeNetworkError(error) ?? (error as { code?: string }).code ?? 'the request failed'
}

/** @param text Seconds or a date, RFC 9110 §10.2.3. */
function parseRetryAfter(text: string): number | undefined {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return ms > 0 ? Math.min(ms, maxRetryAfterMs) : undefined
}

/** A connection that was refused because of its address. */
class PrivateAddressError extends Error {
  override readonly name = 'PrivateAddressError'
}

/**
 * Resolves names to their allowed addresses, each name once at a time: a few lookups without a response would delay
 * those of all other names.
 */
function createLookup(isAllowed: (address: string) => boolean): LookupFunction {
  const pending = new Map<string, ((error: Error | null, addresses: LookupAddress[]) => void)[]>()
  return (hostname, options, callback) => {
    const waiting = pending.get(hostname) ?? []
    waiting.push((error, addresses) => {
      if (error) return callback(error, '')
      const allowed = addresses.filter(({ address }) => isAllowed(address))
      const [first] = allowed
      if (first === undefined) callback(refusal(), '')
      else if (options.all) callback(null, allowed)
      else callback(null, first.address, first.family)
    })
    if (waiting.length > 1) return
    pending.set(hostname, waiting)
    dns.lookup(hostname, { ...options, all: true }, (error, addresses) => {
      pending.delete(hostname)
      for (const each of waiting) each(error, addresses)
    })
  }
}

/** A connector of undici. Unless `allowPrivate`, it connects to public addresses only, by TLS. */
function createConnector(allowPrivate: boolean): buildConnector.connector {
  const lookup = createLookup(allowPrivate ? () => true : isPublicAddress)
  const connect = buildConnector({ timeout: timeoutMs, allowH2: false, lookup })
  if (allowPrivate) return connect
  return (options, callback) => {
    // Addresses are not looked up.
    if (!isPublicUrl(options)) return callback(refusal(), null)
    connect(options, (...result) => {
      // Without one when it failed, whatever the types say.
      const socket: typeof result[1] | undefined = result[1]
      if (!socket || isPublicAddress(socket.remoteAddress ?? '')) return callback(...result)
      socket.destroy()
      callback(refusal(), null)
    })
  }
}

function refusal(): PrivateAddressError {
  return new PrivateAddressError(
    'The address is private, or not https://. Servers need --allow-private-webhooks for it',
  )
}
