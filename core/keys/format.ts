/**
 * The text form of a key: `spk_live_` or `spk_test_`, 12 base62 characters of public id, `_`, 32 of secret
 * and 6 of checksum.
 */
import { KEY_SHAPE } from '../http/redact.ts'
import type { Environment } from '../model.ts'

const base62Alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const idLength = 12
const secretLength = 32
const checksumLength = 6

/** The form of a store's key prefix. */
export const KEY_PREFIX_PATTERN: RegExp = /^[a-z][a-z0-9]{1,9}$/

/** The form of a key's public id. */
export const KEY_ID_PATTERN: RegExp = /^[0-9A-Za-z]{12}$/

/** The form of a key that another system made: the store has its digest. No key contains a comma. */
export const IMPORTED_KEY_PATTERN: RegExp = /^[!-+\--~]{16,512}$/

/** Makes a key from the runtime's CSPRNG: 190 bits of secret. */
export function mintKey(
  prefix: string,
  environment: Environment,
): { readonly id: string; readonly text: string; readonly hint: string } {
  const id = drawKeyId()
  const unsigned = `${prefix}_${environment}_${id}_${randomBase62(secretLength)}`
  const text = unsigned + checksum(unsigned)
  return { id, text, hint: text.slice(-4) }
}

/** Draws the public id of a new key. */
export function drawKeyId(): string {
  return randomBase62(idLength)
}

/** The part of a text that would be the id of a key; `undefined` unless the text has the length of a key. */
export function extractKeyId(text: string, prefix: string): string | undefined {
  const start = prefix.length + 6
  return text.length === start + idLength + 1 + secretLength + checksumLength
    ? text.slice(start, start + idLength)
    : undefined
}

/** Whether a text has the form of a key with this prefix, and a valid checksum. */
export function isWellFormedKey(text: string, prefix: string): boolean {
  return hasKeyShape(text, prefix) && hasValidChecksum(text)
}

/** Whether a text has the form of a key with this prefix, whatever its checksum. */
export function hasKeyShape(text: string, prefix: string): boolean {
  return text.startsWith(`${prefix}_`) && anchoredShape.test(text.slice(prefix.length))
}

/** Whether the last characters of a text are the checksum of the rest. The form of a key is not checked. */
export function hasValidChecksum(text: string): boolean {
  return checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength)
}

const anchoredShape = new RegExp(`^${KEY_SHAPE.source}$`)

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let position = 0; position < checksumLength; position++) {
    digits = base62Alphabet.charAt(rest % 62) + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

/** Characters from the CSPRNG. Discards bytes from 248 up, the largest multiple of 62 in a byte, to avoid bias. */
export function randomBase62(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      if (byte < 248 && text.length < length) text += base62Alphabet.charAt(byte % 62)
    }
  }
  return text
}

const crcTable = Int32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte
  for (let bit = 0; bit < 8; bit++) {
    remainder = remainder & 1 ? (remainder >>> 1) ^ 0xedb88320 : remainder >>> 1
  }
  return remainder
})

/** CRC-32 (IEEE 802.3, as in zip and PNG) of ASCII text, unsigned. */
function crc32(text: string): number {
  let remainder = -1
  for (let index = 0; index < text.length; index++) {
    remainder = (crcTable[(remainder ^ text.charCodeAt(index)) & 0xff] ?? 0) ^ (remainder >>> 8)
  }
  return ~remainder >>> 0
}
