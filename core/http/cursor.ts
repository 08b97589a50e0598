/** Paging cursors: a position in a list, authenticated together with the list that it belongs to. */
import { equalDigests, type Sha256 } from '../lib/digest.ts'

const macLength = 32
/** The longest cursor of the contract. */
export const MAX_CURSOR_LENGTH = 1000

/** Seals positions as cursors, and opens these. */
export interface Cursors {
  /** @param bound Identifies the list: partner, filters, order, version. @throws {TypeError} for a long position. */
  seal(bound: string, position: readonly (string | number)[]): string
  /** @returns The position, or `undefined` for a cursor that was altered or belongs to another list. */
  open(bound: string, cursor: string): readonly (string | number)[] | undefined
}

/** @param secret Hexadecimal, at most 64 digits: the same in every replica. */
export function createCursors(sha256: Sha256, secret: string): Cursors {
  // HMAC (RFC 2104 §2) over text: hexadecimal digits stay ASCII under both pads, and the outer hash takes the inner
  // one as hexadecimal digits.
  const inner = pad(secret, 0x36)
  const outer = pad(secret, 0x5c)
  const authenticate = (bound: string, payload: string): string =>
    sha256(outer + sha256(`${inner}${payload}.${bound}`)).slice(0, macLength)

  return {
    seal(bound, position) {
      const payload = encodeBase64Url(JSON.stringify(position))
      // A flat text, as in `rfc3339`.
      const cursor = [payload, authenticate(bound, payload)].join('.')
      if (cursor.length <= MAX_CURSOR_LENGTH) return cursor
      throw new TypeError(
        `The sort key or id of a row is too long for a cursor of ${MAX_CURSOR_LENGTH} characters.`,
      )
    },
    open(bound, cursor) {
      const separator = cursor.length - macLength - 1
      if (cursor[separator] !== '.') return undefined
      const payload = cursor.slice(0, separator)
      const genuine = equalDigests(authenticate(bound, payload), cursor.slice(separator + 1))
      return genuine ? JSON.parse(decodeBase64Url(payload)) : undefined
    },
  }
}

function pad(secret: string, mask: number): string {
  // Beyond the secret, NaN counts as 0.
  const codes = Array.from({ length: 64 }, (_, index) => secret.charCodeAt(index) ^ mask)
  return String.fromCharCode(...codes)
}

/** ASCII as it is, and any other code point in three bytes: UTF-8 has four for letters that names can consist of. */
function encodeBase64Url(text: string): string {
  const binary = text.replace(/[^\0-\x7f]/gu, (character) => {
    const point = character.codePointAt(0)!
    return String.fromCharCode(0x80 | point >> 16, point >> 8 & 0xff, point & 0xff)
  })
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

function decodeBase64Url(text: string): string {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return binary.replace(/[\x80-\xff]../gs, (bytes) => {
    const [high = 0, middle = 0, low = 0] = Array.from(bytes, (byte) => byte.charCodeAt(0))
    return String.fromCodePoint((high & 0x7f) << 16 | middle << 8 | low)
  })
}
