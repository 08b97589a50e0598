import { createReadStream } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import process from 'node:process'
import { CliError } from './errors.ts'

/** No record is nearly as long, and what is no text has no line ends. */
const maxLineMebibytes = 1

/**
 * The lines of a file, or of standard input for `-`, without their ends. Only a line feed ends a line:
 * `node:readline` would also break at U+2028, which may stand in a JSON string.
 *
 * @throws {CliError} when the file can't be read, is not UTF-8 or has a line of more than 1 MiB.
 */
export async function* readLines(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const name = file === '-' ? 'standard input' : file
  let count = 0
  let rest: Uint8Array[] = []
  let restLength = 0

  function lineError(reason: string): CliError {
    return new CliError(1, 'invalid_content', `Line ${count} of ${name} ${reason}.`, {
      members: { lines: [{ line: count, field: null, reason }] },
    })
  }

  function append(part: Uint8Array): void {
    rest.push(part)
    restLength += part.length
    if (restLength <= maxLineMebibytes * 1_048_576) return
    count++
    throw lineError(`is longer than ${maxLineMebibytes} MiB`)
  }

  function endLine(end: Uint8Array): string {
    append(end)
    count++
    const bytes = rest.length === 1 ? end : Buffer.concat(rest)
    rest = []
    restLength = 0
    try {
      return decoder.decode(bytes)
    } catch {
      throw lineError('is not UTF-8')
    }
  }

  try {
    for await (const chunk of openInput(file)) {
      let start = 0
      for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
        yield endLine(chunk.subarray(start, end))
        start = end + 1
      }
      if (start < chunk.length) append(chunk.subarray(start))
    }
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError(1, 'unreadable_file', `${name} can't be read: ${describeFileError(error)}.`)
  }
  if (rest.length > 0) yield endLine(new Uint8Array())
}

/**
 * The lines of a file of content.
 *
 * @throws {CliError} `wrong_format` when the first line shows that the file is no JSON Lines, or what `readLines` throws.
 */
export async function* readContentLines(file: string): AsyncGenerator<string> {
  let isFirst = true
  for await (const line of readLines(file)) {
    const start = isFirst ? line.slice(0, 1_000).trim() : ''
    const format = otherFormats.find(([pattern]) => pattern.test(start))
    if (format !== undefined) {
      const name = file === '-' ? 'Standard input' : file
      throw new CliError(
        1,
        'wrong_format',
        `${name} is ${format[1]}, but import takes JSON Lines, one object a line.${format[2]}`,
      )
    }
    if (start !== '') isFirst = false
    yield line
  }
}

/** What else people have content in, by its first line. */
const otherFormats: readonly (readonly [pattern: RegExp, name: string, advice: string])[] = [
  [/^\[/, 'a JSON array', " To convert it: jq -c '.[]' FILE"],
  [/^\{$/, 'JSON with line breaks in its objects', ' To convert it: jq -c . FILE'],
  [/^"?[\w ]+"?(?:[,;\t]"?[\w ]+"?)+$/, 'CSV', ''],
]

function openInput(file: string): AsyncIterable<Buffer> {
  return file === '-' ? process.stdin : createReadStream(file, { highWaterMark: 1 << 18 })
}

/** Why the system would not read a file, in words. */
export function describeFileError(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EACCES' || code === 'EPERM') return 'it may not be read'
  if (code === 'EISDIR') return 'it is a folder'
  return code ?? String(error)
}

/** Writes a new key to its file, if it is to have one. @throws {CliError} `key_not_written` */
export type SaveKey = (key: string, id: string) => Promise<void>

/**
 * Runs a command that makes a key. The file for the key is made first, so that no key is lost for want of one; only its
 * owner may read it, and it goes again when the command fails.
 *
 * @throws {CliError} `file_not_created` when the file exists, or cannot be made.
 */
export async function withKeyFile(
  path: string | undefined,
  command: (save: SaveKey) => Promise<void>,
): Promise<void> {
  if (path === undefined) return await command(async () => {})
  // `wx` follows no link and replaces nothing.
  const file = await open(path, 'wx', 0o600).catch((error) => {
    const reason = error.code === 'EEXIST'
      ? 'it exists already, and is never overwritten'
      : describeFileError(error)
    throw new CliError(1, 'file_not_created', `Nothing was changed: ${path} can't be created: ${reason}.`)
  })
  let isSaved = false
  try {
    await command(async (key, id) => {
      await file.writeFile(`${key}\n`).then(() => file.sync()).catch((error) => {
        const sentence = `Key ${id} was issued, but it can't be written to ${path} and is lost`
        const advice = `To revoke it: partner-api keys revoke ${id}`
        throw new CliError(1, 'key_not_written', `${sentence}: ${describeFileError(error)}. ${advice}`)
      })
      isSaved = true
    })
  } finally {
    await file.close()
    if (!isSaved) await rm(path, { force: true })
  }
}
