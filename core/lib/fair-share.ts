/**
 * The places of a bounded buffer that owners share. Each may hold as many as are free: one owner gets half at most, and
 * those that come later still find places.
 */
export function createFairShare(places: number) {
  const held = new Map<string, number>()
  let free = places

  return {
    /** Takes a place. @returns Whether the owner may have it. */
    take(owner: string): boolean {
      const count = held.get(owner) ?? 0
      if (count >= free) return false
      held.set(owner, count + 1)
      free--
      return true
    },
    /** Frees a place that the owner holds. */
    release(owner: string): void {
      const count = held.get(owner)! - 1
      if (count === 0) held.delete(owner)
      else held.set(owner, count)
      free++
    },
    /** Frees all places. */
    clear(): void {
      held.clear()
      free = places
    },
  }
}
