import { indexAfter } from '../../../core/content/profile-index.ts'

/**
 * The index of a list that is read in pages: all items in order, and those of each partner. Items are only added.
 *
 * @param compare Orders items, and positions between them.
 */
export function createOrderedIndex<P, T extends P = P>(compare: (a: P, b: P) => number) {
  const byPartner = new Map<string | undefined, T[]>([[undefined, []]])
  const list = (partner?: string): readonly T[] => byPartner.get(partner) ?? []
  const startAfter = (items: readonly T[], position: P) =>
    indexAfter(items, (item) => compare(item, position) <= 0)

  return {
    /** All items, or those of one partner. */
    list,

    add(item: T, partner?: string): void {
      for (const key of new Set([undefined, partner])) {
        const items = byPartner.get(key) ?? []
        items.splice(startAfter(items, item), 0, item)
        byPartner.set(key, items)
      }
    },

    /** At most `limit` items after a position, all of them selected. */
    page(
      partner: string | undefined,
      after: P | undefined,
      limit: number,
      isSelected: (item: T) => boolean = () => true,
    ): readonly T[] {
      const items = list(partner)
      const start = after === undefined ? 0 : startAfter(items, after)
      const page: T[] = []
      for (let index = start; index < items.length && page.length < limit; index++) {
        if (isSelected(items[index]!)) page.push(items[index]!)
      }
      return page
    },
  }
}
