import { andThen, type MaybePromise } from '../../../core/lib/promise.ts'
import type { Store } from '../../../core/ports/store.ts'

/**
 * Adds `onChange` to a store. A change that fails calls no listener: during an outage, services keep what they have.
 */
export function withChangeListeners(store: Omit<Store, 'onChange'>): Store {
  const listeners = new Set<() => void>()

  function thenNotify<T>(change: MaybePromise<T>): MaybePromise<T> {
    return andThen(change, (result) => {
      for (const listener of listeners) listener()
      return result
    })
  }

  return {
    ...store,
    apply: (...change) => thenNotify(store.apply(...change)),
    importContent: (...records) => thenNotify(store.importContent(...records)),
    removeContent: (...records) => thenNotify(store.removeContent(...records)),
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
