import { containsKey } from '../../core/http/redact.ts'
import type { QuotaUse } from '../../core/limits/partner-quotas.ts'
import type { LimitOverrides } from '../../core/model.ts'

/**
 * Makes untrusted text safe for a terminal: control characters could move the cursor, overwrite other output or rename
 * the window; direction marks could reverse a name.
 */
export function printable(text: string): string {
  return text.toWellFormed().replace(unsafe, (character) => `\\u{${codePointHex(character)}}`)
}

/** Makes JSON safe for a terminal, with escapes that do not change its meaning. */
export function printableJson(json: string): string {
  return json.replace(unsafeInJson, (character) => `\\u${codePointHex(character).padStart(4, '0')}`)
}

/** Removes keys, and the credentials of URLs: libraries quote invalid arguments in their messages. */
export function redact(text: string): string {
  // Word by word, and no pattern backtracks within a word: the time is linear.
  return text
    .replace(/[^\s'"]+/g, (word) => containsKey(word) ? '[key]' : word)
    .replace(/(?<!\bpostgres(?:ql)?):\/\/[^\s'"/]*@/gi, '://[credentials]@')
    // The password may contain an unencoded slash.
    .replace(/[^\s'"?#]+/g, redactPostgresUrl)
    .replace(/([?&]password=)[^\s'"&#]*/gi, '$1[credentials]')
}

function redactPostgresUrl(word: string): string {
  const end = word.lastIndexOf('@')
  const { index, 0: scheme = '' } = /\bpostgres(?:ql)?:\/\//i.exec(word.slice(0, end + 1)) ?? {}
  // A user name alone is not a secret, and a printed command needs it.
  if (index === undefined || /^[\w.-]+$/.test(word.slice(index + scheme.length, end))) return word
  return `${word.slice(0, index)}${scheme}[credentials]${word.slice(end)}`
}

/** Cuts text to `max` UTF-16 units. */
export function excerpt(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max)}…`.toWellFormed()
}

/** Redacts all strings and member names in a JSON value. */
export function redactAll<T>(value: T): T {
  return mapStrings(value, redact) as T
}

/** A short text can nest deeper than the call stack. */
const maxDepth = 100

/** Edits all strings and member names in a JSON value. What is nested too deeply becomes `…`. */
export function mapStrings(
  value: unknown,
  edit: (text: string) => string,
  depth: number = maxDepth,
): unknown {
  if (typeof value === 'string') return edit(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth === 0) return '…'
  const inner = (member: unknown) => mapStrings(member, edit, depth - 1)
  if (Array.isArray(value)) return value.map(inner)
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [edit(name), inner(member)]))
}

/** An error with its stack. Line feeds in the message are escaped, so they can't fake stack frames. */
export function formatStack(error: unknown): string {
  if (!(error instanceof Error)) return printable(redact(String(error)))
  const { name, message, stack = '' } = error
  const end = stack.indexOf(message) + message.length
  const frames = stack.slice(end).split('\n').slice(1).map((line) => `\n${printable(redact(line))}`)
  return printable(redact(`${name}: ${message}`)) + frames.join('')
}

export function displayWidth(text: string): number {
  if (narrow.test(text)) return text.length
  let columns = 0
  for (const character of text) {
    if (wide.test(character)) columns += 2
    else if (!invisible.test(character)) columns++
  }
  return columns
}

/**
 * An argument in the form in which a shell takes it. What a terminal must not get is escaped,
 * in a form of bash and zsh.
 */
export function shellQuote(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text
  if (printable(text) === text) return `'${text.replaceAll("'", "'\\''")}'`
  const octal = (byte: number) => `\\${byte.toString(8).padStart(3, '0')}`
  return `$'${
    text.replace(/['\\]/g, '\\$&').replace(unsafe, (each) => [...Buffer.from(each)].map(octal).join(''))
  }'`
}

/** `a, b and c`. */
export function joinList(items: readonly string[], word: 'and' | 'or' = 'and'): string {
  if (items.length < 2) return items.join('')
  return `${items.slice(0, -1).join(', ')} ${word} ${items.at(-1)}`
}

export function yesOrNo(value: boolean): string {
  return value ? 'yes' : 'no'
}

/** The output of `serve`, which scripts parse. */
export function listeningLine(url: string): string {
  return `listening on ${url}\n`
}

/** `2026-11-20 05:42 UTC`, or `never`. */
export function formatTime(ms: number | undefined): string {
  return ms === undefined ? 'never' : `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/** `in 12 days`, `3 hours ago`, or `never`. Intl.RelativeTimeFormat takes longer to load than a list to print. */
export function formatRelative(ms: number | undefined, now: number): string {
  if (ms === undefined) return 'never'
  const seconds = Math.floor(Math.abs(ms - now) / 1000)
  if (seconds === 0) return 'now'
  const [unit, length] = relativeUnits.find(([, , from]) => seconds >= from)!
  const count = Math.floor(seconds / length)
  const text = `${count} ${unit}${count === 1 ? '' : 's'}`
  return ms > now ? `in ${text}` : `${text} ago`
}

/** The units of time, with their lengths and the shortest time that is given in each, in seconds. */
const relativeUnits = [
  ['year', 31_536_000, 63_072_000],
  ['month', 2_592_000, 8_640_000],
  ['day', 86_400, 172_800],
  ['hour', 3_600, 7_200],
  ['minute', 60, 60],
  ['second', 1, 0],
] as const

/** Limits in the format of `--limit`. */
export function formatLimits(limits: LimitOverrides): string {
  const overrides = Object.entries(limits).map(([policy, { quota, windowSeconds }]) =>
    quota === 0 || windowSeconds === undefined ? `${policy}=${quota}` : `${policy}=${quota}/${windowSeconds}`
  )
  return overrides.join(' ') || "the service's"
}

/** Quotas of a partner, as servers have counted them; `undefined` for none. */
export function formatQuotas(quotas: readonly QuotaUse[]): string | undefined {
  const texts = quotas.map(({ policy, quota, window_seconds: seconds, used, remaining, resets_at }) => {
    const limit = formatLimits({ [policy]: seconds === null ? { quota } : { quota, windowSeconds: seconds } })
    if (used === null) return `${limit} (counted by each server)`
    const end = resets_at === null ? '' : ` until ${formatTime(Date.parse(resets_at))}`
    return `${limit} (${formatCount(used)} used, ${formatCount(remaining!)} left${end})`
  })
  return texts.join(', ') || undefined
}

/** `5,000`. Intl takes longer to load than most commands take. @param count 0 or more, whole. */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

/** `1 profile`, `5,000 profiles`. */
export function pluralize(count: number, singular: string, plural: string = `${singular}s`): string {
  return `${formatCount(count)} ${count === 1 ? singular : plural}`
}

/** Marks of direction and characters without width, which can hide a difference between names. */
const hidden = '\\u061c\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u2069\\ufeff'
// With tag characters.
const unsafe = new RegExp(`[\\p{Cc}\\p{Zl}\\p{Zp}${hidden}\\u{e0000}-\\u{e007f}]`, 'gu')
// Without the line feeds between tokens.
const unsafeInJson = new RegExp(`(?!\\n)[\\p{Cc}\\p{Zl}\\p{Zp}${hidden}]`, 'gu')

// Regular expressions lack UAX #11; these scripts and blocks are the wide ones in practice.
const wide =
  /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u
const invisible = /[\p{Mn}\p{Me}\p{Cf}]/u
/** A fast path: most cells match. */
const narrow = /^[\x20-\x7e…]*$/

function codePointHex(character: string): string {
  return character.codePointAt(0)?.toString(16) ?? ''
}

type TableRows = readonly (readonly string[])[]

export interface TableStyle {
  /** Columns of the terminal; `Infinity` for a file or a pipe. */
  readonly width: number
  styleHeading(text: string): string
}

const plainStyle: TableStyle = { width: Infinity, styleHeading: (text) => text }

/** Formats a table. Cells are made printable. */
export function formatTable(headings: readonly string[], rows: TableRows, style?: TableStyle): string {
  return createTableFormatter(headings, style)(rows)
}

/** The columns that are never cut, because commands take their values as arguments. */
const uncutHeadings = ['id', 'key', 'partner', 'slug', 'scope', 'module']
const minCutWidth = 4
/** Columns that are aligned to the right. */
const numberHeadings = [
  'requests',
  'errors',
  'error rate',
  'signups',
  'failed',
  'keys',
  'scopes',
  '7 days',
  'rows',
  'ms',
]

/**
 * Formats a table in chunks, the first one with headings. Columns are as wide as their widest cell so far, and the
 * widest are cut until the table fits the terminal.
 */
export function createTableFormatter(headings: readonly string[], style: TableStyle = plainStyle) {
  const columns = headings.map((name) => ({
    width: displayWidth(name),
    mayBeCut: false,
    isUncut: uncutHeadings.includes(name),
    isNumber: numberHeadings.includes(name),
  }))
  let heading: TableRows = [headings.map((name) => name.toUpperCase())]
  return (rows: TableRows): string => {
    const lines = rows.map((row) => row.map(printable))
    for (const line of lines) {
      for (const [index, cell] of line.entries()) {
        const column = columns[index]!
        column.width = Math.max(column.width, displayWidth(cell))
        // A cut number is wrong.
        column.mayBeCut ||= !column.isUncut && !/^[\d.,:%+<–-]*$/.test(cell)
      }
    }
    // The greatest common width of the widest columns with which all fit.
    let limit = Math.max(...columns.map(({ width }) => width))
    const fitted = () => columns.map(({ width, mayBeCut }) => mayBeCut ? Math.min(width, limit) : width)
    const sum = () => fitted().reduce((total, width) => total + width + 2, -2)
    while (limit > minCutWidth && sum() > style.width) limit--
    const widths = fitted()
    const format = (line: readonly string[]) =>
      alignCells(
        line.map((cell, index) => cutToWidth(cell, widths[index]!)),
        widths,
        (index) => columns[index]!.isNumber,
      )
    const first = heading.map((line) => `${style.styleHeading(format(line).trimEnd())}\n`)
    heading = []
    return [...first, ...lines.map(format)].join('')
  }
}

/** Cuts text that is wider, and ends it with `…`. */
export function cutToWidth(text: string, width: number): string {
  if (displayWidth(text) <= width) return text
  let cut = ''
  let columns = 1
  for (const character of text) {
    columns += displayWidth(character)
    if (columns > width) break
    cut += character
  }
  return `${cut}…`
}

/** Formats names and values, one per line, without those that are absent. Values are made printable. */
export function formatDetails(details: readonly (readonly [name: string, value: string | undefined])[]) {
  const members = details.flatMap(([name, value]) => value ? [[`${name}:`, printable(value)]] : [])
  const widths = [Math.max(...members.map(([name]) => displayWidth(name!)))]
  return members.map((member) => alignCells(member, widths)).join('')
}

/** Formats all members of a record of the wire. */
export function formatRecord(record: object): string {
  const text = (value: unknown) => [value ?? '–'].flat().join(' ')
  return formatDetails(
    Object.entries(record).map(([name, value]) => [name.replaceAll('_', ' '), text(value)] as const),
  )
}

function alignCells(
  cells: readonly string[],
  widths: readonly number[],
  isNumber: (index: number) => boolean = () => false,
): string {
  const aligned = cells.map((cell, index) => {
    const space = ' '.repeat(Math.max(0, (widths[index] ?? 0) - displayWidth(cell)))
    return isNumber(index) ? space + cell : cell + space
  })
  return `${aligned.join('  ').trimEnd()}\n`
}
