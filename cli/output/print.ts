import type { Readable, Writable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { styleText } from 'node:util'
import type { MaybePromise } from '../../core/lib/promise.ts'
import type { Remedy } from '../../core/lib/remedy.ts'
import { readRows } from '../../core/ports/store.ts'
import { CliError, type Loss } from '../errors.ts'
import {
  createTableFormatter,
  cutToWidth,
  pluralize,
  printable,
  printableJson,
  redact,
  redactAll,
  shellQuote,
  type TableStyle,
} from './text.ts'

/** What a run of the program reads and writes: `process`, except in tests. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(isRaw: boolean): unknown }
  readonly stdout: TerminalWritable
  readonly stderr: TerminalWritable
}

export interface CommandResult {
  /** The value that `--json` prints. */
  readonly data: unknown
  /** The text for people, on standard output. */
  readonly text: string
  /** Further sentences for people. Called after the rest is printed: a new key must not wait for a failing query. */
  readonly notes?: () => MaybePromise<readonly string[]>
  /** What the error says when the result cannot be written. */
  readonly lost?: Loss | undefined
}

type TerminalWritable = Writable & {
  /** The descriptor of a stream of the process. */
  readonly fd?: number
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

export interface List<T> {
  /** @param last The row to continue after. */
  read(last: T | undefined, rows: number): MaybePromise<readonly T[]>
  toJson(row: T): unknown
  readonly headings: readonly string[]
  toCells(row: T): readonly string[]
  /** What the rows are, in the plural. */
  readonly rows: string
  /** The value of `--after` that continues after a row. */
  after(row: T): string
  /** The sentence for an empty list. */
  readonly none: string
}

const terminalRows = 100
/** A table aligns the rows of a chunk. As JSON, fewer are in memory at once. */
const chunkRows = { json: 50, table: 1000 }
const progressIntervalMs = 100

export class Output implements TableStyle {
  /** Whether to print one JSON document instead of text for people. */
  json: boolean
  readonly #io: Io
  #storeOption = ''
  /** The list of the document that is written in parts: an error completes that document. */
  #openList: { readonly ending: string; readonly isIndented: boolean; hasRows: boolean } | undefined

  constructor(io: Io, json: boolean) {
    this.#io = io
    this.json = json
  }

  /** Columns of the terminal on standard output; `Infinity` if it is not a terminal. */
  get width(): number {
    return widthOf(this.#io.stdout)
  }

  styleHeading(text: string): string {
    return this.#style('bold', text, 'stdout')
  }

  /** The only place that decides about colours. @see https://no-color.org */
  #style(format: 'bold' | 'red' | 'yellow', text: string, stream: 'stdout' | 'stderr'): string {
    const { env: { NO_COLOR, FORCE_COLOR, TERM }, [stream]: { isTTY } } = this.#io
    const isColored = FORCE_COLOR ? FORCE_COLOR !== '0' : !NO_COLOR && isTTY && TERM !== 'dumb'
    return isColored ? styleText(format, text, { validateStream: false }) : text
  }

  /** Adds this `--store` to every command that a message suggests, so that it uses the same store. */
  suggestStore(url: string): void {
    this.#storeOption = ` --store ${shellQuote(url)}`
  }

  /** @param members Further members of the JSON document. */
  async print(result: CommandResult, members: object = {}): Promise<void> {
    const { data, text, lost } = result
    await this.write(this.json ? this.#format({ data, ...members }) : text, lost)
    await this.printNotes(result)
  }

  async printNotes({ notes }: CommandResult): Promise<void> {
    for (const note of await notes?.() ?? []) this.note(note)
  }

  /** Prints the first `limit` rows of a list, with bounded memory. */
  async list<T>(
    rows: AsyncIterable<T> | Iterable<T>,
    toJson: (row: T) => unknown,
    toText: (rows: readonly T[]) => string,
    limit: number = Infinity,
  ): Promise<{ readonly last: T | undefined; readonly hasMore: boolean }> {
    let count = 0
    let hasMore = false
    let last: T | undefined
    let chunk: T[] = []
    // A million keys need 115 MB instead of 200: V8 collects garbage earlier.
    if (limit === Infinity) setFlagsFromString('--optimize-for-size')

    const writeChunk = async (report: (text: string) => void): Promise<void> => {
      // On a terminal the rows themselves show the progress.
      if (!this.#io.stdout.isTTY) report(pluralize(count, 'row'))
      if (chunk.length === 0) return
      if (this.json) await this.writeRows(chunk.map(toJson), '')
      else await this.write(toText(chunk))
      chunk = []
    }

    await this.progress(async (report) => {
      for await (const row of rows) {
        hasMore = count === limit
        if (hasMore) break
        count++
        last = row
        chunk.push(row)
        if (chunk.length === chunkRows[this.json ? 'json' : 'table']) await writeChunk(report)
      }
      await writeChunk(report)
    })
    await this.endList()
    return { last, hasMore }
  }

  /** Prints `data` as the one JSON document, with a list as its last member, with bounded memory. */
  async recordWithList<T>(
    data: object,
    name: string,
    rows: AsyncIterable<T> | Iterable<T>,
    toJson: (row: T) => unknown,
  ): Promise<void> {
    await this.write(printableJson(`{"data":{${jsonMembers(data)},${JSON.stringify(name)}:[`))
    this.#openList = { ending: ']}', isIndented: false, hasRows: false }
    for await (const row of rows) await this.writeRows([toJson(row)], '')
    await this.endList()
  }

  /** Prints rows of a list, the first of which begin it. @param text For people. */
  async writeRows(rows: readonly unknown[], text: string, lost?: Loss): Promise<void> {
    if (!this.json) return await this.write(text, lost)
    let start = ''
    if (this.#openList === undefined) {
      const isIndented = this.#io.stdout.isTTY === true
      start = isIndented ? '{\n  "data": [' : '{"data":['
      this.#openList = { ending: isIndented ? '\n  ]' : ']', isIndented, hasRows: false }
    }
    const { isIndented, hasRows } = this.#openList
    this.#openList.hasRows = true
    const format = isIndented ? indentedRow : JSON.stringify
    const texts = rows.map((row) => format(row))
    await this.write((hasRows ? ',' : start) + printableJson(texts.join(',')), lost)
  }

  /** Ends the list that is written in parts. @param members Further members of the document. */
  async endList(members: object = {}): Promise<void> {
    if (!this.json) return
    await this.write(this.#openList ? this.#endOfList(members) : this.#format({ data: [], ...members }))
  }

  #endOfList(members: object): string {
    const { ending } = this.#openList!
    this.#openList = undefined
    const more = jsonMembers(members)
    return `${ending}${more === '' ? '' : `,${printableJson(more)}`}}\n`
  }

  /** How many rows a list has without `--limit`: a page for a terminal, and all of them for programs. */
  get pageRows(): number {
    return this.json || this.width === Infinity ? Infinity : terminalRows
  }

  async page<T>(list: List<T>, limit: number = this.pageRows): Promise<void> {
    const rows = readRows(list.read, Math.min(limit, terminalRows) + 1)
    const { last, hasMore } = await this.table(rows, list.toJson, list.headings, list.toCells, limit)
    if (last === undefined) this.note(list.none)
    else if (hasMore) {
      const advice = `add --after ${list.after(last)} for the next, or --limit N for N at once`
      this.note(`There are more ${list.rows}: ${advice}.`)
    }
  }

  /** Prints rows as `list` does, for people as a table. */
  table<T>(
    rows: AsyncIterable<T>,
    toJson: (row: T) => unknown,
    headings: readonly string[],
    toCells: (row: T) => readonly string[],
    limit?: number,
  ): Promise<{ readonly last: T | undefined; readonly hasMore: boolean }> {
    const addRows = createTableFormatter(headings, this)
    return this.list(rows, toJson, (chunk) => addRows(chunk.map(toCells)), limit)
  }

  #format(value: unknown): string {
    const indentation = this.#io.stdout.isTTY ? 2 : 0
    return `${printableJson(JSON.stringify(value, null, indentation))}\n`
  }

  /** Prints a sentence for people, with nothing that a script would need. */
  note(sentence: string): void {
    const label = (text: string) => this.#style('yellow', text, 'stderr')
    void this.writeError(`${sentence.replace(/^warning:/, label)}\n`)
  }

  /**
   * A command of this program, to be run on the store of this run.
   *
   * @param words Its name, and arguments for a shell.
   */
  command(words: string): string {
    return `partner-api${this.#storeOption} ${words}`
  }

  #withRemedy(message: string, remedy: Remedy | undefined): string {
    if (remedy === undefined) return message
    const { purpose, command, args } = remedy
    return `${message} ${purpose}: ${this.command([command, ...args.map(shellQuote)].join(' '))}`
  }

  /** Prints why a command failed: on standard error, too, when standard output cannot be written. */
  async error({ message, code, members, lines, data, remedy, lost }: CliError): Promise<void> {
    let detail = this.#withRemedy(redact(message), remedy)
    if (this.json && code !== unwritable) {
      const error: Record<string, unknown> = { code: redact(code), detail }
      if (remedy !== undefined) error['remedy'] = { command: remedy.command, args: remedy.args }
      Object.assign(error, redactAll(members))
      const document = this.#openList
        ? this.#endOfList({ error })
        : this.#format(data === undefined ? { error } : { data, error })
      if (await this.write(document).then(() => true, () => false)) return
      if (lost !== undefined) detail += ` ${this.#withRemedy(lost.detail, lost.remedy)}`
    }
    const text = [`error: ${detail}`, ...lines.map((line) => `  ${redact(line)}`)]
      .map((line) => `${line.split('\n').map(printable).join('\n')}\n`).join('')
    await this.writeError(text.replace(/^error:/, (label) => this.#style('red', label, 'stderr')))
  }

  /** Writes to standard error. Its own errors can be reported nowhere. */
  writeError(text: string): Promise<void> {
    return write(this.#io.stderr, text).catch(() => {})
  }

  /** Writes to standard output, at the pace of its reader. @throws {CliError} `output_not_written` */
  write(text: string, lost?: Loss): Promise<void> {
    return write(this.#io.stdout, text).catch((error) => {
      throw unwritableError(error, lost)
    })
  }

  /**
   * Shows the progress of a long command on one line of the terminal, and nothing when standard
   * error is not a terminal.
   */
  async progress<T>(work: (report: (text: string) => void) => Promise<T>): Promise<T> {
    const { stderr } = this.#io
    if (!stderr.isTTY) return await work(() => {})
    let reportedAt = -Infinity
    try {
      return await work((text) => {
        const now = performance.now()
        if (now - reportedAt < progressIntervalMs) return
        reportedAt = now
        stderr.write(`\r\u001b[K${cutToWidth(text, widthOf(stderr) - 1)}`)
      })
    } finally {
      if (reportedAt !== -Infinity) stderr.write('\r\u001b[K')
    }
  }
}

/** A terminal without a known size has 0 columns. */
function widthOf({ isTTY, columns }: TerminalWritable): number {
  return isTTY && columns ? columns : Infinity
}

const unwritable = 'output_not_written'
const writeErrors: Readonly<Record<string, string>> = {
  EPIPE: 'its reader has gone',
  ENOSPC: 'no space is left',
}

/** @param more What else the error says. */
export function unwritableError(
  { code = '', message }: NodeJS.ErrnoException,
  more?: Loss,
): CliError {
  const sentence = `Standard output can't be written: ${writeErrors[code] ?? message}.`
  if (more === undefined) return new CliError(1, unwritable, sentence)
  return new CliError(1, unwritable, `${sentence} ${more.detail}`, { remedy: more.remedy })
}

function write(stream: Writable, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // Deno calls nothing back after the first error.
    if (!stream.writable) throw Object.assign(new Error('it is closed'), { code: 'EPIPE' })
    stream.write(text, (error) => error ? reject(error) : resolve())
  })
}

/** A row of an indented list, on lines of its own. */
function indentedRow(row: unknown): string {
  return `\n${JSON.stringify(row, null, 2).replace(/^/gm, '    ')}`
}

/** The members of a JSON object, without its braces. */
function jsonMembers(object: object): string {
  return JSON.stringify(object).slice(1, -1)
}
