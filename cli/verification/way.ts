import { readFile } from 'node:fs/promises'
import process from 'node:process'
import * as tls from 'node:tls'
import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici'
import { usageFailure } from '../failure.ts'
import { isLoopback } from '../input/deployment-url.ts'
import { reasonOf } from '../input/lines.ts'

/** How a deployment is reached. */
export interface Way {
  /** Its own: it can be closed, and the shared one would keep the process alive with its connections. */
  readonly dispatcher: Dispatcher
  /** The variable of the environment that names a proxy for it, if one does. `NO_PROXY` may still say otherwise. */
  readonly proxyVariable: string | undefined
}

/** What keeps the way to a deployment. */
export interface WayOptions {
  /** Milliseconds in which a connection has to come about. */
  readonly timeoutMs: number
  /** A file of certificates in PEM, which are trusted besides those that the runtime trusts. */
  readonly caFile?: string | undefined
}

/**
 * The way to a deployment: by the proxy that the environment names, as curl has it, but never to this machine itself.
 *
 * @throws {Failure} exit code 2 for a proxy that is none, and for a file that holds no certificate.
 */
export async function openWay(base: URL, { timeoutMs, caFile }: WayOptions): Promise<Way> {
  const ca = caFile === undefined ? undefined : await readAuthorities(caFile)
  const connect = { timeout: timeoutMs, ...(ca && { ca }) }
  const proxyVariable = isLoopback(base) ? undefined : findProxy(base.protocol)
  if (proxyVariable === undefined) return { dispatcher: new Agent({ connect }), proxyVariable }
  try {
    const dispatcher = new EnvHttpProxyAgent({ connect, requestTls: connect, proxyTls: connect })
    return { dispatcher, proxyVariable }
  } catch {
    // What is wrong with it stays unsaid: it may hold a password.
    throw usageFailure(`${proxyVariable} is no address of a proxy, such as http://proxy.example:3128.`)
  }
}

function findProxy(protocol: string): string | undefined {
  const names = protocol === 'https:' ? ['HTTPS_PROXY', 'HTTP_PROXY'] : ['HTTP_PROXY']
  return names.flatMap((name) => [name.toLowerCase(), name]).find((name) => process.env[name])
}

async function readAuthorities(file: string): Promise<string[]> {
  // Bun puts a stand-in of its own in the place of undici, which takes no certificates.
  if (process.versions['bun'] !== undefined) {
    throw usageFailure('Bun takes certificates from NODE_EXTRA_CA_CERTS=FILE, and not from --ca-file.')
  }
  const pem = await readFile(file, 'utf8').catch((error) => {
    throw usageFailure(`The certificates can't be read from ${file}: ${reasonOf(error)}.`)
  })
  try {
    tls.createSecureContext({ ca: pem })
    if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new Error('none')
  } catch {
    throw usageFailure(`The file ${file} holds no certificate in PEM.`)
  }
  return [...tls.getCACertificates('default'), pem]
}
