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

/** What can be read off a key without a store. */
export interface ParsedKey {
  readonly id: string
  readonly environment: Environment
}

/** A key that nobody holds yet. */
export interface MintedKey extends ParsedKey {
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
 * Reads a key.
 *
 * @returns undefined when the text has not the form of a key with this prefix. The checksum is not looked
 * at: see {@linkcode hasValidChecksum}.
 */
export function parseKey(text: string, prefix: string): ParsedKey | undefined {
  const idStart = prefix.length + 6
  const secretStart = idStart + idLength + 1
  if (text.length !== secretStart + secretLength + checksumLength) return undefined
  if (!text.startsWith(prefix)) return undefined
  const environment = text.startsWith('_live_', prefix.length)
    ? 'live'
    : text.startsWith('_test_', prefix.length)
    ? 'test'
    : undefined
  if (environment === undefined || text.charCodeAt(secretStart - 1) !== 95) return undefined
  for (let index = idStart; index < text.length; index++) {
    if (index !== secretStart - 1 && !isBase62(text.charCodeAt(index))) return undefined
  }
  return { id: text.slice(idStart, secretStart - 1), environment }
}

/** Whether the last six characters of a key are the checksum of all before them. */
export function hasValidChecksum(text: string): boolean {
  return checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength)
}

/**
 * Whether a text holds something in the shape of a key, whatever its prefix: such a value is never echoed
 * and never logged.
 */
export function holdsKey(text: string): boolean {
  return keyShape.test(text)
}

const keyShape = /_(?:live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}/

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

function isBase62(unit: number): boolean {
  return (unit >= 48 && unit <= 57) || (unit >= 65 && unit <= 90) || (unit >= 97 && unit <= 122)
}
