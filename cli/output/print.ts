/** What commands say, on standard output and standard error. */
import process from 'node:process'
import type { Failure } from '../failure.ts'
import type { Invocation } from '../invocation.ts'
import { printable, printableJson, redact, redactAll } from './text.ts'

/** Prints what a command found or did: `data` as the one JSON document, or `text` for people. */
export function printResult(invocation: Invocation, data: unknown, text: string): Promise<void> {
  return invocation.json ? printDocument({ data }) : write(text)
}

/** Prints the one JSON document of a command that has more to say than its `data`. */
export function printDocument(members: { readonly data: unknown } & Record<string, unknown>): Promise<void> {
  return write(document(members))
}

/** Prints a sentence for people. It says nothing that a script would need. */
export function printNote(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
}

/** Prints why a command was not done. */
export function printFailure(failure: Failure, json: boolean): Promise<void> {
  const detail = redact(failure.message)
  if (json) {
    const error = { code: redact(failure.code), detail, ...redactAll(failure.members) }
    return write(document(failure.data === undefined ? { error } : { data: failure.data, error }))
  }
  return writeError([`error: ${detail}`, ...failure.lines.map((line) => `  ${redact(line)}`)])
}

/** Writes to standard output and waits until a slow reader has caught up. */
export function write(text: string): Promise<void> {
  return new Promise((resolve) => {
    if (process.stdout.write(text)) resolve()
    else process.stdout.once('drain', resolve)
  })
}

/** Waits like `write`: a list of errors can be long. */
function writeError(lines: readonly string[]): Promise<void> {
  const text = lines.map((line) => `${line.split('\n').map(printable).join('\n')}\n`).join('')
  return new Promise((resolve) => {
    if (process.stderr.write(text)) resolve()
    else process.stderr.once('drain', resolve)
  })
}

/** A reader that has gone (`| head`) is no error: there is nobody left to tell. */
export function endQuietlyWithoutReader(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0)
      throw error
    })
  }
}

function document(value: unknown): string {
  return `${printableJson(JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0))}\n`
}
