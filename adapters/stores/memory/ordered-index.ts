/** The index of a list that is read in pages: all items in order, and those of each partner. Items are only added. */
export interface OrderedIndex<P, T extends P> {
  add(item: T, partner?: string): void
  /** All items, or those of one partner. */
  list(partner?: string): readonly T[]
  /** At most `limit` items after a position. */
  page(partner: string | undefined, after: P | undefined, limit: number): readonly T[]
}

/** @param compare Orders items, and positions between them. */
export function createOrderedIndex<P, T extends P = P>(compare: (a: P, b: P) => number): OrderedIndex<P, T> {
  const byPartner = new Map<string | undefined, T[]>([[undefined, []]])
  const list = (partner?: string) => byPartner.get(partner) ?? []

  function indexAfter(items: readonly T[], position: P): number {
    let low = 0
    for (let high = items.length; low < high;) {
      const middle = (low + high) >>> 1
      if (compare(items[middle]!, position) <= 0) low = middle + 1
      else high = middle
    }
    return low
  }

  return {
    list,
    add(item, partner) {
      for (const key of new Set([undefined, partner])) {
        const items = list(key)
        items.splice(indexAfter(items, item), 0, item)
        byPartner.set(key, items)
      }
    },
    page(partner, after, limit) {
      const items = list(partner)
      const start = after === undefined ? 0 : indexAfter(items, after)
      return items.slice(start, start + limit)
    },
  }
}
