/** Writes to a map that are seen through the overlay at once and by everybody else on `commit`. */
export interface Overlay<V> {
  get(key: string): V | undefined
  set(key: string, value: V): void
  values(): Iterable<V>
  commit(): void
}

/** An overlay costs what is written to it, not what the map holds. */
export function createOverlay<V>(base: Map<string, V>): Overlay<V> {
  const written = new Map<string, V>()

  return {
    get: (key) => written.get(key) ?? base.get(key),
    set: (key, value) => void written.set(key, value),
    *values() {
      for (const [key, value] of base) yield written.get(key) ?? value
      for (const [key, value] of [...written]) if (!base.has(key)) yield value
    },
    commit() {
      for (const [key, value] of written) base.set(key, value)
    },
  }
}
