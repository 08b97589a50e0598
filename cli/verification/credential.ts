import { createReadStream } from 'node:fs'
import process from 'node:process'
import { extractKeyId, isWellFormedKey, KEY_PREFIX_PATTERN } from '../../core/keys/format.ts'
import { CliError, usageError } from '../errors.ts'
import { describeFileError } from '../files.ts'
import { promptHidden } from '../prompt.ts'

/** More than any key: whoever names a file of another kind hears so before it is read to its end. */
const maxKeyFileBytes = 4_096

/**
 * Finds the key: in `keyFile`, `PARTNER_API_KEY`, standard input when that is no terminal, or a prompt that
 * shows nothing of it.
 *
 * @throws {CliError} exit code 2 when there is none.
 */
export async function readCredential(keyFile: string | undefined): Promise<string> {
  if (keyFile !== undefined) {
    return requireKey(await readLimited(createReadStream(keyFile), keyFile), `The file ${keyFile}`)
  }
  if (process.env.PARTNER_API_KEY) return requireKey(process.env.PARTNER_API_KEY, 'PARTNER_API_KEY')
  if (!process.stdin.isTTY) {
    // A line is enough: a program that writes the key may keep its end open.
    return requireKey(
      await readLimited(process.stdin, 'standard input', (text) => text.trimStart().includes('\n')),
      'Standard input',
    )
  }
  return requireKey(await promptHidden('Key (not shown): '), 'What was typed')
}

/** The public id of a key of any store, `undefined` for what its form or checksum shows to be none. */
export function parseKeyId(key: string): string | undefined {
  const [prefix = ''] = key.split('_', 1)
  return KEY_PREFIX_PATTERN.test(prefix) && isWellFormedKey(key, prefix)
    ? extractKeyId(key, prefix)
    : undefined
}

async function readLimited(
  stream: AsyncIterable<Buffer | string>,
  name: string,
  isEnough?: (text: string) => boolean,
): Promise<string> {
  let text = ''
  try {
    for await (const chunk of stream) {
      text += chunk.toString()
      if (text.length > maxKeyFileBytes) throw usageError(`What ${name} holds is too long for a key.`)
      if (isEnough?.(text)) break
    }
  } catch (error) {
    if (error instanceof CliError) throw error
    throw usageError(`The key can't be read from ${name}: ${describeFileError(error)}.`)
  }
  return text
}

function requireKey(text: string, source: string): string {
  const key = text.trim()
  if (key === '') {
    throw usageError(
      `${source} holds no key. It is looked for in --key-file FILE, PARTNER_API_KEY, standard input and a prompt.`,
    )
  }
  // What is no visible ASCII can stand in no header, and in no key.
  if (!/^[!-~]+$/.test(key)) throw usageError(`${source} holds something else than one key.`)
  return key
}

/**
 * Where a deployment is.
 *
 * @throws {Failure} exit code 2 unless it is an address and no more than that.
 */
export function parseDeploymentUrl(text: string): URL {
  const base = URL.parse(text)
  if (base?.protocol !== 'https:' && base?.protocol !== 'http:') {
    throw usageError('--url has to be an http:// or https:// address, such as https://api.example.')
  }
  if (base.username || base.password || text.includes('?') || text.includes('#')) {
    throw usageError('--url is only where the deployment is: it has no credentials, query or fragment.')
  }
  return base
}

/** Whether it is this machine: what is sent there does not leave it. */
export function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' ||
    /^127\.[\d.]+$/.test(hostname)
}
