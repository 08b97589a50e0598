/** The schemas of a document, and examples of their values. */
import type { GenericSchema } from 'valibot'
import { convert, type JsonSchema } from '../schemas/json-schema.ts'

export type SchemaCollection = ReturnType<typeof createSchemaCollection>

const schemaPath = '#/components/schemas/'

/** The most items of an example, and the most characters of a text in it, whatever its schema asks for. */
const maxRows = 8
const maxText = 1000

type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

/** Converts schemas, and collects those with a title for `components`. */
export function createSchemaCollection() {
  const named: Record<string, JsonSchema> = {}

  /** Replaces every part that has a title by a reference. */
  function lift(schema: JsonSchema): JsonSchema {
    const { properties, items, anyOf, oneOf, examples, ...others } = schema
    const lifted: Writable<JsonSchema> = others
    if (examples) lifted.examples = examples
    if (properties) {
      const entries = Object.entries(properties).map(([name, one]) => [name, lift(one)])
      lifted.properties = Object.fromEntries(entries)
    }
    if (items) lifted.items = lift(items)
    if (anyOf) lifted.anyOf = anyOf.map(lift)
    if (oneOf) lifted.oneOf = oneOf.map(lift)
    return lifted.title === undefined ? lifted : name(lifted.title, lifted)
  }

  function name(title: string, schema: JsonSchema): JsonSchema {
    const known = named[title]
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(`Two different schemas have the title ${title}.`)
    }
    named[title] = schema
    return { $ref: schemaPath + title }
  }

  /** An example made of the examples of its parts. That of a response has no optional members: most have none. */
  function example(schema: JsonSchema, isResponse = false): unknown {
    if (schema.$ref !== undefined) {
      return example(named[schema.$ref.slice(schemaPath.length)] ?? {}, isResponse)
    }
    if (schema.examples !== undefined) return schema.examples[0]
    if (schema.enum !== undefined) return schema.enum[0]
    const [first] = schema.anyOf ?? schema.oneOf ?? []
    if (first !== undefined) return example(first, isResponse)
    if (schema.items !== undefined) {
      const row = example(schema.items, isResponse)
      return Array.from({ length: Math.min(Number(schema['minItems']) || 1, maxRows) }, () => row)
    }
    if (schema.properties !== undefined) {
      return Object.fromEntries(
        Object.entries(schema.properties).filter(([name]) => !isResponse || schema.required?.includes(name))
          .map(([name, one]) => [name, example(one, isResponse)]),
      )
    }
    return placeholderOf(schema)
  }

  return {
    /** The schema of a response, which may gain members without a new version. */
    response: (schema: GenericSchema) => lift(convert(schema)),
    name,
    example,
    named,
  }
}

/** A value for a schema without an example, within its bounds. No value is found for a pattern. */
function placeholderOf(schema: JsonSchema): unknown {
  const { minimum = 1, maximum, minLength = 0, maxLength } = schema as Readonly<Record<string, number>>
  const [type = 'null'] = [schema.type].flat()
  const text = 'text'.padEnd(Math.min(minLength, maxText), '-text').slice(0, maxLength)
  const figure = Math.min(Math.max(1, minimum), maximum ?? Infinity)
  const placeholders: Readonly<Record<string, unknown>> = {
    string: formats[schema.format ?? ''] ?? text,
    number: figure,
    integer: figure,
    boolean: true,
    array: [],
    object: {},
  }
  return placeholders[type] ?? null
}

const formats: Readonly<Record<string, string>> = {
  date: '2026-12-31',
  'date-time': '2026-12-31T12:00:00Z',
  email: 'ada@example.com',
  uri: 'https://example.com/',
  uuid: '01980a3e-5d1c-7f00-8000-000000000001',
}
