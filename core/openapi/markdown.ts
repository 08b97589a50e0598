/** The reference as Markdown, for programs and agents. */
import type { StaticDocument } from '../http/message.ts'
import { PROBLEM_ACTIONS } from '../http/problem-actions.ts'
import { otherTurn } from './document.ts'
import {
  type Block,
  type CodeBlock,
  type FieldRow,
  type Inline,
  type OperationLine,
  type Paragraphs,
  type Prose,
  type ReferenceContent,
  type Responses,
  type Section,
  sectionsOf,
  type Table,
} from './reference-model.ts'
import { LANGUAGES } from './samples.ts'

/**
 * Other requests get the event loop between its sections.
 *
 * @param endpoint The id of the only section to write: its samples are in all languages, those of the whole in Shell.
 */
export async function createMarkdown(
  reference: ReferenceContent,
  endpoint: string | undefined,
): Promise<StaticDocument> {
  const root = endpoint === undefined ? '' : '../'
  const parts = endpoint === undefined
    ? await writeAll(reference)
    : sectionsOf(reference).filter(({ id }) => id === endpoint).map((one) => writeSection(one, true))
  const { exampleAddress } = reference
  const address = exampleAddress === undefined ? '' : `Replace \`${exampleAddress}\` by this address. `
  parts.push(`${address}[The whole reference](${root}docs.md) · [OpenAPI](${root}openapi.json)`)
  const fragment = endpoint === undefined ? '' : `#${endpoint}`
  return {
    text: `${parts.join('\n\n')}\n`,
    headers: ['Link', `<${root}docs${fragment}>; rel="alternate"; type="text/html"`],
    variesBy: 'Accept',
  }
}

async function writeAll({ title, lead, cards, facts, parts }: ReferenceContent): Promise<string[]> {
  const written = [
    `# ${title}`,
    lead,
    cards.map(({ title, text }) => `- ${title}: ${text}`).join('\n'),
    facts.map(({ name, value }) => `- ${name}: ${writeLine(value)}`).join('\n'),
  ]
  for (const { sections, group } of parts) {
    if (group?.isHeading) written.push(`## ${group.label}`)
    for (const section of [...sections, ...group?.sections ?? []]) {
      await otherTurn()
      written.push(writeSection(section, false))
    }
  }
  return written
}

/** @param inAllLanguages Whether samples are in all languages, or in Shell alone. */
function writeSection({ level, title, blocks }: Section, inAllLanguages: boolean): string {
  const heading = `${'#'.repeat(level)} ${writeProse(title)}`
  return [heading, ...blocks.map((block) => writeBlock(block, inAllLanguages))].join('\n\n')
}

function writeBlock(block: Block, inAllLanguages: boolean): string {
  switch (block.kind) {
    case 'operation':
      return writeOperation(block)
    case 'prose':
      return writeParagraphs(block)
    case 'code':
      return writeCode(block, inAllLanguages)
    case 'responses':
      return writeResponses(block)
    case 'fields': {
      const rows = writeRows(block.rows, '')
      return block.title === undefined ? rows : `#### ${block.title}\n\n${rows}`
    }
    case 'table':
      return writeTable(block)
  }
}

function writeOperation({ method, path }: OperationLine): string {
  return `${method} ${codeSpan(path)}`
}

/** Items of a list follow each other without a blank line, and those of an ordered one are numbered. */
function writeParagraphs({ lines }: Paragraphs): string {
  let text = ''
  let number = 0
  let wasItem = false
  for (const line of lines) {
    const isOrdered = line.startsWith('1. ')
    const isItem = isOrdered || line.startsWith('- ')
    number = isOrdered ? number + 1 : 0
    if (text !== '') text += isItem && wasItem ? '\n' : '\n\n'
    text += writeProse(line.replace(/^1\./, `${number}.`))
    wasItem = isItem
  }
  return text
}

/** Links within the reference have no place to lead to. */
function writeProse(text: Prose): string {
  return text.replace(/\[([^\][]+)\]\(#[^()]+\)/g, '$1').replace(/\s+/g, ' ').trim()
}

function writeLine(pieces: readonly Inline[]): string {
  return pieces.map((piece) => {
    if (typeof piece === 'string') return piece
    return 'code' in piece ? codeSpan(piece.code) : `[${piece.text}](${piece.href})`
  }).join('')
}

function writeCode({ caption, note, code }: CodeBlock, inAllLanguages: boolean): string {
  const isOperation = typeof caption !== 'string'
  const parts = isOperation ? [] : [note === undefined ? caption : `${caption} (${note})`]
  if (typeof code === 'string') parts.push(fence(code))
  else if (!inAllLanguages) parts.push(fence(code.get('shell') ?? ''))
  else for (const [language, text] of code) parts.push(`${LANGUAGES[language]}:`, fence(text))
  return parts.join('\n\n')
}

/** Code on lines of its own. */
function fence(code: string): string {
  const mark = '`'.repeat(Math.max(3, longestTicks(code) + 1))
  return `${mark}\n${code}\n${mark}`
}

/** Code within a line. Spaces keep its own backticks apart from those around it, and are not shown. */
function codeSpan(code: string): string {
  const text = code.replace(/\s+/g, ' ')
  if (!text.includes('`')) return `\`${text}\``
  const mark = '`'.repeat(longestTicks(text) + 1)
  return `${mark} ${text} ${mark}`
}

/** How many backticks follow each other at most: what encloses them has more. */
function longestTicks(code: string): number {
  return Math.max(0, ...Array.from(code.matchAll(/`+/g), ([ticks]) => ticks.length))
}

function writeResponses({ mediaType, success, problems }: Responses): string {
  const parts = [`Response (${mediaType})`, `${success.status}:`, fence(success.body)]
  for (const { status, bodies } of problems) {
    const [first] = bodies
    parts.push(
      `${status}:`,
      bodies.map(({ code }) => `- ${code}`).join('\n'),
      PROBLEM_ACTIONS[first!.code],
      fence(JSON.stringify(first, null, 2)),
    )
  }
  return parts.join('\n\n')
}

/** Fields of fields are lists in lists. */
function writeRows(rows: readonly FieldRow[], indent: string): string {
  return rows.map((row) => {
    const inner = row.members.length === 0 ? '' : `\n${writeRows(row.members, `${indent}  `)}`
    return `${indent}- ${writeRow(row)}${inner}`
  }).join('\n')
}

function writeRow(row: FieldRow): string {
  if ('values' in row) return `If \`${row.member}\` is ${row.values.map(codeSpan).join(' ')}`
  const { name, about, need, text, limits } = row
  const notes = [about, need ?? ''].filter(Boolean).map((note) => ` (${note})`)
  const bounds = limits.map(writeLine).join(' · ')
  const said = [writeProse(text), bounds && `(${bounds})`].filter(Boolean).join(' ')
  return `${codeSpan(name)}${notes.join('')}${said && `: ${said}`}`
}

function writeTable({ rows }: Table): string {
  return rows.map(({ name, note, text, advice = '' }) => {
    const said = [text, writeProse(advice)].filter(Boolean).join(' ')
    return `- \`${name}\` (${note}): ${said}`
  }).join('\n')
}
