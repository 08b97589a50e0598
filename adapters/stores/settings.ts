import { KEY_PREFIX_PATTERN } from '../../core/keys/format.ts'
import type { StoreSettings } from '../../core/ports/store.ts'
import { StoreError } from './store-error.ts'

/**
 * @returns The prefix: 2–10 lower-case letters or digits, a letter first.
 * @throws {StoreError} `refused` for any other text.
 */
export function checkKeyPrefix(prefix: string): string {
  if (KEY_PREFIX_PATTERN.test(prefix)) return prefix
  throw new StoreError(
    'refused',
    `The key prefix ${
      JSON.stringify(prefix)
    } is not 2 to 10 lower-case letters or digits with a letter first.`,
  )
}

export function keyPrefixInUseError(place: string, from: string, to: string): StoreError {
  return new StoreError(
    'refused',
    `The key prefix of ${place} cannot become ${to}: it holds keys that begin with ${from}.`,
  )
}

/** The settings of a new store, with a cursor secret of 256 random bits. */
export function newSettings(keyPrefix: string = 'spk'): StoreSettings {
  return { keyPrefix: checkKeyPrefix(keyPrefix), cursorSecret: randomHex(32) }
}

/** Random bytes from the CSPRNG in lower-case hexadecimal, two digits each. */
export function randomHex(bytes: number): string {
  return Array.from(
    crypto.getRandomValues(new Uint8Array(bytes)),
    (byte) => byte.toString(16).padStart(2, '0'),
  ).join('')
}
