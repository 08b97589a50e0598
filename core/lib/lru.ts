/** A map that forgets what was not asked for lately once it is full. */
export interface LruCache<V> {
  get(key: string): V | undefined
  /** @param weight What the entry counts against the bound: 1, or its bytes. */
  set(key: string, value: V, weight?: number): void
  delete(key: string): void
}

/**
 * Two generations instead of a list in order of use: an entry that is read or written is in the young one;
 * when that has half the bound, it becomes the old one and what was in the old one is forgotten. A read
 * of a young entry is one look-up and moves nothing.
 *
 * @param maxWeight The weight of all entries together, 2 or more.
 */
export function createLruCache<V>(maxWeight: number): LruCache<V> {
  let young = new Map<string, { value: V; weight: number }>()
  let old = new Map<string, { value: V; weight: number }>()
  let youngWeight = 0

  function insert(key: string, entry: { value: V; weight: number }): void {
    remove(key)
    if (youngWeight + entry.weight > maxWeight / 2) {
      old = young
      young = new Map()
      youngWeight = 0
    }
    young.set(key, entry)
    youngWeight += entry.weight
  }

  function remove(key: string): void {
    const entry = young.get(key)
    if (entry !== undefined) youngWeight -= entry.weight
    young.delete(key)
    old.delete(key)
  }

  return {
    get(key) {
      const entry = young.get(key)
      if (entry !== undefined) return entry.value
      const survivor = old.get(key)
      if (survivor === undefined) return undefined
      insert(key, survivor)
      return survivor.value
    },
    set(key, value, weight = 1) {
      if (weight <= maxWeight / 2) insert(key, { value, weight })
      else remove(key)
    },
    delete: remove,
  }
}
