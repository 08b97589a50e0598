import { createReadStream } from 'node:fs'
import process from 'node:process'
import { Failure } from '../failure.ts'

/** No record is nearly as long, and what is no text has no line ends. */
const maxLineMebibytes = 1

/**
 * The lines of a file, or of standard input for `-`, without their ends. Only a line feed ends a line:
 * `node:readline` would also break at U+2028, which may stand in a JSON string.
 *
 * @throws {Failure} when the file can't be read, is not UTF-8 or has a line of more than 1 MiB.
 */
export async function* readLines(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const name = file === '-' ? 'standard input' : file
  let count = 0
  let rest: Uint8Array[] = []
  let restLength = 0

  function refuse(reason: string): Failure {
    return new Failure(1, 'invalid_content', `Line ${count} of ${name} ${reason}.`, {
      members: { lines: [{ line: count, field: null, reason }] },
    })
  }

  function keep(part: Uint8Array): void {
    rest.push(part)
    restLength += part.length
    if (restLength <= maxLineMebibytes * 1_048_576) return
    count++
    throw refuse(`is longer than ${maxLineMebibytes} MiB`)
  }

  function decode(end: Uint8Array): string {
    keep(end)
    count++
    const bytes = rest.length === 1 ? end : Buffer.concat(rest)
    rest = []
    restLength = 0
    try {
      return decoder.decode(bytes)
    } catch {
      throw refuse('is not UTF-8')
    }
  }

  try {
    for await (const chunk of open(file)) {
      let start = 0
      for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
        yield decode(chunk.subarray(start, end))
        start = end + 1
      }
      if (start < chunk.length) keep(chunk.subarray(start))
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure(1, 'unreadable_file', `${name} can't be read: ${reasonOf(error)}.`)
  }
  if (rest.length > 0) yield decode(new Uint8Array())
}

/**
 * The lines of a file of content.
 *
 * @throws {Failure} `wrong_format` when the first line shows that the file is no JSON Lines, or what `readLines` throws.
 */
export async function* readContentLines(file: string): AsyncGenerator<string> {
  let isFirst = true
  for await (const line of readLines(file)) {
    const start = isFirst ? line.slice(0, 1_000).trim() : ''
    const format = formats.find(([pattern]) => pattern.test(start))
    if (format !== undefined) {
      const name = file === '-' ? 'Standard input' : file
      throw new Failure(
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
const formats: readonly (readonly [pattern: RegExp, name: string, advice: string])[] = [
  [/^\[/, 'a JSON array', " To convert it: jq -c '.[]' FILE"],
  [/^\{$/, 'JSON with line breaks in its objects', ' To convert it: jq -c . FILE'],
  [/^"?[\w ]+"?(?:[,;\t]"?[\w ]+"?)+$/, 'CSV', ''],
]

function open(file: string): AsyncIterable<Buffer> {
  return file === '-' ? process.stdin : createReadStream(file, { highWaterMark: 1 << 18 })
}

/** Why the system would not read a file, in words. */
export function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EACCES' || code === 'EPERM') return 'it may not be read'
  if (code === 'EISDIR') return 'it is a folder'
  return code ?? String(error)
}
