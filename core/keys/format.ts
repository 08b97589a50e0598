/**
 * The text form of a key: `spk_live_` or `spk_test_`, 12 base62 characters of public id, `_`, 32 of secret
 * and 6 of checksum.
 */
import type { Environment } from '../model.ts'
import { crc32 } from './checksum.ts'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
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
export function keyIdIn(text: string, prefix: string): string | undefined {
  const start = prefix.length + 6
  return text.length === start + idLength + 1 + secretLength + checksumLength
    ? text.slice(start, start + idLength)
    : undefined
}

/** Whether a text has the form of a key with this prefix and the checksum of all before it at its end. */
export function isWellFormedKey(text: string, prefix: string): boolean {
  return text.startsWith(`${prefix}_`) && wholeKey.test(text.slice(prefix.length)) && hasValidChecksum(text)
}

/** Whether the last six characters of a key are the checksum of all before them. */
export function hasValidChecksum(text: string): boolean {
  return checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength)
}

/** What every key has, whatever its prefix: all that follows the prefix. */
export const KEY_SHAPE: RegExp = /_(?:live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}/

const wholeKey = new RegExp(`^${KEY_SHAPE.source}$`)

/**
 * Whether a text holds something in the shape of a key, whatever its prefix: such a value is never echoed
 * and never logged.
 */
export function holdsKey(text: string): boolean {
  return KEY_SHAPE.test(text)
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let position = 0; position < checksumLength; position++) {
    digits = alphabet.charAt(rest % 62) + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

/** Bytes from 248 up are thrown away: 248 is the largest multiple of 62 that a byte holds, so no bias. */
function randomBase62(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      if (byte < 248 && text.length < length) text += alphabet.charAt(byte % 62)
    }
  }
  return text
}
