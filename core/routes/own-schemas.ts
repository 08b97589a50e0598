/** The valibot schemas of own endpoints: which can be used, and the inputs that they make. */
import { type GenericSchema, safeParse } from 'valibot'
import { redactKeys } from '../http/redact.ts'
import { keepsDigits } from '../lib/json.ts'
import type { Fail, InputDef } from '../schemas/inputs.ts'
import { convert } from '../schemas/json-schema.ts'
import { LOSSY_NUMBER } from './input.ts'

export type Schemas = Readonly<Record<string, AnySchema>>

export type AnySchema = GenericSchema & { readonly wrapped?: AnySchema; readonly item?: AnySchema }

/** Whether a schema, or a part of it, is asynchronous. */
function isAsync(schema: unknown, seen: Set<unknown> = new Set()): boolean {
  if (typeof schema !== 'object' || schema === null || seen.has(schema)) return false
  seen.add(schema)
  return (schema as { readonly async?: unknown }).async === true ||
    Object.values(schema).some((part) => isAsync(part, seen))
}

/** Why a schema can be neither checked nor described. */
export function findSchemaMisuse(schema: unknown): string | undefined {
  if (typeof schema !== 'object' || schema === null || !('~run' in schema)) {
    return 'its schema is not one of valibot'
  }
  if (isAsync(schema)) return 'its schema is asynchronous'
  try {
    // The documents are JSON: an example of a schema may be a bigint, or refer to itself.
    JSON.stringify(convert(schema as GenericSchema))
  } catch (error) {
    return `its schema cannot be described: ${error instanceof Error ? error.message.split('\n')[0] : ''}`
  }
}

/** The type of what a schema takes, or of the items of its list. */
export function typeOf(schema: AnySchema): string {
  const { base } = unwrap(schema)
  return base.type === 'array' && base.item ? unwrap(base.item).base.type : base.type
}

/** Whether JSON or a query has values that the schema takes. */
export function isSendable(schema: AnySchema): boolean {
  return !/^(?:bigint|blob|date|file|function|instance|map|nan|never|promise|set|symbol)$/.test(
    typeOf(schema),
  )
}

/** What a schema checks when there is a value, and whether there has to be one. */
function unwrap(schema: AnySchema): { readonly base: AnySchema; readonly isRequired: boolean } {
  let [base, isRequired] = [schema, true]
  while (base.wrapped !== undefined) {
    if (/^non_/.test(base.type)) return { base: unwrap(base.wrapped).base, isRequired: true }
    if (/optional|nullish|undefinedable/.test(base.type)) isRequired = false
    base = base.wrapped
  }
  return { base, isRequired }
}

/** A member of a body, or a parameter of a query, whose texts are converted to what the schema takes. */
export function toInput(schema: AnySchema, isText: boolean): InputDef<unknown> {
  const { base, isRequired } = unwrap(schema)
  const isList = isText && base.type === 'array'
  const one = isList ? base.item! : schema
  return {
    schema: { description: '', source: schema },
    parse: (sent, fail) => {
      const value = isText ? fromText(sent as string, one) : sent
      if (value === undefined) return fail(LOSSY_NUMBER)
      return isList ? value : check(schema, value, fail)
    },
    ...(isList && { parseList: (values, fail) => check(schema, values, fail) }),
    isRequired: isRequired && !isList,
    absent: (fail) => check(schema, isList && isRequired ? [] : undefined, fail),
    maxValues: isList ? 20 : 1,
  }
}

/** The number or boolean that a text spells, for a schema that takes it and not the text; `undefined` if it loses digits. */
function fromText(text: string, schema: AnySchema): unknown {
  const isNumber = /^-?\d+(?:\.\d+)?$/.test(text)
  if (!isNumber && !/^(?:true|false)$/.test(text)) return text
  const value = isNumber ? Number(text) : text === 'true'
  const { type } = unwrap(schema).base
  const takes = (input: unknown) => type === typeof input || safeParse(schema, input).typed
  if (isNumber && !keepsDigits(text)) return takes(value) && !takes(text) ? undefined : text
  return takes(value) && (type === typeof value || !takes(text)) ? value : text
}

/** Values are not repeated in errors: they may be secrets. */
function check(schema: GenericSchema, value: unknown, fail: Fail): unknown {
  const { success, output, issues } = safeParse(schema, value)
  if (success) return output
  for (const { message, expected, received, path, type } of issues) {
    const isMissing = received === 'undefined' && path !== undefined
    const detail = isMissing
      ? 'is required'
      : !message.startsWith('Invalid ')
      ? redactKeys(message)
      : expected === null
      ? `is not a valid ${type.replaceAll('_', ' ')}`
      : `must be ${expected}`
    fail(detail, ...(path ?? []).map(({ key }) => String(key)))
  }
  return undefined
}
