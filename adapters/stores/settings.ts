import { KEY_PREFIX_PATTERN } from '../../core/keys/format.ts'
import type { StoreSettings } from '../../core/ports/store.ts'
import { StoreError } from './store-error.ts'

/** First part of the keys of a store that was not told another. */
const defaultKeyPrefix = 'spk'

/**
 * The prefix, once it is known to be 2–10 lower-case letters or digits, a letter first.
 *
 * @throws {StoreError} `refused` when it is anything else.
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

/** What is settled when a store is made, with a cursor secret of 256 random bits. */
export function newSettings(keyPrefix: string = defaultKeyPrefix): StoreSettings {
  return { keyPrefix: checkKeyPrefix(keyPrefix), cursorSecret: randomHex(32) }
}

/** Random bytes from a CSPRNG as twice as many lower-case hexadecimal digits. */
export function randomHex(bytes: number): string {
  return Array.from(
    crypto.getRandomValues(new Uint8Array(bytes)),
    (byte) => byte.toString(16).padStart(2, '0'),
  ).join('')
}
