import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import process from 'node:process'
import * as tls from 'node:tls'
import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici'
import { usageFailure } from '../failure.ts'
import { isLoopback } from '../input/deployment-url.ts'
import { reasonOf } from '../input/lines.ts'

/** Bun puts a stand-in of its own in the place of undici, which takes no dispatcher. */
const isBun = process.versions['bun'] !== undefined

/**
 * The way to a deployment: by the proxy that the environment names, but never to this machine itself.
 *
 * @param timeoutMs In which a connection has to come about.
 * @param caFile Certificates in PEM, which are trusted besides those that the runtime trusts.
 * @returns A dispatcher of its own, as the shared one would keep the process alive with its connections, and a sentence
 * that names the variable of the environment whose proxy is on the way, or nothing.
 * @throws {Failure} exit code 2 for a proxy that is none, and for a file that holds no certificate.
 */
export async function openWay(
  base: URL,
  timeoutMs: number,
  caFile: string | undefined,
): Promise<{ readonly dispatcher: Dispatcher; readonly proxyHint: string }> {
  const ca = caFile === undefined ? undefined : await readAuthorities(caFile)
  const connect = { timeout: timeoutMs, ...(ca && { ca }) }
  if (isLoopback(base)) {
    // The stand-in reads these with every request.
    if (isBun) process.env['no_proxy'] = process.env['NO_PROXY'] = '*'
    return { dispatcher: new Agent({ connect }), proxyHint: '' }
  }
  const variable = findVariable(
    ...(base.protocol === 'https:' ? ['HTTPS_PROXY', 'HTTP_PROXY'] : ['HTTP_PROXY']),
  )
  if (variable === undefined) return { dispatcher: new Agent({ connect }), proxyHint: '' }
  const named = process.env[variable]!
  // As curl has it, a host and a port are enough.
  const proxy = named.includes('://') ? named : `http://${named}`
  const exempting = findVariable('NO_PROXY')
  try {
    const dispatcher = new EnvHttpProxyAgent({
      // The other one need not be a proxy's.
      httpProxy: proxy,
      httpsProxy: proxy,
      noProxy: exempting === undefined ? '' : process.env[exempting]!,
      connect,
      requestTls: connect,
      proxyTls: connect,
    })
    const unless = exempting === undefined ? '' : `, unless ${exempting} names it`
    return { dispatcher, proxyHint: ` It is asked for by the proxy that ${variable} names${unless}.` }
  } catch {
    // What is wrong with it stays unsaid: it may hold a password.
    throw usageFailure(`${variable} is no address of a proxy, such as http://proxy.example:3128.`)
  }
}

/** The first that says something, each looked for in lower case first. */
function findVariable(...names: string[]): string | undefined {
  return names.flatMap((name) => [name.toLowerCase(), name]).find((name) => process.env[name])
}

async function readAuthorities(file: string): Promise<string[]> {
  if (isBun) {
    throw usageFailure('Bun takes certificates from NODE_EXTRA_CA_CERTS=FILE, and not from --ca-file.')
  }
  const pem = await readFile(file, 'utf8').catch((error) => {
    throw usageFailure(`The certificates can't be read from ${file}: ${reasonOf(error)}.`)
  })
  try {
    new X509Certificate(pem)
  } catch {
    throw usageFailure(`The file ${file} holds no certificate in PEM.`)
  }
  return [...tls.getCACertificates('default'), pem]
}
