import { printable, width } from './text.ts'

type Rows = readonly (readonly string[])[]

/** Rows under their headings, in columns as wide as what stands in them. Every cell is made printable. */
export function table(headings: readonly string[], rows: Rows): string {
  return createTable(headings)(rows)
}

/** Formats a table in chunks, the first one with the headings. A column is as wide as its widest cell so far. */
export function createTable(headings: readonly string[]): (rows: Rows) => string {
  const widths = headings.map(() => 0)
  let heading: Rows = [headings.map((name) => name.toUpperCase())]
  return (rows) => {
    const lines = [...heading, ...rows.map((row) => row.map(printable))]
    heading = []
    for (const line of lines) {
      for (const [column, cell] of line.entries()) widths[column] = Math.max(widths[column]!, width(cell))
    }
    return lines.map((line) => aligned(line, widths)).join('')
  }
}

/** Names and values of one thing, a line each. Every value is made printable. */
export function details(members: readonly (readonly [name: string, value: string])[]): string {
  const widths = [Math.max(...members.map(([name]) => width(name) + 1))]
  return members.map(([name, value]) => aligned([`${name}:`, printable(value)], widths)).join('')
}

function aligned(cells: readonly string[], widths: readonly number[]): string {
  return `${
    cells
      .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - width(cell))))
      .join('  ')
      .trimEnd()
  }\n`
}
