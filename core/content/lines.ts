/** Content as JSON Lines: one object a line, UTF-8. */
import * as v from 'valibot'
import { echo } from '../admin/echo.ts'
import { hasDuplicateMembers } from '../json-members.ts'
import { holdsKey } from '../keys/format.ts'
import { bannerFields, bannerLine } from './banner-line.ts'
import { isRecord, type References } from './fields.ts'
import { industryFields, industryLine } from './industry-line.ts'
import { findTreeErrors, type IndustryPlace } from './industry-tree.ts'
import { planFields, planLine } from './plan-line.ts'
import { profileFields, profileLine } from './profile-line.ts'
import type { ContentKind, ContentRecords } from './records.ts'

/** What is wrong with one field of one line. */
export interface LineError {
  /** From 1, blank lines counted. */
  readonly line: number
  /** The field, as in `links[0].url`; `null` when it is the line as a whole. */
  readonly field: string | null
  /** One clause about the field or line, such as `must be a whole number from 0, not "ten"`. */
  readonly reason: string
}

/** Why lines are not taken. */
export interface LineErrors {
  /** At most 1,000, by line. */
  readonly errors: readonly LineError[]
  /** How many there are in all, 1 or more. */
  readonly errorCount: number
}

/** Lines that are all right. */
export interface LineRecords<K extends ContentKind> {
  readonly records: readonly ContentRecords[K][]
}

/** Reads content line by line. */
export interface LineReader<K extends ContentKind> {
  /** Takes the next line, with or without its line end. */
  read(line: string): void
  /** The records that were read since the last call; none once a line is wrong. */
  take(): readonly ContentRecords[K][]
  /** The records that were not taken, or everything that is wrong with the lines. */
  finish(): LineRecords<K> | LineErrors
}

const maxErrors = 1_000

type LineSchemas = {
  [K in ContentKind]: (references: References) => v.GenericSchema<unknown, ContentRecords[K]>
}

const schemas: LineSchemas = {
  profiles: profileLine,
  banners: bannerLine,
  industries: industryLine,
  plans: planLine,
}

const fieldsOf: { [K in ContentKind]: (record: ContentRecords[K]) => unknown } = {
  profiles: profileFields,
  banners: bannerFields,
  industries: industryFields,
  plans: planFields,
}

/**
 * Reads JSON Lines and judges every line by itself, its place among the others and what it refers to. Blank lines are
 * passed over, a byte-order mark before the first line and CRLF line ends are tolerated.
 *
 * @param references What lines may refer to; by default anything.
 */
export function createLineReader<K extends ContentKind>(kind: K, references: References = {}): LineReader<K> {
  const schema = schemas[kind](references)
  const address = kind === 'banners' ? 'partner' : 'slug'
  const firstLines = new Map<string, number>()
  let records: ContentRecords[K][] = []
  const places: IndustryPlace[] = []
  const errors: LineError[] = []
  let errorCount = 0
  let line = 0

  function refuse(error: LineError): void {
    errorCount++
    if (errors.length < maxErrors) errors.push(error)
  }

  function noteAddress(value: Readonly<Record<string, unknown>>): void {
    const slug = value[address]
    if (typeof slug !== 'string') return
    const first = firstLines.get(slug)
    if (first !== undefined) {
      return refuse({ line, field: address, reason: `repeats ${echo(slug)} of line ${first}` })
    }
    firstLines.set(slug, line)
    const parent = value['parent_slug']
    if (kind === 'industries') {
      places.push({ line, slug, parent: typeof parent === 'string' ? parent : undefined })
    }
  }

  return {
    read(text) {
      line++
      // Editors on Windows write a byte-order mark; JSON itself allows none (RFC 8259 §8.1).
      const json = line === 1 && text.startsWith('\uFEFF') ? text.slice(1) : text
      if (/^[ \t\r\n]*$/.test(json)) return
      const value = parseJson(json)
      if (!isRecord(value)) {
        return refuse({
          line,
          field: null,
          reason: value === undefined ? 'is not JSON' : 'must be a JSON object',
        })
      }
      if (hasDuplicateMembers(json)) {
        return refuse({ line, field: null, reason: 'has two members of one name in an object' })
      }
      noteAddress(value)
      const result = v.safeParse(schema, value)
      if (result.success) records.push(result.output)
      for (const { path, message } of result.issues ?? []) {
        refuse({ line, field: fieldPath(path), reason: message })
      }
    },

    take() {
      const taken = errorCount === 0 ? records : []
      if (records.length > 0) records = []
      return taken
    },

    finish() {
      for (const error of findTreeErrors(places, references.industries)) refuse(error)
      return errorCount === 0 ? { records } : { errors: errors.sort((a, b) => a.line - b.line), errorCount }
    },
  }
}

/** A record as one line of JSON without a line end: section 8's fields in a fixed order, absent ones `null`. */
export function writeContentLine<K extends ContentKind>(kind: K, record: ContentRecords[K]): string {
  return JSON.stringify(fieldsOf[kind](record))
}

/** The parser's own message is not passed on: it quotes what it read. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function fieldPath(path: readonly { readonly key: unknown }[] | undefined): string | null {
  if (path === undefined) return null
  const steps = path.map(({ key }) => typeof key === 'number' ? `[${key}]` : `.${fieldName(String(key))}`)
  return steps.join('').replace(/^\./, '')
}

/** A name that the line's author made up is shown like any value that arrived. */
function fieldName(name: string): string {
  if (holdsKey(name)) return '(a name in the shape of a key)'
  return /^\w{1,60}$/.test(name) ? name : echo(name)
}
