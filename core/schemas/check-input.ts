/** Parameters and members of bodies as their schemas describe them, and the check of a value. */
import { type BaseIssue, getDefault, safeParse } from 'valibot'
import { keepsDigits } from '../lib/json.ts'
import type { InputSchemas } from './input-schemas.ts'
import { ALL_FAILURES } from '../lib/schema-rules.ts'
import { type AnySchema, partsOf, unwrap } from '../lib/schema-structure.ts'

/** A parameter of a query, or a member of a body. */
export interface Input {
  readonly schema: AnySchema
  /** Whether it must have a value. */
  readonly isRequired: boolean
  /** The sentence about what is wrong with a value. */
  readonly describe: Describe
  /** How many failures each value within a value can have. */
  readonly width: number
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
      width: widthOf(schema),
      isRequired: isRequired && !isList,
      isList,
      absent: isRequired && isList ? [] : undefined,
      valueOf: readerFor(one),
    }
  })
}

/** The members of a body that schemas describe. */
export function toMembers(schemas: InputSchemas, describe: Describe): Inputs {
  return mapSchemas(schemas, (schema) => ({
    schema,
    describe,
    width: widthOf(schema),
    isRequired: unwrap(schema).isRequired,
  }))
}

function mapSchemas<I>(
  schemas: InputSchemas,
  toInput: (schema: AnySchema) => I,
): Readonly<Record<string, I>> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, toInput(schema)]))
}

/**
 * Makes of a text what a schema takes: the number or boolean that it spells, if the schema takes that and not the text.
 */
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

/** How deep a value may be nested: schemas that refer to themselves check each level within the one before. */
const maxDepth = 64

/** The most failures of a value that are listed. */
const maxListed = 100

/** The most failures of a value that are looked for: each is an object of some size. */
const maxFailures = 20_000

const firstFailure = { abortEarly: true, abortPipeEarly: true } as const

/** What the schema of an input makes of a value, if it is valid. */
export function checkValue({ schema, describe, width }: Input, value: unknown, fail: Fail): unknown {
  // It refuses `undefined`, which no request can send: an object leaves the check out.
  if (value === undefined && schema.type === 'exact_optional') return getDefault(schema)
  const { depth, count } = measure(value)
  if (depth > maxDepth) return void fail(`must not be nested more than ${maxDepth} levels deep`, [])
  const areListed = count * width <= maxFailures
  const { success, output, issues } = safeParse(schema, value, areListed ? ALL_FAILURES : firstFailure)
  if (success) {
    const list = findList(schema, value)
    return list === undefined ? output : void fail('must be an object', list)
  }
  for (const issue of issues.slice(0, maxListed)) {
    fail(describe(issue), (issue.path ?? []).map(({ key }) => String(key)))
  }
  if (!areListed) fail('may have more errors: it is too large for all to be listed', [])
  else if (issues.length > maxListed) fail(`has ${issues.length - maxListed} more errors`, [])
  return undefined
}

/** The number of values in a value, itself included, and how deep they are nested. */
interface Extent {
  readonly depth: number
  readonly count: number
}

/** The extent of most values: without parts. */
const oneValue: Extent = { depth: 0, count: 1 }

/** Measures a value up to the depth that is too deep. */
function measure(value: unknown): Extent {
  if (typeof value !== 'object') return oneValue
  let depth = 0
  let count = 1
  let level: readonly unknown[] = [value]
  while (depth <= maxDepth) {
    level = level.flatMap((each) => typeof each === 'object' && each !== null ? Object.values(each) : [])
    if (level.length === 0) break
    depth++
    count += level.length
  }
  return { depth, count }
}

/** The number of parts of a schema that have no parts. */
function widthOf(schema: AnySchema): number {
  let width = 0
  const known = new Set([schema])
  // Those that are added meanwhile included: a schema may refer to itself.
  for (const each of known) {
    const parts = partsOf(each)
    if (parts.length === 0) width++
    for (const [, part] of parts) known.add(part as AnySchema)
    if (known.size > maxFailures) return maxFailures
  }
  return Math.max(width, 1)
}

const objects: readonly string[] = [
  'object',
  'loose_object',
  'strict_object',
  'object_with_rest',
  'record',
  'variant',
]

/**
 * The path at which a valid value has a list, and its schema an object: valibot takes lists for objects whose members
 * have numbers as their names.
 */
function findList(schema: AnySchema, value: unknown): readonly string[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { base } = unwrap(schema)
  if (Array.isArray(value) && takesObjects(base)) return []
  const partFor = (name: string): AnySchema | undefined =>
    base.type === 'record'
      ? base.value
      : base.item ?? (base.entries && Object.hasOwn(base.entries, name) ? base.entries[name] : undefined)
  for (const [name, each] of Object.entries(value)) {
    const part = partFor(name)
    const found = part && findList(part, each)
    if (found !== undefined) return [name, ...found]
  }
  return undefined
}

/** Whether a schema takes objects, and nothing else. */
function takesObjects({ type, options }: AnySchema): boolean {
  return objects.includes(type) ||
    type === 'union' && options !== undefined && options.every((option) => takesObjects(unwrap(option).base))
}
