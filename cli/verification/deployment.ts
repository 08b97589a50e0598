import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import process from 'node:process'
import * as tls from 'node:tls'
import { Agent, type Dispatcher, EnvHttpProxyAgent, request } from 'undici'
import { createRequestBuilder, type RequestSpec } from '../../adapters/client/transport.ts'
import type { ServiceNames } from '../../core/http/headers.ts'
import { CliError, usageError } from '../errors.ts'
import { describeFileError } from '../files.ts'
import { isLoopback } from './credential.ts'

/** Where a key is used. */
export interface Deployment {
  /**
   * Asks once. A redirect is not followed: it would carry the key to wherever it points.
   *
   * @throws {CliError} exit code 3 when no answer comes within 10 s.
   */
  send(question: RequestSpec): Promise<DeploymentResponse>
  /** Lets go of what would keep the process alive. */
  close(): Promise<void>
}

/** What came back: no more than that it is an HTTP answer is known of it. */
export interface DeploymentResponse {
  readonly url: string
  readonly status: number
  readonly header: (name: string) => string | undefined
  readonly text: string
  /** Milliseconds from the question to the end of the answer. */
  readonly ms: number
}

const timeoutMs = 10_000
/** Lists that do not page (industries, plans) can be long in a service that is right. */
const maxBodyMebibytes = 16

/**
 * A deployment at an address. Nothing is asked yet.
 *
 * @param caFile Certificates that are trusted besides.
 * @throws {CliError} exit code 2 where the way there can't be as it is wanted.
 */
export async function createDeployment(
  base: URL,
  { name }: ServiceNames,
  key: string,
  caFile?: string,
): Promise<Deployment> {
  const buildRequest = createRequestBuilder(base, name, key)
  const { dispatcher, proxyHint } = await createDispatcher(base, timeoutMs, caFile)

  return {
    async send({ target, headers, body }) {
      const { url, ...init } = buildRequest({
        target,
        headers: { ...headers, 'user-agent': 'partner-api-cli' },
        body,
      })
      const startedAt = performance.now()
      try {
        const response = await request(url, {
          ...init,
          dispatcher,
          signal: AbortSignal.timeout(timeoutMs),
        })
        const text = await readText(response.body, url)
        return {
          url,
          status: response.statusCode,
          header: (name) => {
            const value = response.headers[name.toLowerCase()]
            return Array.isArray(value) ? value.join(', ') : value
          },
          text,
          ms: performance.now() - startedAt,
        }
      } catch (error) {
        if (error instanceof CliError) throw error
        throw new CliError(
          3,
          'unreachable',
          `${base.origin} can't be reached: ${describeConnectionError(error)}.${proxyHint}`,
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
    if (size > maxBodyMebibytes * 1_048_576) {
      throw notThisServiceError(url, `it is longer than ${maxBodyMebibytes} MiB`)
    }
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Something answered, but not the service. */
export function notThisServiceError(url: string, reason: string): CliError {
  return new CliError(
    3,
    'not_this_service',
    `What answered at ${url} is not a partner-api service: ${reason}. Check --url and --service-name.`,
  )
}

const connectionErrors: Readonly<Record<string, string>> = {
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

function describeConnectionError(error: unknown): string {
  const { name, code, message, cause } = error as NodeJS.ErrnoException
  if (name === 'TimeoutError') return 'no answer came within 10 s'
  const known = connectionErrors[code ?? ''] ??
    connectionErrors[(cause as NodeJS.ErrnoException | undefined)?.code ?? '']
  if (known) return known
  const [, proxyStatus] = /^Proxy (?:response|Authentication Required) \((\d+)\)/.exec(message) ?? []
  if (proxyStatus !== undefined) return `the proxy answered with ${proxyStatus}`
  if (code?.startsWith('HPE_')) return 'what it answers is not HTTP'
  return `${code ?? name ?? 'error'}${message ? ` (${message.split('\n')[0]})` : ''}`
}

/** Bun puts a stand-in of its own in the place of undici, which takes no dispatcher. */
const isBun = process.versions['bun'] !== undefined

/**
 * The way to a deployment: by the proxy that the environment names, but never to this machine itself.
 *
 * @param connectTimeoutMs In which a connection has to come about.
 * @param caFile Certificates in PEM, which are trusted besides those that the runtime trusts.
 * @returns A dispatcher of its own, as the shared one would keep the process alive with its connections, and a sentence
 * that names the variable of the environment whose proxy is on the way, or nothing.
 * @throws {Failure} exit code 2 for a proxy that is none, and for a file that holds no certificate.
 */
export async function createDispatcher(
  base: URL,
  connectTimeoutMs: number,
  caFile: string | undefined,
): Promise<{ readonly dispatcher: Dispatcher; readonly proxyHint: string }> {
  const ca = caFile === undefined ? undefined : await readCaCertificates(caFile)
  const connect = { timeout: connectTimeoutMs, ...(ca && { ca }) }
  if (isLoopback(base)) {
    // The stand-in reads these with every request.
    if (isBun) process.env['no_proxy'] = process.env['NO_PROXY'] = '*'
    return { dispatcher: new Agent({ connect }), proxyHint: '' }
  }
  const proxyVariable = findEnvironmentVariable(
    ...(base.protocol === 'https:' ? ['HTTPS_PROXY', 'HTTP_PROXY'] : ['HTTP_PROXY']),
  )
  if (proxyVariable === undefined) return { dispatcher: new Agent({ connect }), proxyHint: '' }
  const proxyValue = process.env[proxyVariable]!
  // As curl has it, a host and a port are enough.
  const proxy = proxyValue.includes('://') ? proxyValue : `http://${proxyValue}`
  const noProxyVariable = findEnvironmentVariable('NO_PROXY')
  try {
    const dispatcher = new EnvHttpProxyAgent({
      // The other one need not be a proxy's.
      httpProxy: proxy,
      httpsProxy: proxy,
      noProxy: noProxyVariable === undefined ? '' : process.env[noProxyVariable]!,
      connect,
      requestTls: connect,
      proxyTls: connect,
    })
    const exception = noProxyVariable === undefined ? '' : `, unless ${noProxyVariable} names it`
    return { dispatcher, proxyHint: ` It is asked for by the proxy that ${proxyVariable} names${exception}.` }
  } catch {
    // What is wrong with it stays unsaid: it may hold a password.
    throw usageError(`${proxyVariable} is no address of a proxy, such as http://proxy.example:3128.`)
  }
}

/** The first that says something, each looked for in lower case first. */
function findEnvironmentVariable(...names: string[]): string | undefined {
  return names.flatMap((name) => [name.toLowerCase(), name]).find((name) => process.env[name])
}

async function readCaCertificates(file: string): Promise<string[]> {
  if (isBun) {
    throw usageError('Bun takes certificates from NODE_EXTRA_CA_CERTS=FILE, and not from --ca-file.')
  }
  const pem = await readFile(file, 'utf8').catch((error) => {
    throw usageError(`The certificates can't be read from ${file}: ${describeFileError(error)}.`)
  })
  try {
    new X509Certificate(pem)
  } catch {
    throw usageError(`The file ${file} holds no certificate in PEM.`)
  }
  return [...tls.getCACertificates('default'), pem]
}
