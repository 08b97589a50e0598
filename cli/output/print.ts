/** Prints on standard output and standard error. */
import process from 'node:process'
import type { CliError } from '../errors.ts'
import { printable, printableJson, redact, redactAll } from './text.ts'

interface Format {
  readonly json: boolean
}

/** Prints `data` as the one JSON document, or `text` for people. */
export function printResult({ json }: Format, data: unknown, text: string): Promise<void> {
  return json ? printDocument({ data }) : writeOutput(text)
}

/** Prints the one JSON document of a command. */
export function printDocument(members: { readonly data: unknown } & Record<string, unknown>): Promise<void> {
  return writeOutput(formatDocument(members))
}

/**
 * Prints the first `limit` rows of a list of any length, with bounded memory.
 *
 * @param toJson A row for `--json`.
 * @param toText Rows for people; called once per chunk.
 * @returns The last printed row, and whether the list continues beyond `limit`.
 */
export async function printList<T>(
  { json }: Format,
  rows: AsyncIterable<T>,
  toJson: (row: T) => unknown,
  toText: (rows: readonly T[]) => string,
  limit: number = Infinity,
): Promise<{ readonly last: T | undefined; readonly hasMore: boolean }> {
  let count = 0
  let hasMore = false
  let last: T | undefined
  let chunk: T[] = []

  async function writeChunk(): Promise<void> {
    if (chunk.length > 0) await writeOutput(json ? listPart(chunk.map(toJson)) : toText(chunk))
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

const chunkRows = 1000

/** Whether part of a list has been written, so that an error has to complete the document. */
let isListOpen = false

/** The next items of the list that is the `data` of the document. */
function listPart(items: readonly unknown[]): string {
  const text = formatDocument({ data: items })
  const start = isListOpen ? ',' : text.slice(0, text.indexOf('[') + 1)
  isListOpen = true
  return start + text.slice(text.indexOf('[') + 1, text.lastIndexOf(']'))
}

/** @param members JSON text of further members of the document. */
function listEnd(members: string): string {
  isListOpen = false
  return `]${members}}\n`
}

function formatDocument(value: unknown): string {
  return `${printableJson(JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0))}\n`
}

/** Prints a sentence for people, with nothing that a script would need. */
export function printNote(sentence: string): void {
  process.stderr.write(`${withStoreOption(sentence)}\n`)
}

let storeOption = ''

/** Adds this `--store` to every command that a message suggests, so that it uses the same store. */
export function setStoreOption(url: string): void {
  storeOption = ` --store ${/^[\w@%+=:,./-]+$/.test(url) ? url : `'${url.replaceAll("'", "'\\''")}'`}`
}

function withStoreOption(sentence: string): string {
  return sentence.replace(/: partner-api (?=[a-z])/g, () => `: partner-api${storeOption} `)
}

/** Prints why a command failed. */
export function printError(cliError: CliError, json: boolean): Promise<void> {
  const detail = withStoreOption(redact(cliError.message))
  if (json) {
    const error = { code: redact(cliError.code), detail, ...redactAll(cliError.members) }
    if (isListOpen) return writeOutput(listEnd(`,"error":${printableJson(JSON.stringify(error))}`))
    return writeOutput(
      formatDocument(cliError.data === undefined ? { error } : { data: cliError.data, error }),
    )
  }
  const lines = [`error: ${detail}`, ...cliError.lines.map((line) => `  ${redact(line)}`)]
  const text = lines.map((line) => `${line.split('\n').map(printable).join('\n')}\n`).join('')
  return new Promise((resolve) => {
    if (process.stderr.write(text)) resolve()
    else process.stderr.once('drain', resolve)
  })
}

/** Writes to standard output, at the pace of its reader. */
export function writeOutput(text: string): Promise<void> {
  return new Promise((resolve) => {
    // Waiting for the callback gives the event loop a turn, in which it reports EPIPE.
    process.stdout.write(text, () => resolve())
  })
}

/** Exits silently when the reader has gone (`| head`). */
export function exitOnClosedPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0)
      throw error
    })
  }
}

const progressIntervalMs = 100

/** Shows the progress of a long command on one line of the terminal, and nothing when standard error is no terminal. */
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
