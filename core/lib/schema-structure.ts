/** What valibot schemas show of themselves: their types, and the schemas that they are made of. */
import type { GenericSchema } from 'valibot'

/** Any schema, with the parts that some types of schemas have. */
export type AnySchema = GenericSchema & {
  /** The schema within `optional`, `nullable` and the like. */
  readonly wrapped?: AnySchema
  /** The schema of the items of a list. */
  readonly item?: AnySchema
  /** The members of an object, in their order. */
  readonly entries?: Readonly<Record<string, AnySchema>>
  /** The schemas and actions of a pipe, of which the first is the schema itself. */
  readonly pipe?: readonly unknown[]
}

/** The members of an object, in their order; `undefined` for any other schema. */
export function entriesOf({ entries, pipe = [] }: Pick<AnySchema, 'entries' | 'pipe'>): AnySchema['entries'] {
  if (entries !== undefined) return entries
  for (const part of pipe as readonly Pick<AnySchema, 'entries' | 'pipe'>[]) {
    const found = entriesOf(part)
    if (found !== undefined) return found
  }
  return undefined
}

/** What a schema checks when there is a value, and whether there has to be one: the outermost wrapper decides. */
export function unwrap(schema: AnySchema): { readonly base: AnySchema; readonly isRequired: boolean } {
  let base = schema
  let isRequired: boolean | undefined
  while (base.wrapped !== undefined) {
    if (/^non_(?:optional|nullish)$/.test(base.type)) isRequired ??= true
    else if (/^(?:(?:exact_)?optional|nullish|undefinedable)$/.test(base.type)) isRequired ??= false
    base = base.wrapped
  }
  return { base, isRequired: isRequired ?? true }
}
