/** Reads JSON Lines, and collects the errors of all lines. */
import * as v from 'valibot'
import { containsKey, formatValue } from '../http/redact.ts'
import { findJsonError, hasDuplicateMembers, isObject, parseJson } from '../lib/json.ts'
import type { LineError, LineErrors } from './line-declarations.ts'

const maxErrors = 1_000

/**
 * @param schema Makes a record of the object in a line.
 * @param inspect Called with each object before that, and its line.
 */
export function createObjectReader<R>(
  schema: v.GenericSchema<unknown, R>,
  inspect: (value: Readonly<Record<string, unknown>>, line: number) => void = () => {},
) {
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
      const result = v.safeParse(schema, value)
      for (const { path, message } of result.issues ?? []) addError(line, fieldPath(path), message)
      return result.success ? result.output : undefined
    },

    isValid: () => errorCount === 0,

    /** All errors by line; `undefined` when there are none. */
    errors: (): LineErrors | undefined =>
      errorCount === 0 ? undefined : { errors: errors.sort((a, b) => a.line - b.line), errorCount },
  }
}

function fieldPath(path: readonly { readonly key: unknown }[] | undefined): string | null {
  if (path === undefined) return null
  const steps = path.map(({ key }) => typeof key === 'number' ? `[${key}]` : `.${fieldName(String(key))}`)
  return steps.join('').replace(/^\./, '')
}

/** The name of an unknown field is untrusted like any value. */
function fieldName(name: string): string {
  if (containsKey(name)) return '(a name in the shape of a key)'
  return /^\w{1,60}$/.test(name) ? name : formatValue(name)
}
