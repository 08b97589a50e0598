/** The pages of the documentation, their code blocks and their tables. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url))

/** The pages that readers of the package get. */
export const PAGES: readonly string[] = ['README.md', ...globSync('docs/*.md', { cwd: ROOT }).sort()]

export function readPage(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** A fenced code block. */
export interface Block {
  /** `PAGE:LINE`. */
  readonly place: string
  readonly language: string
  /** The file whose content it shows, named in a comment on the line before the fence. */
  readonly file: string | undefined
  readonly code: string
}

/** The code blocks of a page, in order. */
export function blocksOf(page: string): readonly Block[] {
  const text = readPage(page)
  const fences = text.matchAll(/^(?:<!-- (examples\/\S+) -->\n)?```(\w*)\n(.*?)^```$/gms)
  return Array.from(fences, ({ 1: file, 2: language = '', 3: code = '', index }) => ({
    place: `${page}:${text.slice(0, index).split('\n').length}`,
    language,
    file,
    code,
  }))
}

/** The rows of the table between `<!-- NAME -->` and `<!-- /NAME -->` on a page, without its head. */
export function tableRows(page: string, name: string): readonly string[] {
  const [, inside = ''] = new RegExp(`<!-- ${name} -->\\n(.*?)<!-- /${name} -->`, 's').exec(readPage(page)) ??
    []
  return inside.trim().split('\n').slice(2)
}

/** The cells of a row. A `|` in a cell is written `\|`. */
export function cellsOf(row: string): readonly string[] {
  return row.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim().replaceAll('\\|', '|'))
}

/** A page without its code blocks. */
export function proseOf(page: string): string {
  return readPage(page).replace(/^```.*?^```$/gms, '')
}

/** Every `name` in backticks. */
export function quotedIn(text: string): readonly string[] {
  return Array.from(text.matchAll(/`([^`]+)`/g), ([, name = '']) => name)
}
