/** An independent validator of the schemas in an OpenAPI document. */
import addFormats from 'ajv-formats'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { OpenApiDocument } from '../../core/openapi/document.ts'
import type { JsonSchema } from '../../core/schemas/json-schema.ts'

/** @returns What is wrong with a value. */
export type Validate = (schema: JsonSchema, value: unknown) => string[]

const validators = new WeakMap<OpenApiDocument, Validate>()

/** Validators are kept, because compiling a schema is slow. */
export function validatorFor(described: OpenApiDocument): Validate {
  const validate = validators.get(described) ?? createValidator(described)
  validators.set(described, validate)
  return validate
}

function createValidator({ components: { schemas } }: OpenApiDocument): Validate {
  const ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false, strictRequired: false })
  addFormats.default(ajv)
  for (const format of ['int32', 'int64']) {
    ajv.addFormat(format, { type: 'number', validate: Number.isInteger })
  }
  ajv.addVocabulary(['components'])
  ajv.addSchema({ $id: 'openapi', components: { schemas } })
  const compiled = new Map<string, ValidateFunction>()
  return (schema, value) => {
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"openapi#/components/')
    const validate = compiled.get(text) ?? ajv.compile(JSON.parse(text))
    compiled.set(text, validate)
    if (validate(value)) return []
    return (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`)
  }
}

/** What a reference into a document refers to, or the value itself. */
export function resolve<T>(value: T | { readonly $ref: string }, described: OpenApiDocument): T {
  if (typeof value !== 'object' || value === null || !('$ref' in value)) return value as T
  return value.$ref.slice(2).split('/').reduce<unknown>(
    (part, name) => (part as Record<string, unknown>)[name],
    described,
  ) as T
}
