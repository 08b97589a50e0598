/** Writes down, behind the requests, what they noted in memory. */
export interface WriteBehind {
  /** Has a write begin within the delay. */
  wake(): void
  /** Writes now. Resolves when that is done, well or not. */
  flush(): Promise<void>
}

/**
 * One write at a time, and none without something to write.
 *
 * @param delayMs How long a write waits for more to come.
 * @param write Never rejects; tells whether nothing is left. What is left is tried again after the delay, but not
 * after a flush: then nobody may be there any more to write for.
 */
export function createWriteBehind(delayMs: number, write: () => Promise<boolean>): WriteBehind {
  let timer: ReturnType<typeof setTimeout> | undefined
  let writing: Promise<boolean> = Promise.resolve(true)
  let flushes = 0

  function begin(): Promise<boolean> {
    timer = undefined
    return writing = writing.then(write)
  }

  async function retry(): Promise<void> {
    const before = flushes
    if (!await begin() && flushes === before) wake()
  }

  function wake(): void {
    timer ??= setTimeout(retry, delayMs)
  }

  return {
    wake,
    async flush() {
      flushes++
      clearTimeout(timer)
      await begin()
    },
  }
}
