export type LruCache<V> = ReturnType<typeof createLruCache<V>>

/**
 * A map that evicts entries that were not used recently. It has two generations: a used entry is in the young one, and
 * when that reaches half of the bound, it replaces the old one. A read of a young entry is one look-up and moves nothing,
 * unlike in a map in order of use.
 */
export function createLruCache<V>(maxWeight: number) {
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
    get(key: string): V | undefined {
      const entry = young.get(key)
      if (entry !== undefined) return entry.value
      const survivor = old.get(key)
      if (survivor === undefined) return undefined
      insert(key, survivor)
      return survivor.value
    },
    /** @param weight What the entry counts against the bound: 1, or its bytes. */
    set(key: string, value: V, weight = 1): void {
      if (weight <= maxWeight / 2) insert(key, { value, weight })
      else remove(key)
    },
    delete: remove,
  }
}
