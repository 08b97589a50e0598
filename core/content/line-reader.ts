/** Reads JSON Lines, and collects the errors of all lines. */
import { safeParse } from 'valibot'
import { containsKey, formatValue } from '../http/redact.ts'
import { findJsonError, hasDuplicateMembers, isObject, parseJson } from '../lib/json.ts'
import { assertKind, kindOf } from '../lib/options.ts'
import { ALL_FAILURES } from '../lib/schema-rules.ts'
import { formatPath, fromLine, linePath, type Path, type Schema } from './fields.ts'

/** An error in one field of one line. */
export interface LineError {
  /** The number of the line, from 1, blank lines included. */
  readonly line: number
  /** The field, as in `links[0].url`; `null` for the line as a whole. */
  readonly field: string | null
  /** One clause about the field or line, such as `must be a whole number from 0, not "ten"`. */
  readonly reason: string
}

/** The errors in a file of lines. */
export interface LineErrors {
  /** At most 1,000, by line. */
  readonly errors: readonly LineError[]
  /** The number of all errors, 1 or more. */
  readonly errorCount: number
}

/** Reads the lines of a file one by one. */
export interface ObjectReader<R> {
  /** Reads the next line, with or without its line end. @returns `undefined` for a blank or invalid line. */
  read(text: string): R | undefined
  addError(line: number, field: string | null, reason: string): void
  isValid(): boolean
  /** All errors by line; `undefined` when there are none. */
  errors(): LineErrors | undefined
}

const maxErrors = 1_000

/** Checks that lines are a list or another iterable. @throws {TypeError} for another value, such as a single text. */
export function assertLines(where: string, lines: Iterable<string> | AsyncIterable<string>): void {
  const isList = typeof lines === 'object' && lines !== null &&
    (Symbol.iterator in lines || Symbol.asyncIterator in lines)
  if (isList) return
  throw new TypeError(
    `${where}: the lines must be a list, or another iterable, of texts, not ${kindOf(lines)}.`,
  )
}

/** @param inspect Called with each object before its record is read, and its line. */
export function createObjectReader<R>(
  schema: Schema<R>,
  inspect: (value: Readonly<Record<string, unknown>>, line: number) => void = () => {},
): ObjectReader<R> {
  const errors: LineError[] = []
  let errorCount = 0
  let line = 0

  function addError(at: number, field: string | null, reason: string): void {
    errorCount++
    if (errors.length < maxErrors) errors.push({ line: at, field, reason })
  }

  /** @returns `undefined` after an error about the line as a whole. */
  function parse(json: string): Readonly<Record<string, unknown>> | undefined {
    const value = parseJson(json)
    if (value === undefined) addError(line, null, `is not JSON at character ${findJsonError(json) + 1}`)
    else if (!isObject(value)) addError(line, null, 'must be a JSON object')
    else if (hasDuplicateMembers(json)) addError(line, null, 'has two members of one name in an object')
    else return value
    return undefined
  }

  /** @returns `undefined` after an error. Names that are not known are reported before values. */
  function toRecord(value: Readonly<Record<string, unknown>>): R | undefined {
    const before = errorCount
    const selected = fromLine(schema, value, (path) => addError(line, nameOf(path), 'is not a known field'))
    const { output, issues } = safeParse(schema, selected, ALL_FAILURES)
    if (issues === undefined) return errorCount === before ? output : undefined
    for (const issue of issues) {
      // JSON has no `undefined`.
      const reason = issue.input === undefined ? 'is missing' : issue.message
      addError(line, formatPath(linePath(issue)), reason)
    }
    return undefined
  }

  return {
    addError,

    read(text): R | undefined {
      line++
      assertKind(`Line ${line}`, text, 'a text')
      // Editors on Windows write a byte-order mark; JSON itself allows none (RFC 8259 §8.1).
      const json = line === 1 && text.startsWith('\uFEFF') ? text.slice(1) : text
      if (/^[ \t\r\n]*$/.test(json)) return undefined
      const value = parse(json)
      if (value === undefined) return undefined
      inspect(value, line)
      return toRecord(value)
    },

    isValid: () => errorCount === 0,

    errors: () =>
      errorCount === 0 ? undefined : { errors: errors.sort((a, b) => a.line - b.line), errorCount },
  }
}

/** The path of an unknown field. Its name is untrusted like any value. */
function nameOf(path: Path): string {
  const name = String(path.at(-1))
  if (containsKey(name)) return formatPath([...path.slice(0, -1), '(a name in the shape of a key)'])
  return formatPath([...path.slice(0, -1), /^\w{1,60}$/.test(name) ? name : formatValue(name)])
}
