import { type GenericSchema, safeParse } from 'valibot'
import { after } from '../after.ts'
import type { MaybePromise } from '../ports.ts'
import type { Exchange } from './exchange.ts'
import { pointer, readJson } from './json.ts'
import { type InputError, Problem } from './problem.ts'
import { sayable } from './redact.ts'

/** The largest body that is read, in bytes. */
export const MAX_BODY_BYTES = 32_768

/** A body that is a JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>

/**
 * Reads the body of a request, its media type first and its members not yet judged.
 *
 * @throws {Problem} `unsupported_media_type`, `body_too_large`, `malformed_request`, or `invalid_body` for JSON
 * that is no object.
 */
export function readBody(exchange: Exchange): MaybePromise<JsonObject> {
  const coding = exchange.header('content-encoding')
  if (coding !== undefined) {
    throw new Problem('unsupported_media_type', { detail: 'The body must not have a Content-Encoding.' })
  }
  if (!isJson(exchange.header('content-type') ?? '')) {
    throw new Problem('unsupported_media_type', { detail: 'The body must be application/json in UTF-8.' })
  }
  const declared = exchange.header('content-length')
  if (declared !== undefined && Number(declared) > MAX_BODY_BYTES) throw new Problem('body_too_large')
  return after(exchange.body(MAX_BODY_BYTES), (bytes) => {
    const value = readJson(bytes)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new Problem('invalid_body', { errors: [{ pointer: '', detail: 'must be an object' }] })
    }
    return value as JsonObject
  })
}

/** RFC 9110 §8.3.1: type and parameter names without case, a parameter's value quoted or not. */
function isJson(contentType: string): boolean {
  const [type, ...parameters] = contentType.split(';')
  if (type?.trim().toLowerCase() !== 'application/json') return false
  return parameters.every((parameter) => {
    const [name, value] = parameter.split('=')
    return name?.trim().toLowerCase() !== 'charset' || /^\s*"?utf-8"?\s*$/i.test(value ?? '')
  })
}

/**
 * Judges the members of a body.
 *
 * @throws {Problem} `invalid_body` with every failure and where it is.
 */
export function judgeBody<T>(body: JsonObject, schema: GenericSchema<unknown, T>): T {
  const result = safeParse(schema, body)
  if (result.success) return result.output
  const errors = result.issues.map((issue): InputError => {
    const path = (issue.path ?? []).map((item) => item.key as string | number)
    const detail = issue.type === 'strict_object' && issue.expected === 'never'
      ? 'is not a member of this body'
      : issue.message
    return { pointer: pointer(path.map((step) => typeof step === 'string' ? sayable(step) : step)), detail }
  })
  throw new Problem('invalid_body', { errors })
}
