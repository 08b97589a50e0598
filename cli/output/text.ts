import { containsKey } from '../../core/http/redact.ts'
import type { LimitOverrides } from '../../core/model.ts'

/**
 * Text that somebody else wrote, made safe for a terminal: control characters could move the cursor, rewrite
 * what stands above or rename the window, and direction marks could show a name backwards.
 */
export function printable(text: string): string {
  return text.toWellFormed().replace(unsafe, (character) => `\\u{${codePointHex(character)}}`)
}

/** A JSON text with the same characters escaped as JSON allows, so that it still means the same. */
export function printableJson(json: string): string {
  return json.replace(unsafeInJson, (character) => `\\u${codePointHex(character).padStart(4, '0')}`)
}

/**
 * A message without what could be a secret: anything in the shape of a key, and what stands before the host
 * in a URL, or as a password behind it. Messages of libraries quote the arguments that they dislike.
 */
export function redact(text: string): string {
  // Word by word, and no pattern can start over within one: the time is linear in the length of the text.
  return text
    .replace(/[^\s'"]+/g, (word) => containsKey(word) ? '[key]' : word)
    .replace(/:\/\/[^\s'"/]*@/g, '://[credentials]@')
    // A slash that was not encoded may stand in the password.
    .replace(/[^\s'"?#]+/g, redactPostgresUrl)
    .replace(/([?&]password=)[^\s'"&#]*/gi, '$1[credentials]')
}

function redactPostgresUrl(word: string): string {
  const end = word.lastIndexOf('@')
  const { index, 0: scheme = '' } = /\bpostgres(?:ql)?:\/\//i.exec(word.slice(0, end + 1)) ?? {}
  return index === undefined ? word : `${word.slice(0, index)}${scheme}[credentials]${word.slice(end)}`
}

/** Text from outside as it may be shown: redacted, then cut to `max` UTF-16 units. */
export function excerpt(text: string, max: number): string {
  const safe = redact(text)
  return safe.length <= max ? safe : `${safe.slice(0, max)}…`.toWellFormed()
}

/** Redacts everything in a value that JSON has, members' names included. */
export function redactAll<T>(value: T): T {
  return mapStrings(value, redact, Infinity, maxDepth) as T
}

/** What a deployment sent, for people: redacted, and the texts and lists in it cut. */
export function excerptAll<T>(value: T): T {
  return mapStrings(value, (text) => excerpt(text, maxTextLength), maxItems, maxDepth) as T
}

function mapStrings(value: unknown, edit: (text: string) => string, items: number, depth: number): unknown {
  if (typeof value === 'string') return edit(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth === 0) return '…'
  const inner = (member: unknown) => mapStrings(member, edit, items, depth - 1)
  if (Array.isArray(value)) return value.slice(0, items).map(inner)
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [edit(name), inner(member)]))
}

/** UTF-16 units of a text and items of a list that people are shown of an answer. */
const maxTextLength = 800
const maxItems = 200
/** What is nested deeper is left out: a short text can nest deeper than the call stack. */
const maxDepth = 100

/** An error and where it came about, for whoever debugs: lines of its own message do not look like lines of this. */
export function formatStack(error: unknown): string {
  if (!(error instanceof Error)) return printable(redact(String(error)))
  const { name, message, stack = '' } = error
  const end = stack.indexOf(message) + message.length
  const frames = stack.slice(end).split('\n').slice(1).map((line) => `\n${printable(redact(line))}`)
  return printable(redact(`${name}: ${message}`)) + frames.join('')
}

/** The columns that a text takes on a terminal. */
export function displayWidth(text: string): number {
  if (narrow.test(text)) return text.length
  let columns = 0
  for (const character of text) columns += wide.test(character) ? 2 : invisible.test(character) ? 0 : 1
  return columns
}

/** A sentence's list: `a, b and c`. */
export function joinList(items: readonly string[], word: 'and' | 'or' = 'and'): string {
  if (items.length < 2) return items.join('')
  return `${items.slice(0, -1).join(', ')} ${word} ${items.at(-1)}`
}

/** The one line that says where the service listens. */
export function listeningLine(url: string): string {
  return `listening on ${url}\n`
}

/** `2026-11-20 05:42 UTC`, or `never`. */
export function formatTime(ms: number | undefined): string {
  return ms === undefined ? 'never' : `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/** A partner's or key's own limits as they are written on the command line. */
export function formatLimits(limits: LimitOverrides): string {
  const overrides = Object.entries(limits).map(([policy, { quota, windowSeconds }]) =>
    quota === 0 ? `${policy}=0` : `${policy}=${quota}/${windowSeconds}`
  )
  return overrides.join(' ') || "the service's"
}

/** `1 profile`, `5,000 profiles`. */
export function pluralize(count: number, singular: string, plural: string = `${singular}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? singular : plural}`
}

const bidiControls = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069'
const unsafe = new RegExp(`[\\p{Cc}\\p{Zl}\\p{Zp}${bidiControls}]`, 'gu')
// The line feeds and spaces between tokens have to stay.
const unsafeInJson = new RegExp(`(?!\\n)[\\p{Cc}\\p{Zl}\\p{Zp}${bidiControls}]`, 'gu')

// UAX #11 has no property in regular expressions: these scripts and blocks are what is wide in practice.
const wide =
  /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u
const invisible = /[\p{Mn}\p{Me}\p{Cf}]/u
/** Most cells: a fast path for long lists. */
const narrow = /^[\x20-\x7e…]*$/

function codePointHex(character: string): string {
  return character.codePointAt(0)?.toString(16) ?? ''
}

type TableRows = readonly (readonly string[])[]

/** Rows under their headings, in columns as wide as what stands in them. Every cell is made printable. */
export function formatTable(headings: readonly string[], rows: TableRows): string {
  return createTableFormatter(headings)(rows)
}

/** Formats a table in chunks, the first one with the headings. A column is as wide as its widest cell so far. */
export function createTableFormatter(headings: readonly string[]): (rows: TableRows) => string {
  const widths = headings.map(() => 0)
  let heading: TableRows = [headings.map((name) => name.toUpperCase())]
  return (rows) => {
    const lines = [...heading, ...rows.map((row) => row.map(printable))]
    heading = []
    for (const line of lines) {
      for (const [column, cell] of line.entries()) {
        widths[column] = Math.max(widths[column]!, displayWidth(cell))
      }
    }
    return lines.map((line) => alignCells(line, widths)).join('')
  }
}

/** Names and values of one thing, a line each. Every value is made printable. */
export function formatDetails(members: readonly (readonly [name: string, value: string])[]): string {
  const widths = [Math.max(...members.map(([name]) => displayWidth(name) + 1))]
  return members.map(([name, value]) => alignCells([`${name}:`, printable(value)], widths)).join('')
}

function alignCells(cells: readonly string[], widths: readonly number[]): string {
  return `${
    cells
      .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - displayWidth(cell))))
      .join('  ')
      .trimEnd()
  }\n`
}
