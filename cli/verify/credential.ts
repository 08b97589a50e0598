import { createReadStream } from 'node:fs'
import { extractKeyId, isWellFormedKey, KEY_PREFIX_PATTERN } from '../../core/keys/format.ts'
import { readVariable } from '../environment.ts'
import { CliError, usageError } from '../errors.ts'
import { requireOwnFile, unreadableFileError } from '../files.ts'
import type { Io } from '../output/print.ts'
import { promptHidden } from '../prompt.ts'

const maxKeyFileBytes = 4_096

/** Reads the key from `keyFile`, `PARTNER_API_KEY`, standard input unless it is a terminal, or a prompt. */
export async function readCredential(keyFile: string | undefined, io: Io): Promise<string> {
  if (keyFile !== undefined) {
    requireOwnFile(keyFile)
    return requireKey(await readLimited(createReadStream(keyFile), keyFile), `The file ${keyFile}`)
  }
  const { env, stdin } = io
  const given = readVariable(env, 'PARTNER_API_KEY')
  if (given !== undefined) return requireKey(given, 'PARTNER_API_KEY')
  if (!stdin.isTTY) return requireKey(await readLimited(stdin, 'standard input'), 'Standard input')
  return requireKey(await promptHidden(io, 'Key (not shown): '), 'The input')
}

/** The public id of a key with any prefix, `undefined` for a malformed key. */
export function parseKeyId(key: string): string | undefined {
  const [prefix = ''] = key.split('_', 1)
  return KEY_PREFIX_PATTERN.test(prefix) && isWellFormedKey(key, prefix)
    ? extractKeyId(key, prefix)
    : undefined
}

async function readLimited(stream: AsyncIterable<Buffer | string>, name: string): Promise<string> {
  let text = ''
  try {
    for await (const chunk of stream) {
      text += chunk.toString()
      if (text.length > maxKeyFileBytes) throw usageError(`The content of ${name} is too long for a key.`)
      // Before the end: the program that writes the key may keep the pipe open.
      if (text.trimStart().includes('\n')) break
    }
  } catch (error) {
    if (error instanceof CliError) throw error
    throw unreadableFileError(name, error)
  }
  return text
}

function requireKey(text: string, source: string): string {
  const key = text.trim()
  if (key === '') {
    throw usageError(
      `${source} is empty. Pass the key in --key-file FILE, PARTNER_API_KEY, standard input or the prompt.`,
    )
  }
  // Only visible ASCII is allowed in a key, and in a header.
  if (!/^[!-~]+$/.test(key)) throw usageError(`${source} must contain exactly one key.`)
  return key
}

/** @throws {CliError} exit code 2 unless the text is an address without credentials, query and fragment. */
export function parseDeploymentUrl(text: string): URL {
  const base = URL.parse(text)
  if (base?.protocol !== 'https:' && base?.protocol !== 'http:') {
    throw usageError('--url must be an http:// or https:// address, such as https://api.example.')
  }
  if (base.username || base.password || text.includes('?') || text.includes('#')) {
    throw usageError('--url must not have credentials, a query or a fragment.')
  }
  base.pathname = base.pathname.replace(/(?<!\/)\/+$/, '')
  return base
}

export function isLoopback({ hostname }: Pick<URL, 'hostname'>): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' ||
    /^127\.[\d.]+$/.test(hostname)
}
