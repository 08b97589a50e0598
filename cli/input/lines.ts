import { createReadStream } from 'node:fs'
import process from 'node:process'
import { Failure } from '../failure.ts'

/**
 * The lines of a file, or of standard input for `-`, without their ends. Only a line feed ends a line:
 * `node:readline` would also break at U+2028, which may stand in a JSON string.
 *
 * @throws {Failure} when the file can't be read or is not UTF-8.
 */
export async function* readLines(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const name = file === '-' ? 'standard input' : file
  let count = 0
  let rest: Uint8Array[] = []

  function decode(end: Uint8Array): string {
    count++
    const bytes = rest.length === 0 ? end : Buffer.concat([...rest, end])
    rest = []
    try {
      return decoder.decode(bytes)
    } catch {
      throw new Failure(1, 'invalid_content', `Line ${count} of ${name} is not UTF-8.`, {
        members: { lines: [{ line: count, field: null, reason: 'is not UTF-8' }] },
      })
    }
  }

  try {
    for await (const chunk of open(file)) {
      let start = 0
      for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
        yield decode(chunk.subarray(start, end))
        start = end + 1
      }
      if (start < chunk.length) rest.push(chunk.subarray(start))
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure(1, 'unreadable_file', `${name} can't be read: ${reasonOf(error)}.`)
  }
  if (rest.length > 0) yield decode(new Uint8Array())
}

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
