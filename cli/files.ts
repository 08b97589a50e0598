import { createReadStream, statSync } from 'node:fs'
import { constants } from 'node:os'
import process from 'node:process'
import type { LineErrors } from '../core/content/line-reader.ts'
import type { Remedy } from '../core/lib/remedy.ts'
import type { ContentKind } from '../core/ports/content.ts'
import { CliError, usageError } from './errors.ts'
import type { Io, Output } from './output/print.ts'
import { pluralize } from './output/text.ts'

/** Far more than any record; a binary file may have no line ends at all. */
const maxLineMebibytes = 1
const maxLineBytes = maxLineMebibytes * 1_048_576

/** Reads lines of UTF-8. `node:readline` also splits at U+2028, which JSON strings may contain. */
export async function* readLines(file: string, stdin: Io['stdin']): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const name = file === '-' ? 'standard input' : file
  const input: AsyncIterable<Buffer> = file === '-'
    ? stdin
    : createReadStream(file, { highWaterMark: 1 << 18 })
  let count = 0
  let rest: Uint8Array[] = []
  let restLength = 0

  function decode(line: Uint8Array): string {
    count++
    const isTooLong = line.length > maxLineBytes
    try {
      if (!isTooLong) return decoder.decode(line)
    } catch {
      // Reported below.
    }
    const reason = isTooLong ? `is longer than ${maxLineMebibytes} MiB` : 'is not UTF-8'
    const members = { lines: [{ line: count, field: null, reason }] }
    throw new CliError(1, 'invalid_content', `Line ${count} of ${name} ${reason}.`, { members })
  }

  try {
    for await (const chunk of input) {
      rest.push(chunk)
      restLength += chunk.length
      // Joined once per line: chunks may be much shorter than a line.
      if (!chunk.includes(10) && restLength <= maxLineBytes) continue
      const bytes = Buffer.concat(rest)
      let start = 0
      for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
        yield decode(bytes.subarray(start, end))
        start = end + 1
      }
      rest = [bytes.subarray(start)]
      restLength = bytes.length - start
      if (restLength > maxLineBytes) decode(rest[0]!)
    }
  } catch (error) {
    if (error instanceof CliError) throw error
    throw unreadableFileError(name, error)
  }
  if (restLength > 0) yield decode(Buffer.concat(rest))
}

/** What lines to import are about. */
export type LineKind = ContentKind | 'keys'

/** A line of each kind, with the fields that it must have. */
export const EXAMPLE_LINES: Readonly<Record<LineKind, string>> = {
  profiles:
    '{"slug":"old-mill","name":"Old Mill","headline":"…","country":"DE","industry":"mills","published_at":null}',
  banners: '{"partner":"acme","title":"…"}',
  industries: '{"slug":"mills","name":"Mills"}',
  plans: '{"slug":"basic","name":"Basic","description":"…","price":{"amount_minor":4900,"currency":"EUR"},' +
    '"interval":"month","features":[]}',
  keys: '{"partner":"acme","name":"Shop","digest":"…"}',
}

/**
 * Reads lines to import as `readLines` does, with a warning when all are blank.
 *
 * @throws {CliError} `wrong_format` when the first line is not one of JSON Lines.
 */
export async function* readContentLines(
  file: string,
  kind: LineKind,
  { io, output }: { readonly io: Io; readonly output: Output },
): AsyncGenerator<string> {
  let isFirst = true
  for await (const line of readLines(file, io.stdin)) {
    const start = isFirst ? line.slice(0, 1_000).trim() : ''
    const format = otherFormats.find(([pattern]) => pattern.test(start))
    if (format !== undefined) {
      const name = file === '-' ? 'Standard input' : file
      const [, found, advice] = format
      const expected = `one object per line, such as ${EXAMPLE_LINES[kind]}.${advice}`
      throw new CliError(1, 'wrong_format', `${name} ${found}, but import reads JSON Lines: ${expected}`)
    }
    if (start !== '') isFirst = false
    yield line
  }
  if (isFirst) output.note(`warning: ${file === '-' ? 'Standard input' : file} is empty.`)
}

/** Shows the progress of an import. An interrupt ends the program as usual, but says what it leaves behind. */
export async function importing<T>(
  output: Output,
  work: (report: (text: string) => void) => Promise<T>,
): Promise<T> {
  const interrupt = () => {
    output.note('Interrupted: unless the import was being committed, nothing was imported. Run it again.')
    endBySignal('SIGINT')
  }
  process.once('SIGINT', interrupt)
  try {
    return await output.progress(work)
  } finally {
    process.off('SIGINT', interrupt)
  }
}

const otherFormats: readonly (readonly [pattern: RegExp, found: string, advice: string])[] = [
  [/^\[/, 'is a JSON array', " To convert it: jq -c '.[]' FILE"],
  [/^\{$/, 'is JSON with line breaks in its objects', ' To convert it: jq -c . FILE'],
  // Headings, or values where there are no headings.
  [/^[^{}[\]]*[,;\t][^{}[\]]*$/, 'looks like CSV', ''],
]

/** Groups of equal errors, and lines of a group, that are printed for people. */
const maxGroups = 50
const maxLines = 3

/** @param more What helps: a command, or a sentence. */
export function invalidLinesError(
  kind: LineKind,
  { errors, errorCount }: LineErrors,
  { remedy, advice }: { readonly remedy?: Remedy | undefined; readonly advice?: string | undefined } = {},
): CliError {
  const groups = Map.groupBy(errors, ({ field, reason }) => field === null ? reason : `${field} ${reason}`)
  const shown = [...groups].slice(0, maxGroups)
  const remaining = errorCount - shown.reduce((sum, [, lines]) => sum + lines.length, 0)
  const detail = `Nothing was imported: ${pluralize(errorCount, 'error')} in the lines of ${kind}.`
  const texts = shown.map(([error, lines]) => {
    const numbers = formatLineNumbers(lines.map(({ line }) => line))
    if (lines[0]!.field !== null) return `${numbers}: ${error}`
    return lines.length === 1 ? `${numbers} ${error}` : `${numbers}: each ${error}`
  })
  if (remaining > 0) texts.push(`… and ${pluralize(remaining, 'more', 'more')}`)
  if (advice !== undefined) texts.push(advice)
  if (errors.some(({ field, reason }) => field === null && reason.includes('JSON'))) {
    texts.push(`A line of ${kind}: ${EXAMPLE_LINES[kind]}`)
  }
  return new CliError(1, 'invalid_content', detail, {
    remedy,
    members: { lines: errors, line_error_count: errorCount },
    lines: texts,
  })
}

function formatLineNumbers(lines: readonly number[]): string {
  if (lines.length === 1) return `line ${lines[0]}`
  const more = lines.length > maxLines ? ', …' : ''
  return `${pluralize(lines.length, 'line')} (${lines.slice(0, maxLines).join(', ')}${more})`
}

/** @throws {CliError} exit code 2 for a file that other accounts can write: they could change what it says. */
export function requireOwnFile(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  // Windows has no file modes.
  if (process.platform === 'win32' || !stats?.isFile() || (stats.mode & 0o022) === 0) return
  throw usageError(`Other accounts can write ${path}, so it is not used. To fix it: chmod go-w ${path}`)
}

/** The error for a file that an option or an argument names, and that cannot be read. */
export function unreadableFileError(name: string, error: unknown): CliError {
  return new CliError(2, 'unreadable_file', `${name} can't be read: ${describeFileError(error)}.`)
}

/** The reason why a file cannot be used, without its name. */
export function describeFileError(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied'
  if (code === 'EISDIR') return 'it is a folder'
  return code ?? String(error)
}

export const interrupts = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Ends the program by a signal. As process 1, which a signal does not end, it exits with the code that shells give. */
export function endBySignal(signal: NodeJS.Signals): void {
  if (process.pid === 1) process.exit(128 + constants.signals[signal])
  process.kill(process.pid, signal)
}
