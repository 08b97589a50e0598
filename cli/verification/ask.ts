import { Agent, request } from 'undici'
import type { ServiceNames } from '../../core/service-names.ts'
import { Failure } from '../failure.ts'

/** A question to the verify-key operation of a deployment. */
export interface Question {
  readonly base: URL
  readonly names: ServiceNames
  readonly partner: string
  readonly key: string
}

/** What came back: no more than that it is an HTTP answer is known of it. */
export interface Reply {
  readonly url: string
  readonly status: number
  readonly header: (name: string) => string | undefined
  readonly text: string
}

const timeoutMs = 10_000
const maxBytes = 1_048_576

/**
 * Calls verify-key once. A redirect is not followed: it would carry the key to wherever it points.
 *
 * @throws {Failure} exit code 3 when no answer comes within 10 s.
 */
export async function askVerifyKey({ base, names, partner, key }: Question): Promise<Reply> {
  const url = `${base.origin}${base.pathname.replace(/\/+$/, '')}/${names.name}/developer/verify-key`
  // An agent of its own can be closed: the shared one would keep the process alive with its connection.
  const dispatcher = new Agent({ connect: { timeout: timeoutMs } })
  try {
    const { statusCode, headers, body } = await request(url, {
      dispatcher,
      method: 'POST',
      headers: {
        [names.keyHeader]: key,
        'content-type': 'application/json',
        'accept': 'application/json, application/problem+json',
        'user-agent': 'partner-api-cli',
      },
      body: JSON.stringify({ partner }),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of body) {
      chunks.push(chunk)
      size += chunk.length
      if (size > maxBytes) throw notThisService(url, 'it is longer than any answer of verify-key')
    }
    return {
      url,
      status: statusCode,
      header: (name) => [headers[name] ?? []].flat()[0],
      text: Buffer.concat(chunks).toString('utf8'),
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure(3, 'unreachable', `${base.origin} can't be reached: ${reasonOf(error)}.`)
  } finally {
    // Bun puts a stand-in of its own in the place of undici, and that has nothing to close.
    await dispatcher.destroy?.()
  }
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
  if (code?.startsWith('HPE_')) return 'what it answers is not HTTP'
  return `${code ?? name ?? 'error'}${message ? ` (${message.split('\n')[0]})` : ''}`
}
