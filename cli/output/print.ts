/** What commands say, on standard output and standard error. */
import process from 'node:process'
import type { CliError } from '../errors.ts'
import type { Invocation } from '../invocation.ts'
import { printable, printableJson, redact, redactAll } from './text.ts'

/** Prints what a command found or did: `data` as the one JSON document, or `text` for people. */
export function printResult(invocation: Invocation, data: unknown, text: string): Promise<void> {
  return invocation.json ? printDocument({ data }) : writeOutput(text)
}

/** Prints the one JSON document of a command that has more to say than its `data`. */
export function printDocument(members: { readonly data: unknown } & Record<string, unknown>): Promise<void> {
  return writeOutput(formatDocument(members))
}

/** How the rows of a list are printed. */
export interface ListFormat<T> {
  /** A row under `--json`. */
  toJson(row: T): unknown
  /** Rows for people: those that follow the ones it was called with before. */
  text(rows: readonly T[]): string
}

/**
 * Prints the first `limit` rows of a list of any length, and holds no more than one chunk of it.
 *
 * @returns The last row that was printed, and whether there are rows beyond the limit.
 */
export async function printList<T>(
  { json }: Invocation,
  rows: AsyncIterable<T>,
  { toJson: wire, text }: ListFormat<T>,
  limit: number = Infinity,
): Promise<{ readonly last: T | undefined; readonly hasMore: boolean }> {
  let count = 0
  let hasMore = false
  let last: T | undefined
  let chunk: T[] = []

  async function writeChunk(): Promise<void> {
    if (chunk.length > 0) await writeOutput(json ? listPart(chunk.map(wire)) : text(chunk))
    chunk = []
  }

  for await (const row of rows) {
    hasMore = count === limit
    if (hasMore) break
    count++
    last = row
    chunk.push(row)
    if (chunk.length === chunkRows) await writeChunk()
  }
  await writeChunk()
  if (json) await writeOutput(count === 0 ? formatDocument({ data: [] }) : listEnd(''))
  return { last, hasMore }
}

/** Prints a sentence for people. It says nothing that a script would need. */
export function printNote(sentence: string): void {
  process.stderr.write(`${withStoreOption(sentence)}\n`)
}

let storeOption = ''

/** Has every command that a message names repeat this `--store`: without it, the command would use another store. */
export function setStoreOption(url: string): void {
  storeOption = ` --store ${/^[\w@%+=:,./-]+$/.test(url) ? url : `'${url.replaceAll("'", "'\\''")}'`}`
}

function withStoreOption(sentence: string): string {
  return sentence.replace(/: partner-api (?=[a-z])/g, () => `: partner-api${storeOption} `)
}

/** Prints why a command was not done. */
export function printError(cliError: CliError, json: boolean): Promise<void> {
  const detail = withStoreOption(redact(cliError.message))
  if (json) {
    const error = { code: redact(cliError.code), detail, ...redactAll(cliError.members) }
    if (isListOpen) return writeOutput(listEnd(`,"error":${printableJson(JSON.stringify(error))}`))
    return writeOutput(
      formatDocument(cliError.data === undefined ? { error } : { data: cliError.data, error }),
    )
  }
  return writeErrorLines([`error: ${detail}`, ...cliError.lines.map((line) => `  ${redact(line)}`)])
}

/** Writes to standard output and waits until a slow reader has caught up. */
export function writeOutput(text: string): Promise<void> {
  return new Promise((resolve) => {
    // Waiting for the callback gives the event loop a turn, in which it reports EPIPE.
    process.stdout.write(text, () => resolve())
  })
}

/** Waits like `write`: a list of errors can be long. */
function writeErrorLines(lines: readonly string[]): Promise<void> {
  const text = lines.map((line) => `${line.split('\n').map(printable).join('\n')}\n`).join('')
  return new Promise((resolve) => {
    if (process.stderr.write(text)) resolve()
    else process.stderr.once('drain', resolve)
  })
}

/** A reader that has gone (`| head`) is no error: there is nobody left to tell. */
export function exitOnClosedPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0)
      throw error
    })
  }
}

const chunkRows = 1000

/** Whether part of a list has been written: an error message must then complete the document. */
let isListOpen = false

/** The next items of the list that is the `data` of the document. */
function listPart(items: readonly unknown[]): string {
  const text = formatDocument({ data: items })
  const start = isListOpen ? ',' : text.slice(0, text.indexOf('[') + 1)
  isListOpen = true
  return start + text.slice(text.indexOf('[') + 1, text.lastIndexOf(']'))
}

/** @param members The text of further members of the document. */
function listEnd(members: string): string {
  isListOpen = false
  return `]${members}}\n`
}

function formatDocument(value: unknown): string {
  return `${printableJson(JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0))}\n`
}

const progressIntervalMs = 100

/**
 * Runs a long command that reports how far it is: on a line of the terminal, ten times a second at most. Nothing is shown
 * unless standard error is a terminal: in a file or a log, progress is noise.
 */
export async function withProgress<T>(work: (report: (text: string) => void) => Promise<T>): Promise<T> {
  if (!process.stderr.isTTY) return await work(() => {})
  let reportedAt = -Infinity
  try {
    return await work((text) => {
      const now = performance.now()
      if (now - reportedAt < progressIntervalMs) return
      reportedAt = now
      process.stderr.write(`\r\u001b[K${text}`)
    })
  } finally {
    if (reportedAt !== -Infinity) process.stderr.write('\r\u001b[K')
  }
}
