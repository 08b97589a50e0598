import { request } from 'undici'
import { type Asked, createRequests } from '../../adapters/client/request.ts'
import type { ServiceNames } from '../../core/service-names.ts'
import { Failure } from '../failure.ts'
import { openWay } from './way.ts'

/** Where a key is used. */
export interface Deployment {
  /**
   * Asks once. A redirect is not followed: it would carry the key to wherever it points.
   *
   * @throws {Failure} exit code 3 when no answer comes within 10 s.
   */
  ask(question: Asked): Promise<Reply>
  /** Lets go of what would keep the process alive. */
  close(): Promise<void>
}

/** What came back: no more than that it is an HTTP answer is known of it. */
export interface Reply {
  readonly url: string
  readonly status: number
  readonly header: (name: string) => string | undefined
  readonly text: string
  /** Milliseconds from the question to the end of the answer. */
  readonly ms: number
}

const timeoutMs = 10_000
/** Lists that do not page (industries, plans) can be long in a service that is right. */
const maxMebibytes = 16

/**
 * A deployment at an address. Nothing is asked yet.
 *
 * @param caFile Certificates that are trusted besides.
 * @throws {Failure} exit code 2 where the way there can't be as it is wanted.
 */
export async function connectTo(
  base: URL,
  { name }: ServiceNames,
  key: string,
  caFile?: string,
): Promise<Deployment> {
  const requestFor = createRequests(base, name, key)
  const { dispatcher, proxyHint } = await openWay(base, timeoutMs, caFile)

  return {
    async ask({ target, headers, body }) {
      const { url, ...asked } = requestFor({
        target,
        headers: { ...headers, 'user-agent': 'partner-api-cli' },
        body,
      })
      const began = performance.now()
      try {
        const answer = await request(url, {
          ...asked,
          dispatcher,
          signal: AbortSignal.timeout(timeoutMs),
        })
        const text = await readText(answer.body, url)
        return {
          url,
          status: answer.statusCode,
          header: (name) => {
            const value = answer.headers[name.toLowerCase()]
            return Array.isArray(value) ? value.join(', ') : value
          },
          text,
          ms: performance.now() - began,
        }
      } catch (error) {
        if (error instanceof Failure) throw error
        throw new Failure(
          3,
          'unreachable',
          `${base.origin} can't be reached: ${reasonOf(error)}.${proxyHint}`,
        )
      }
    },

    async close() {
      // Bun puts a stand-in of its own in the place of undici, and that has nothing to close.
      await dispatcher.destroy?.()
    },
  }
}

async function readText(body: AsyncIterable<Uint8Array>, url: string): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.length
    if (size > maxMebibytes * 1_048_576) throw notThisService(url, `it is longer than ${maxMebibytes} MiB`)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Something answered, but not the service. */
export function notThisService(url: string, reason: string): Failure {
  return new Failure(
    3,
    'not_this_service',
    `What answered at ${url} is not a partner-api service: ${reason}. Check --url and --service-name.`,
  )
}

const reasons: Readonly<Record<string, string>> = {
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'its name could not be looked up',
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'it closed the connection',
  EPIPE: 'it closed the connection',
  UND_ERR_SOCKET: 'it closed the connection',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network',
  ETIMEDOUT: 'no connection came about in time',
  UND_ERR_CONNECT_TIMEOUT: 'no connection came about within 10 s',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by nobody that is trusted here',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is signed by nobody that is trusted here',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is signed by nobody that is trusted here',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is signed by nobody that is trusted here',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS (is it http:// instead?)',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS (is it http:// instead?)',
}

function reasonOf(error: unknown): string {
  const { name, code, message, cause } = error as NodeJS.ErrnoException
  if (name === 'TimeoutError') return 'no answer came within 10 s'
  const known = reasons[code ?? ''] ?? reasons[(cause as NodeJS.ErrnoException | undefined)?.code ?? '']
  if (known) return known
  const [, refusal] = /^Proxy (?:response|Authentication Required) \((\d+)\)/.exec(message) ?? []
  if (refusal !== undefined) return `the proxy answered with ${refusal}`
  if (code?.startsWith('HPE_')) return 'what it answers is not HTTP'
  return `${code ?? name ?? 'error'}${message ? ` (${message.split('\n')[0]})` : ''}`
}
