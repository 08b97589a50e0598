/** What a copy into a store means for who has it open, or opens it. */
import { StoreError } from '../store-error.ts'

/** Why a store that is being copied into cannot be used. */
export function unfinishedCopy(place: string): StoreError {
  return new StoreError(
    'refused',
    `The store ${place} cannot be used: a copy into it was begun and has not been finished. The same store copy ` +
      'command goes on with it.',
  )
}

/** Why a program that had a store open while it was copied into cannot go on: all that it knows was another store's. */
export function replacedByCopy(place: string): StoreError {
  return new StoreError(
    'refused',
    `Another store was copied to ${place} while it was open. Start again to go on with what is there now.`,
  )
}
