import { printable, width } from './text.ts'

/** Rows under their headings, in columns as wide as what stands in them. Every cell is made printable. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headings.map((heading) => heading.toUpperCase()), ...rows.map((row) => row.map(printable))]
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => width(line[column] ?? ''))))
  return lines.map((line) => aligned(line, widths)).join('')
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
