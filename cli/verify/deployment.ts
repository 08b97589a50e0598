import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import process from 'node:process'
import * as tls from 'node:tls'
import { Agent, EnvHttpProxyAgent, request } from 'undici'
import {
  type AuthenticatedRequest,
  explainNetworkError,
  type NetworkErrorKind,
  readText,
} from '../../adapters/client/transport.ts'
import { parseJson } from '../../core/lib/json.ts'
import { readVariable } from '../environment.ts'
import { CliError, usageError } from '../errors.ts'
import { unreadableFileError } from '../files.ts'
import type { Io } from '../output/print.ts'
import { excerpt, formatTime, mapStrings, printable, redact } from '../output/text.ts'
import { isLoopback } from './credential.ts'

/** A connection to a deployment, perhaps through a proxy. */
export interface DeploymentConnection {
  /** @throws {CliError} `unreachable` */
  request(request: AuthenticatedRequest): Promise<DeploymentResponse>
  close(): Promise<void>
}

/**
 * An HTTP response, perhaps not the service's. What it holds is clean: keys and credentials are redacted, texts cut.
 */
export interface DeploymentResponse {
  readonly url: string
  readonly status: number
  readonly header: (name: string) => string | undefined
  /** The JSON that the body is; `undefined` for another text. */
  readonly json: unknown
  /** The HTML page that the body is, for messages; `undefined` for another body. */
  readonly page: string | undefined
  readonly isEmpty: boolean
  readonly ms: number
}

/** UTF-16 units of a header field: a Link has a cursor of up to 1,000 characters. */
const maxFieldLength = 4_000
/** UTF-16 units of a string or a member name of a body. */
const maxTextLength = 1_000
/** How much is shown of a name from a deployment, in UTF-16 units. */
export const MAX_NAME_LENGTH = 200
const timeoutMs = 10_000
/** A valid list without pages (industries, plans) can be long. */
const maxBodyMebibytes = 4

/** A clean name, for messages. */
export function displayName(name: string): string {
  return printable(excerpt(name, MAX_NAME_LENGTH))
}

/** The only place where a text of a deployment is redacted. */
function clean(text: string, max: number): string {
  return excerpt(redact(text), max)
}

/** What a server sent. */
interface Received {
  readonly url: string
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly text: string
  readonly ms: number
}

export function toDeploymentResponse({ url, status, headers, text, ms }: Received): DeploymentResponse {
  const header = (name: string) => {
    const value = headers[name.toLowerCase()]
    return value === undefined ? undefined : clean([value].flat().join(', '), maxFieldLength)
  }
  return {
    url,
    status,
    header,
    json: mapStrings(parseJson(text), (each) => clean(each, maxTextLength)),
    page: describePage(header('content-type'), text.slice(0, 16_384)),
    isEmpty: text === '',
    ms,
  }
}

/** @param head The begin of the body. */
function describePage(type: string | undefined, head: string): string | undefined {
  if (!type?.startsWith('text/html') && !/^\s*<(?:!doctype )?html/i.test(head)) return undefined
  const titleTag = head.search(/<title[\s>]/i)
  if (titleTag === -1) return 'an HTML page'
  const [title = ''] = head.slice(head.indexOf('>', titleTag) + 1).split('<', 1)
  const words = title.trim().replace(/\s+/g, ' ')
  return words === '' ? 'an HTML page' : `the HTML page "${displayName(clean(words, maxTextLength))}"`
}

export function urlBelow({ origin, pathname }: URL, path: string): string {
  return `${origin}${pathname === '/' ? '' : pathname}${path}`
}

/**
 * Prepares requests, which do not follow redirects: a key would go to another server.
 *
 * @param ending Ends all of them.
 */
export async function openConnection(
  base: URL,
  env: Io['env'],
  caFile: string | undefined,
  ending: AbortSignal,
): Promise<DeploymentConnection> {
  const { dispatcher, proxyHint } = await createDispatcher(base, env, caFile)

  return {
    async request({ url, ...init }) {
      const startedAt = performance.now()
      try {
        const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), ending])
        const headers = { ...init.headers, 'user-agent': 'partner-api-cli' }
        const response = await request(url, { ...init, headers, dispatcher, signal })
        // JSON has no byte order mark (RFC 8259 §8.1).
        const decoding = { ignoreBOM: true }
        const text = await readText(response.body, maxBodyMebibytes * 1_048_576, undefined, decoding)
        if (text === undefined) {
          const reason = `the response is longer than ${maxBodyMebibytes} MiB`
          throw notThisServiceError(url, reason, 'Check --url and --service-name.')
        }
        return toDeploymentResponse({
          url,
          status: response.statusCode,
          headers: response.headers,
          text,
          ms: performance.now() - startedAt,
        })
      } catch (error) {
        if (error instanceof CliError) throw error
        if (ending.aborted) {
          const late = `The check of ${base.origin} did not end within the time of --timeout.`
          throw new CliError(3, 'unreachable', `${late} To allow more, pass --timeout 5m.`)
        }
        const sentence = `${base.origin} can't be reached: ${describeFailure(error, base)}`
        throw new CliError(3, 'unreachable', `${sentence}${proxyHint}`)
      }
    },

    async close() {
      // Bun replaces undici by an implementation without this method.
      await dispatcher.destroy?.()
    },
  }
}

export function notThisServiceError(url: string, reason: string, step: string): CliError {
  return new CliError(3, 'not_this_service', `${url} is not a partner-api service: ${reason}. ${step}`)
}

type NetworkError = NodeJS.ErrnoException & { readonly cert?: { readonly subjectaltname?: string } }

type Step = (base: URL, error: NetworkError) => string

/** What to do about the kinds of errors that the client knows. */
const steps: Readonly<Record<NetworkErrorKind, Step | undefined>> = {
  blocked: undefined,
  dns: ({ hostname }) => `Check the spelling of ${hostname}, and the name servers of this machine.`,
  refused: () => 'Check the port in --url, and ask the operator whether the service runs.',
  timeout: () => 'Check the port in --url, and ask the operator whether a firewall blocks this machine.',
  closed: perhapsTls,
  tls: undefined,
}

/** Codes about which more is known, what they mean, and what to do. */
const diagnoses: readonly (readonly [code: RegExp, meaning: string, step: Step])[] = [
  [/^E(?:HOST|NET)UNREACH$/, 'its network is unreachable', () => 'Check the network or VPN of this machine.'],
  [
    /ALTNAME_INVALID$/,
    'its TLS certificate is for another host',
    ({ hostname }, { cert }) => {
      const names = displayName(clean(cert?.subjectaltname ?? 'unknown', maxTextLength))
      return `Its names are ${names}: use one of them in --url, or ask the operator for a certificate for ${hostname}.`
    },
  ],
  [
    /^CERT_HAS_EXPIRED$/,
    'its TLS certificate has expired',
    () => `Ask the operator to renew it, unless the clock of this machine is wrong: it shows ${clock()}.`,
  ],
  [
    /^CERT_NOT_YET_VALID$/,
    'its TLS certificate is not valid yet',
    () => `Check the clock of this machine: it shows ${clock()}.`,
  ],
  [
    /SELF_SIGNED|^UNABLE_TO_/,
    'its TLS certificate is not signed by a trusted authority',
    () => "If you trust that authority, pass the authority's certificate with --ca-file FILE.",
  ],
  [
    /^ERR_SSL_(?:WRONG_VERSION|PACKET_LENGTH)/,
    'it does not speak TLS, so its address may be http://',
    ({ host }) => `Check the port, or pass --url http://${host}, which sends the key unencrypted.`,
  ],
  [/^HPE_/, 'the response is not valid HTTP', perhapsTls],
]

function perhapsTls({ protocol, host }: URL): string {
  return protocol === 'http:' ? `If it speaks TLS, pass --url https://${host}.` : 'Check the port in --url.'
}

const clock = () => formatTime(Date.now())

/** @returns What happened, and a sentence with the next step. */
function describeFailure(error: unknown, base: URL): string {
  const { name, code, message, cause } = error as NetworkError
  if (name === 'TimeoutError') {
    return 'no response within 10 s. Check the port in --url, and try again.'
  }
  const [, proxyStatus] = /^Proxy (?:response|Authentication Required) \((\d+)\)/.exec(message) ?? []
  if (proxyStatus !== undefined) {
    const step = proxyStatus === '407'
      ? 'It needs a user name and a password in its address: http://USER:PASSWORD@proxy.example:3128.'
      : `Ask its operator to allow ${base.host}, or add ${base.hostname} to NO_PROXY.`
    return `the proxy answered with ${proxyStatus}. ${step}`
  }
  const known = explainNetworkError(error)
  const codes = [code, (cause as NetworkError | undefined)?.code, known?.code]
  const [, meaning, step] = diagnoses.find(([pattern]) => codes.some((each) => pattern.test(each ?? ''))) ??
    []
  const [line = ''] = message.split('\n', 1)
  const other = `${code ?? name ?? 'error'}${line === '' ? '' : ` (${clean(line, maxTextLength)})`}`
  const what = meaning ?? known?.text ?? other
  const next = step ?? (known && steps[known.kind])
  return `${what}. ${next?.(base, error as NetworkError) ?? 'Check --url.'}`
}

/** Bun replaces undici by an implementation that ignores dispatchers. */
const isBun = process.versions['bun'] !== undefined

/** Uses the proxy of the environment, except to this machine. @returns Also a sentence about it, for messages. */
async function createDispatcher(base: URL, env: Io['env'], caFile: string | undefined) {
  const ca = caFile === undefined ? undefined : await readCaCertificates(caFile)
  const connect = ca === undefined ? { timeout: timeoutMs } : { timeout: timeoutMs, ca }
  // Bun reads these variables with every request.
  if (isLoopback(base) && isBun) process.env['no_proxy'] = process.env['NO_PROXY'] = '*'
  const variables = base.protocol === 'https:' ? ['HTTPS_PROXY', 'HTTP_PROXY'] : ['HTTP_PROXY']
  const proxyVariable = isLoopback(base) ? undefined : findVariable(env, variables)
  // A dispatcher of its own: undici's global one would keep the process alive.
  if (proxyVariable === undefined) return { dispatcher: new Agent({ connect }), proxyHint: '' }
  const proxyValue = readVariable(env, proxyVariable)!
  // Like curl, accept a host and port without a scheme.
  const proxy = proxyValue.includes('://') ? proxyValue : `http://${proxyValue}`
  const noProxyVariable = findVariable(env, ['NO_PROXY'])
  const noProxy = readVariable(env, noProxyVariable ?? '') ?? ''
  const tlsOptions = { connect, requestTls: connect, proxyTls: connect }
  try {
    const dispatcher = new EnvHttpProxyAgent({ httpProxy: proxy, httpsProxy: proxy, noProxy, ...tlsOptions })
    const exception = noProxyVariable === undefined ? '' : `, except to the hosts in ${noProxyVariable}`
    return { dispatcher, proxyHint: ` The proxy in ${proxyVariable} applies${exception}.` }
  } catch {
    // The value may contain a password.
    throw usageError(`${proxyVariable} is not the address of a proxy, such as http://proxy.example:3128.`)
  }
}

/** @returns The first name that is set, in lower or upper case. */
function findVariable(env: Io['env'], names: readonly string[]): string | undefined {
  return names.flatMap((name) => [name.toLowerCase(), name]).find((name) => readVariable(env, name))
}

async function readCaCertificates(file: string): Promise<string[]> {
  if (isBun) {
    throw usageError('Bun does not support --ca-file. Use NODE_EXTRA_CA_CERTS=FILE instead.')
  }
  const pem = await readFile(file, 'utf8').catch((error) => {
    throw unreadableFileError(file, error)
  })
  try {
    new X509Certificate(pem)
  } catch {
    throw usageError(`The file ${file} contains no certificate in PEM format.`)
  }
  return [...tls.getCACertificates('default'), pem]
}
