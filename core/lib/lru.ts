/** A map of bounded weight. */
export interface LruCache<V> {
  get(key: string): V | undefined
  set(key: string, value: V): void
  delete(key: string): void
  /** Every entry, in no particular order. */
  entries(): [string, V][]
  /** The value, which `make` makes if there is none. */
  getOrMake(key: string, make: () => V): V
}

/**
 * A map that evicts entries that were not used recently. It has two generations: a used entry is in the young one,
 * and when that reaches half of the bound, it replaces the old one. A read of a young entry is one look-up and
 * moves nothing, unlike in a map in order of use.
 *
 * @param weightOf What an entry counts against the bound, always the same for an entry; default 1.
 * @param onEvict Gets those that are evicted, up to half of the bound at once.
 */
export function createLruCache<V>(
  maxWeight: number,
  weightOf: (value: V, key: string) => number = () => 1,
  onEvict?: (evicted: Map<string, V>) => void,
): LruCache<V> {
  let young = new Map<string, V>()
  let old = new Map<string, V>()
  let youngWeight = 0

  function insert(key: string, value: V): void {
    remove(key)
    const weight = weightOf(value, key)
    if (weight > maxWeight / 2) return
    if (youngWeight + weight > maxWeight / 2) {
      onEvict?.(old)
      old = young
      young = new Map()
      youngWeight = 0
    }
    young.set(key, value)
    youngWeight += weight
  }

  function remove(key: string): void {
    const value = young.get(key)
    if (value !== undefined) youngWeight -= weightOf(value, key)
    young.delete(key)
    old.delete(key)
  }

  function get(key: string): V | undefined {
    const value = young.get(key)
    if (value !== undefined) return value
    const survivor = old.get(key)
    if (survivor !== undefined) insert(key, survivor)
    return survivor
  }

  return {
    get,
    set: insert,
    delete: remove,
    entries: () => [...old, ...young],
    getOrMake(key, make) {
      const known = get(key)
      if (known !== undefined) return known
      const made = make()
      insert(key, made)
      return made
    },
  }
}
