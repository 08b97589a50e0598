/** Reads parameters and members of bodies by their schemas. */
import { type BaseIssue, getDefault, safeParse } from 'valibot'
import { keepsDigits } from '../lib/json.ts'
import type { InputSchemas } from './inputs.ts'
import { ALL_FAILURES } from '../lib/schema-rules.ts'
import { type AnySchema, unwrap } from '../lib/schema-structure.ts'

/** A parameter of a query, or a member of a body. */
export interface Input {
  readonly schema: AnySchema
  /** Whether it must have a value. */
  readonly isRequired: boolean
  /** The sentence about what is wrong with a value. */
  readonly describe: Describe
}

/** Makes the end of a sentence of what a schema refuses. */
export type Describe = (issue: BaseIssue<unknown>) => string

/** The sentences of schemas that have one for each of their checks, as those of built-in endpoints do. */
export const ownSentence: Describe = ({ message }) => message

/** A parameter of a query. */
export interface Parameter extends Input {
  /** Whether it may be repeated: its values are then a list. */
  readonly isList: boolean
  /** What its schema gets if it has no value: nothing, or an empty list. */
  readonly absent: readonly [] | undefined
  /** Makes the value of a text; `undefined` of a number that would lose digits. */
  readonly valueOf: (text: string) => unknown
}

/** Inputs by their names. */
export type Inputs<I extends Input = Input> = Readonly<Record<string, I>>

/** A schema would check another number than the client sent. */
export const LOSSY_NUMBER = 'has more digits than a number keeps'

/** Reports what is wrong with a value, or with the part of it that `path` names. */
export type Fail = (detail: string, path: readonly string[]) => void

/** The parameters that schemas describe. */
export function toParameters(schemas: InputSchemas, describe: Describe): Inputs<Parameter> {
  return mapSchemas(schemas, (schema) => {
    const { base, isRequired } = unwrap(schema)
    const isList = base.type === 'array'
    const one = isList && base.item !== undefined ? base.item : schema
    return {
      schema,
      describe,
      isRequired: isRequired && !isList,
      isList,
      absent: isRequired && isList ? [] : undefined,
      valueOf: readerFor(one),
    }
  })
}

/** The members of a body that schemas describe. */
export function toMembers(schemas: InputSchemas, describe: Describe): Inputs {
  return mapSchemas(schemas, (schema) => ({ schema, describe, isRequired: unwrap(schema).isRequired }))
}

function mapSchemas<I>(
  schemas: InputSchemas,
  toInput: (schema: AnySchema) => I,
): Readonly<Record<string, I>> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, toInput(schema)]))
}

/** Makes of a text what a schema takes: the number or boolean that it spells, if the schema takes that and not the text. */
function readerFor(schema: AnySchema): (text: string) => unknown {
  const { type } = unwrap(schema).base
  if (type === 'string') return (text) => text
  const takes = (value: unknown) => type === typeof value || safeParse(schema, value).typed
  return (text) => {
    const isNumber = /^-?\d+(?:\.\d+)?$/.test(text)
    if (!isNumber && !/^(?:true|false)$/.test(text)) return text
    const value = isNumber ? Number(text) : text === 'true'
    const isTaken = takes(value) && (type === typeof value || !takes(text))
    if (!isTaken) return text
    if (!isNumber || keepsDigits(text)) return value
    return takes(text) ? text : undefined
  }
}

/** What the schema of an input makes of a value, if it is valid. */
export function checkValue({ schema, describe }: Input, value: unknown, fail: Fail): unknown {
  // It refuses `undefined`, which no request can send: an object leaves the check out.
  if (value === undefined && schema.type === 'exact_optional') return getDefault(schema)
  const { success, output, issues } = safeParse(schema, value, ALL_FAILURES)
  if (success) return output
  for (const issue of issues) fail(describe(issue), (issue.path ?? []).map(({ key }) => String(key)))
  return undefined
}
