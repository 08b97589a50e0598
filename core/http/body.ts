import { findLossyNumbers, hasDuplicateMembers, isObject } from '../lib/json.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'
import type { HttpRequest } from './message.ts'
import { Problem } from './problem.ts'

/** A longer body is a `body_too_large`. */
export const MAX_BODY_BYTES = 32_768

export const BODY_ALREADY_READ =
  'The body has already been read: mount the service before middleware that reads bodies.'

export type JsonObject = Readonly<Record<string, unknown>>

/** A parsed text, and what the value does not have of it. */
export interface JsonText {
  readonly value: unknown
  /** The places of numbers that have lost digits. */
  readonly lossyNumbers: readonly (readonly (string | number)[])[]
}

/** A body that is a JSON object. */
export interface JsonBody extends JsonText {
  readonly value: JsonObject
}

/**
 * Reads a body that must be a JSON object; its members are not validated yet.
 *
 * @throws {Problem} `unsupported_media_type`, `body_too_large`, `malformed_request`, or `invalid_body` for JSON
 * other than an object.
 */
export function readBody(request: HttpRequest): MaybePromise<JsonBody> {
  if (request.header('content-encoding') !== undefined) {
    throw new Problem('unsupported_media_type', { detail: 'The body must not have a Content-Encoding.' })
  }
  if (!isJson(request.header('content-type') ?? '')) {
    throw new Problem('unsupported_media_type', { detail: 'The body must be application/json in UTF-8.' })
  }
  if (request.parsedBody !== undefined) {
    return { value: requireObject(request.parsedBody.value), lossyNumbers: [] }
  }
  return andThen(request.body(MAX_BODY_BYTES), (bytes) => {
    const { value, lossyNumbers } = readJson(bytes)
    return { value: requireObject(value), lossyNumbers }
  })
}

function requireObject(value: unknown): JsonObject {
  if (isObject(value)) return value
  throw new Problem('invalid_body', { errors: [{ pointer: '', detail: 'must be an object' }] })
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

/**
 * Parses JSON (RFC 8259) in UTF-8 without a byte-order mark, and without duplicate member names.
 *
 * @throws {Problem} `malformed_request` for anything else.
 */
export function readJson(bytes: Uint8Array): JsonText {
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
  return { value, lossyNumbers: findLossyNumbers(text) }
}

// JSON.parse rejects the byte-order mark that is kept.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new Problem('malformed_request', { detail: 'The body is not UTF-8.' })
  }
}

/** A path as a JSON Pointer (RFC 6901 §3). */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
