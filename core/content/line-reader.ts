/** Reads JSON Lines, and collects the errors of all lines. */
import { containsKey, formatValue } from '../http/redact.ts'
import { findJsonError, hasDuplicateMembers, isObject, parseJson } from '../lib/json.ts'
import { EMAIL_PATTERN } from '../lib/text.ts'
import { parseInstant } from '../lib/time.ts'
import {
  type Form,
  mustBe,
  type ObjectFormat,
  pathOf,
  readRecord,
  type References,
  type ScalarFormat,
  type ValueReader,
} from './fields.ts'

/** An error in one field of one line. */
export interface LineError {
  /** From 1, blank lines included. */
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

const maxErrors = 1_000

/** @param inspect Called with each object before its record is read, and its line. */
export function createObjectReader<R>(
  format: ObjectFormat<R>,
  references: References = {},
  inspect: (value: Readonly<Record<string, unknown>>, line: number) => void = () => {},
) {
  const errors: LineError[] = []
  let errorCount = 0
  let line = 0

  function addError(at: number, field: string | null, reason: string): undefined {
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

  const reader = createValueReader(references, (path, reason) => addError(line, path, reason))

  return {
    addError,

    /** Reads the next line, with or without its line end. @returns `undefined` for a blank or invalid line. */
    read(text: string): R | undefined {
      line++
      // Editors on Windows write a byte-order mark; JSON itself allows none (RFC 8259 §8.1).
      const json = line === 1 && text.startsWith('\uFEFF') ? text.slice(1) : text
      if (/^[ \t\r\n]*$/.test(json)) return undefined
      const value = parse(json)
      if (value === undefined) return undefined
      inspect(value, line)
      const before = errorCount
      const record = readRecord(format, value, reader)
      return errorCount === before ? record : undefined
    },

    isValid: () => errorCount === 0,

    /** All errors by line; `undefined` when there are none. */
    errors: (): LineErrors | undefined =>
      errorCount === 0 ? undefined : { errors: errors.sort((a, b) => a.line - b.line), errorCount },
  }
}

/** Reads the values of lines. */
function createValueReader(references: References, fail: ValueReader['fail']): ValueReader {
  return {
    isLine: true,
    fail,
    readScalar(format, value, path) {
      const instant = format.type === 'instant' && typeof value === 'string' ? parseInstant(value) : undefined
      if (instant !== undefined) return instant
      const error = scalarError(format, value, references)
      return error === undefined ? value : fail(path, error)
    },
    checkNames(names, members, path) {
      for (const name of names) {
        if (!members.has(name)) fail(pathOf(path, printableName(name)), 'is not a known field')
      }
    },
    check(format, value, path) {
      const { max = Infinity } = format.type === 'list' ? format : {}
      const count = Array.isArray(value) ? value.length : 0
      if (count > max) return fail(path, `must have at most ${max} items, not ${count}`)
      const found = 'check' in format ? format.check?.(value as never) : undefined
      const [error, at] = typeof found === 'string' ? [found] : found ?? []
      if (error !== undefined) fail(at === undefined ? path : pathOf(path, at), error)
    },
  }
}

const forms: Readonly<Record<'url' | 'email', Form>> = {
  // Kept as written. The URL parser drops white space and control characters, and accepts missing slashes.
  url: [
    'an absolute http or https URL',
    (text) => /^https?:\/\/[^\s\p{Cc}]+$/iu.test(text) && URL.canParse(text),
  ],
  email: ['an e-mail address', (text) => EMAIL_PATTERN.test(text)],
}

/** @returns The error in a value, which is no valid instant. */
function scalarError(format: ScalarFormat, value: unknown, references: References): string | undefined {
  const error = (expected: string) => 'isSecret' in format ? `must be ${expected}` : mustBe(expected, value)
  switch (format.type) {
    case 'text':
    case 'code': {
      const { noun = 'text', max, form, refersTo } = format
      const [name, isValid] = typeof form === 'string' ? forms[form] : form ?? []
      if (typeof value !== 'string') return error(noun)
      const wrong = max && textError(value, max)
      if (wrong) return wrong
      if (isValid?.(value) === false) return error(name!)
      const isKnown = refersTo === undefined || (references[refersTo]?.has(value) ?? true)
      return isKnown
        ? undefined
        : error(`${refersTo === 'partners' ? 'a partner' : 'an industry'} that exists`)
    }
    case 'integer': {
      const { min = -Infinity, max = Infinity } = format
      if (Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max) return undefined
      const lower = min === -Infinity ? '' : ` from ${min}`
      return error(`a whole number${lower}${max === Infinity ? '' : ` to ${max}`}`)
    }
    case 'instant':
      return error('a date and time in RFC 3339 with an offset, such as 2026-01-31T09:30:00Z')
    case 'flag':
      return typeof value === 'boolean' ? undefined : error('true or false')
  }
}

/** The name of an unknown field is untrusted like any value. */
function printableName(name: string): string {
  if (containsKey(name)) return '(a name in the shape of a key)'
  return /^\w{1,60}$/.test(name) ? name : formatValue(name)
}

function textError(value: string, max: number): string | undefined {
  const points = value.length <= max ? value.length : Array.from(value).length
  if (value === '' || points > max) return `must have 1–${max} characters, not ${points}`
  // PostgreSQL cannot store NUL, and UTF-8 cannot encode lone surrogates.
  if (value.includes('\0')) return 'must not contain the character NUL'
  if (!value.isWellFormed()) return 'must be well-formed Unicode: half of a surrogate pair is missing'
  if (containsKey(value)) return 'must not contain a key: content is public'
  return undefined
}
