import {
  type BaseIssue,
  type GenericSchema,
  type ObjectEntries,
  safeParse,
  type StrictObjectSchema,
} from 'valibot'
import { hasDuplicateMembers } from '../lib/json.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import type { HttpRequest } from './message.ts'
import { type InputError, Problem } from './problem.ts'
import { redactKeys } from './redact.ts'

export const MAX_BODY_BYTES = 32_768

export const BODY_ALREADY_READ =
  'The body has already been read: mount the service before middleware that reads bodies.'

export type JsonObject = Readonly<Record<string, unknown>>

/**
 * Reads a body that must be a JSON object; its members are not validated yet.
 *
 * @throws {Problem} `unsupported_media_type`, `body_too_large`, `malformed_request`, or `invalid_body` for JSON
 * other than an object.
 */
export function readBody(request: HttpRequest): MaybePromise<JsonObject> {
  if (request.header('content-encoding') !== undefined) {
    throw new Problem('unsupported_media_type', { detail: 'The body must not have a Content-Encoding.' })
  }
  if (!isJson(request.header('content-type') ?? '')) {
    throw new Problem('unsupported_media_type', { detail: 'The body must be application/json in UTF-8.' })
  }
  const declared = request.header('content-length')
  if (declared !== undefined && Number(declared) > MAX_BODY_BYTES) throw new Problem('body_too_large')
  return andThen(request.body(MAX_BODY_BYTES), (bytes) => {
    const value = readJson(bytes)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new Problem('invalid_body', { errors: [{ pointer: '', detail: 'must be an object' }] })
    }
    return value as JsonObject
  })
}

/** Type and parameter names are case-insensitive, and a parameter's value may be quoted (RFC 9110 §8.3.1). */
function isJson(contentType: string): boolean {
  const [type, ...parameters] = contentType.split(';')
  if (type?.trim().toLowerCase() !== 'application/json') return false
  return parameters.every((parameter) => {
    const [name, value] = parameter.split('=')
    return name?.trim().toLowerCase() !== 'charset' || /^\s*"?utf-8"?\s*$/i.test(value ?? '')
  })
}

/** Validates the members of a body. @returns The value, which is valid if there are no errors, and all errors. */
export function validateBody<T>(
  body: JsonObject,
  schema: GenericSchema<unknown, T>,
): { readonly value: T; readonly errors: readonly InputError[] } {
  const result = safeParse(schema, body, { abortPipeEarly: true })
  const errors = unknownMembers(body, schema).map((name) => errorAt([name], 'is not a member of this body'))
  for (const issue of result.issues ?? []) {
    if (isUnknownMember(issue)) continue
    const path = (issue.path ?? []).map((item) => item.key as string | number)
    errors.push(errorAt(path, isMissingMember(issue) ? 'is required' : issue.message))
  }
  return { value: result.output as T, errors }
}

/** valibot's strict object reports only the first one. */
function unknownMembers(body: JsonObject, schema: GenericSchema): string[] {
  if (!('entries' in schema)) return []
  const { entries } = schema as Pick<StrictObjectSchema<ObjectEntries, undefined>, 'entries'>
  return Object.keys(body).filter((name) => !Object.hasOwn(entries, name))
}

function isUnknownMember({ type, expected }: BaseIssue<unknown>): boolean {
  return type === 'strict_object' && expected === 'never'
}

function isMissingMember({ type, path }: BaseIssue<unknown>): boolean {
  return type === 'strict_object' && path?.at(-1)?.origin === 'key'
}

function errorAt(path: readonly (string | number)[], detail: string): InputError {
  return { pointer: pointer(path.map((step) => typeof step === 'string' ? redactKeys(step) : step)), detail }
}

/**
 * Parses JSON (RFC 8259) in UTF-8 without a byte-order mark, and without duplicate member names.
 *
 * @throws {Problem} `malformed_request` for anything else.
 */
export function readJson(bytes: Uint8Array): unknown {
  const text = decodeUtf8(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Problem('malformed_request', { detail: 'The body is not JSON.' })
  }
  if (hasDuplicateMembers(text)) {
    throw new Problem('malformed_request', {
      detail: 'The body contains an object with duplicate member names.',
    })
  }
  return value
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    // JSON.parse rejects the byte-order mark that is kept.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Problem('malformed_request', { detail: 'The body is not UTF-8.' })
  }
}

/** A path as a JSON Pointer (RFC 6901 §3). */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
