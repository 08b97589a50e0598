/** What the commands that list rows have in common: a page for a terminal, all rows for programs. */
import type { CliCommand } from './command.ts'
import { integerBetween } from './options.ts'
import type { Output } from './output/print.ts'

export interface PageOptions<Position> {
  readonly limit?: number
  /** The last row of the page before. */
  readonly after?: Position
}

/** A list, read from the store in pages. */
export interface List<T> {
  /** @param pageRows How many rows to read from the store at once. */
  read(pageRows: number): AsyncIterable<T>
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

/** Adds `--limit` and `--after`. @param position What `--after` takes. */
export function withPages(
  command: CliCommand,
  position: string,
  parse: (text: string) => unknown = (text) => text,
): CliCommand {
  return command
    .option(
      '--limit <n>',
      `Number of rows, 1 to 100000 (default: ${terminalRows} on a terminal, else all)`,
      integerBetween(1, 100_000),
    )
    .option(`--after <${position}>`, 'Continue after this row, the last one of the page before', parse)
}

/** How many rows a list prints: on a terminal a page, and for programs all of them, unless `--limit` says how many. */
export function rowsToPrint(output: Output, limit: number | undefined): number {
  return limit ?? (output.json || output.width === Infinity ? Infinity : terminalRows)
}

/** Prints a page of a list, and how to see the next one. */
export async function printPage<T>(output: Output, limit: number | undefined, list: List<T>): Promise<void> {
  const rows = rowsToPrint(output, limit)
  const read = list.read(Math.min(rows, terminalRows) + 1)
  const { last, hasMore } = await output.table(read, list.toJson, list.headings, list.toCells, rows)
  if (last === undefined) output.note(list.none)
  else if (hasMore) {
    const advice = `add --after ${list.after(last)} for the next, or --limit N for N at once`
    output.note(`There are more ${list.rows}: ${advice}.`)
  }
}
