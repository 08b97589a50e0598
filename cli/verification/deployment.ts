import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import process from 'node:process'
import * as tls from 'node:tls'
import { Agent, type Dispatcher, EnvHttpProxyAgent, request } from 'undici'
import {
  createRequestBuilder,
  describeNetworkError,
  type RequestSpec,
} from '../../adapters/client/transport.ts'
import type { ServiceNames } from '../../core/http/headers.ts'
import { CliError, usageError } from '../errors.ts'
import { describeFileError } from '../files.ts'
import type { Io } from '../output/print.ts'
import { isLoopback } from './credential.ts'

/** A deployment that verify sends requests to. */
export type Deployment = Awaited<ReturnType<typeof connectToDeployment>>

/** An HTTP response, perhaps not the service's. */
export interface DeploymentResponse {
  readonly url: string
  readonly status: number
  readonly header: (name: string) => string | undefined
  readonly text: string
  /** Milliseconds from sending the request to the end of the response. */
  readonly ms: number
}

const timeoutMs = 10_000
/** A valid list without pages (industries, plans) can be long. */
const maxBodyMebibytes = 16

/** Prepares requests to a deployment. It does not connect yet. @param caFile Additional trusted certificates. */
export async function connectToDeployment(
  base: URL,
  { name }: ServiceNames,
  key: string,
  env: Io['env'],
  caFile?: string,
) {
  const buildRequest = createRequestBuilder(base, name, key)
  const { dispatcher, proxyHint } = await createDispatcher(base, env, caFile)

  return {
    /** Sends a request once. It does not follow redirects, which would carry the key to another server. */
    async send({ target, headers, body }: RequestSpec): Promise<DeploymentResponse> {
      const { url, ...init } = buildRequest({
        target,
        headers: { ...headers, 'user-agent': 'partner-api-cli' },
        body,
      })
      const startedAt = performance.now()
      try {
        const signal = AbortSignal.timeout(timeoutMs)
        const response = await request(url, { ...init, dispatcher, signal })
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
          `${base.origin} can't be reached: ${describeFailure(error)}.${proxyHint}`,
        )
      }
    },

    /** Closes connections, which would keep the process alive. */
    async close(): Promise<void> {
      // Bun replaces undici by an implementation without this method.
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
      throw notThisServiceError(url, `the response is longer than ${maxBodyMebibytes} MiB`)
    }
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The error for a response that is not the service's. */
export function notThisServiceError(url: string, reason: string): CliError {
  return new CliError(
    3,
    'not_this_service',
    `${url} is not a partner-api service: ${reason}. Check --url and --service-name.`,
  )
}

/** Errors that the client's table does not tell apart: its size counts. */
const detailedErrors: readonly (readonly [code: RegExp, meaning: string])[] = [
  [/^E(?:HOST|NET)UNREACH$/, 'its network is unreachable'],
  [/ALTNAME_INVALID$/, 'its TLS certificate is for another host'],
  [/^CERT_HAS_EXPIRED$/, 'its TLS certificate has expired'],
  [/SELF_SIGNED|^UNABLE_TO_/, 'its TLS certificate is not signed by a trusted authority'],
  [/^ERR_SSL_(?:WRONG_VERSION|PACKET_LENGTH)/, 'it does not speak TLS, so its address may be http://'],
]

function describeFailure(error: unknown): string {
  const { name, code, message, cause } = error as NodeJS.ErrnoException
  const codes = [code, (cause as NodeJS.ErrnoException | undefined)?.code].join(' ')
  if (name === 'TimeoutError') return 'no response within 10 s'
  const [, proxyStatus] = /^Proxy (?:response|Authentication Required) \((\d+)\)/.exec(message) ?? []
  if (proxyStatus !== undefined) return `the proxy answered with ${proxyStatus}`
  if (code?.startsWith('HPE_')) return 'the response is not valid HTTP'
  const [, meaning] =
    detailedErrors.find(([pattern]) => codes.split(' ').some((code) => pattern.test(code))) ?? []
  return meaning ?? describeNetworkError(error) ??
    `${code ?? name ?? 'error'}${message ? ` (${message.split('\n')[0]})` : ''}`
}

/** Bun replaces undici by an implementation that ignores dispatchers. */
const isBun = process.versions['bun'] !== undefined

/** Uses the proxy of the environment, except to this machine. @returns Also a sentence about it, for messages. */
async function createDispatcher(
  base: URL,
  env: Io['env'],
  caFile: string | undefined,
): Promise<{ readonly dispatcher: Dispatcher; readonly proxyHint: string }> {
  const ca = caFile === undefined ? undefined : await readCaCertificates(caFile)
  const connect = { timeout: timeoutMs, ...(ca && { ca }) }
  // Bun reads these variables with every request.
  if (isLoopback(base) && isBun) process.env['no_proxy'] = process.env['NO_PROXY'] = '*'
  const variables = base.protocol === 'https:' ? ['HTTPS_PROXY', 'HTTP_PROXY'] : ['HTTP_PROXY']
  const proxyVariable = isLoopback(base) ? undefined : findVariable(env, variables)
  // A dispatcher of its own: undici's global one would keep the process alive.
  if (proxyVariable === undefined) return { dispatcher: new Agent({ connect }), proxyHint: '' }
  const proxyValue = env[proxyVariable]!
  // Like curl, accept a host and port without a scheme.
  const proxy = proxyValue.includes('://') ? proxyValue : `http://${proxyValue}`
  const noProxyVariable = findVariable(env, ['NO_PROXY'])
  try {
    const dispatcher = new EnvHttpProxyAgent({
      httpProxy: proxy,
      httpsProxy: proxy,
      noProxy: noProxyVariable === undefined ? '' : env[noProxyVariable]!,
      connect,
      requestTls: connect,
      proxyTls: connect,
    })
    const exception = noProxyVariable === undefined ? '' : `, except to the hosts in ${noProxyVariable}`
    return { dispatcher, proxyHint: ` The proxy in ${proxyVariable} applies${exception}.` }
  } catch {
    // The value may contain a password.
    throw usageError(`${proxyVariable} is not the address of a proxy, such as http://proxy.example:3128.`)
  }
}

/** @returns The first name that is set, in lower or upper case. */
function findVariable(env: Io['env'], names: readonly string[]): string | undefined {
  return names.flatMap((name) => [name.toLowerCase(), name]).find((name) => env[name])
}

async function readCaCertificates(file: string): Promise<string[]> {
  if (isBun) {
    throw usageError('Bun does not support --ca-file. Use NODE_EXTRA_CA_CERTS=FILE instead.')
  }
  const pem = await readFile(file, 'utf8').catch((error) => {
    throw usageError(`The certificates can't be read from ${file}: ${describeFileError(error)}.`)
  })
  try {
    new X509Certificate(pem)
  } catch {
    throw usageError(`The file ${file} contains no certificate in PEM format.`)
  }
  return [...tls.getCACertificates('default'), pem]
}
