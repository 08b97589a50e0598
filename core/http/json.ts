import { hasDuplicateMembers } from '../json-members.ts'
import { Problem } from './problem.ts'

/**
 * Reads a JSON text (RFC 8259): UTF-8 without a byte-order mark, and no object with two members of one name.
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
    throw new Problem('malformed_request', { detail: 'An object in the body has two members of one name.' })
  }
  return value
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    // The mark is kept so that JSON.parse refuses it.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Problem('malformed_request', { detail: 'The body is not UTF-8.' })
  }
}

/** A member's place in a document as a JSON Pointer (RFC 6901 §3). */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
