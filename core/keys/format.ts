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

/** A key that nobody holds yet. */
export interface MintedKey {
  readonly id: string
  readonly environment: Environment
  /** The whole key. It is shown once and kept nowhere. */
  readonly text: string
  /** Last four characters of the key. */
  readonly hint: string
}

/**
 * Makes a key from the runtime's CSPRNG: 190 bits of secret.
 *
 * @param prefix The store's key prefix, `spk` by default.
 */
export function mintKey(prefix: string, environment: Environment): MintedKey {
  const id = randomBase62(idLength)
  const unsigned = `${prefix}_${environment}_${id}_${randomBase62(secretLength)}`
  const text = unsigned + checksum(unsigned)
  return { id, environment, text, hint: text.slice(-4) }
}

/**
 * Where the id of a key would stand. Says nothing about the rest of the text.
 *
 * @returns undefined for a text that has not the length of a key with this prefix.
 */
export function extractKeyId(text: string, prefix: string): string | undefined {
  const start = prefix.length + 6
  return text.length === start + idLength + 1 + secretLength + checksumLength
    ? text.slice(start, start + idLength)
    : undefined
}

/** Whether a text has the form of a key with this prefix and the checksum of all before it at its end. */
export function isWellFormedKey(text: string, prefix: string): boolean {
  return text.startsWith(`${prefix}_`) && anchoredShape.test(text.slice(prefix.length)) &&
    hasValidChecksum(text)
}

/** Whether the last six characters of a key are the checksum of all before them. */
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

/** Bytes from 248 up are thrown away: 248 is the largest multiple of 62 that a byte holds, so no bias. */
function randomBase62(length: number): string {
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

/**
 * CRC-32 (IEEE 802.3, the one of zip and PNG) of ASCII text.
 *
 * @returns An unsigned 32-bit integer.
 */
export function crc32(text: string): number {
  let remainder = -1
  for (let index = 0; index < text.length; index++) {
    remainder = (crcTable[(remainder ^ text.charCodeAt(index)) & 0xff] ?? 0) ^ (remainder >>> 8)
  }
  return ~remainder >>> 0
}
