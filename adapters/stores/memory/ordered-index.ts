/** The index of a list that pages: all items in order, and those of each partner. Items are only ever added. */
export interface OrderedIndex<P, T extends P> {
  add(item: T, partner: string | undefined): void
  /** All items, or those of one partner. */
  list(partner: string | undefined): readonly T[]
  /** At most `limit` items after a position. */
  page(partner: string | undefined, after: P | undefined, limit: number): readonly T[]
}

/** @param compare Orders items and positions between them. */
export function createOrderedIndex<P, T extends P = P>(
  compare: (a: P, b: P) => number,
): OrderedIndex<P, T> {
  const all: T[] = []
  const byPartner = new Map<string, T[]>()

  function list(partner: string | undefined): readonly T[] {
    return partner === undefined ? all : byPartner.get(partner) ?? []
  }

  /** Where the first item after a position is. */
  function indexAfter(items: readonly T[], position: P): number {
    let low = 0
    for (let high = items.length; low < high;) {
      const middle = (low + high) >>> 1
      if (compare(items[middle]!, position) <= 0) low = middle + 1
      else high = middle
    }
    return low
  }

  function insert(items: T[], item: T): T[] {
    items.splice(indexAfter(items, item), 0, item)
    return items
  }

  return {
    list,
    add(item, partner) {
      insert(all, item)
      if (partner !== undefined) byPartner.set(partner, insert(byPartner.get(partner) ?? [], item))
    },
    page(partner, after, limit) {
      const items = list(partner)
      const start = after === undefined ? 0 : indexAfter(items, after)
      return items.slice(start, start + limit)
    },
  }
}
