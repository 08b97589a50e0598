import { StoreError } from './store-error.ts'

/** Why a store that is being copied into cannot be used. */
export function unfinishedCopy(place: string): StoreError {
  return new StoreError(
    'refused',
    `The store ${place} cannot be used: a copy into it was begun and has not been finished. The same store copy ` +
      'command goes on with it.',
  )
}
