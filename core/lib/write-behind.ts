/** Writes down, behind the requests, what they noted in memory. */
export interface WriteBehind {
  /** Has a write begin within the delay. */
  wake(): void
  /** Writes now. Resolves when that is done, well or not. */
  flush(): Promise<void>
}

/** How often a write that left something is tried again by itself. */
const maxRetries = 5

/**
 * One write at a time, and none without something to write.
 *
 * @param delayMs How long a write waits for more to come.
 * @param write Never rejects; tells whether nothing is left. What is left is tried again after the delay, a few
 * times; then it waits to be woken, so that a store that is gone for good keeps no process alive. After a flush
 * nothing is tried again: nobody may be there any more to write for.
 */
export function createWriteBehind(delayMs: number, write: () => Promise<boolean>): WriteBehind {
  let timer: ReturnType<typeof setTimeout> | undefined
  let writing: Promise<boolean> = Promise.resolve(true)
  let flushes = 0
  let retries = 0

  function begin(): Promise<boolean> {
    timer = undefined
    return writing = writing.then(write)
  }

  async function attempt(): Promise<void> {
    const before = flushes
    const done = await begin()
    if (done) retries = 0
    else if (flushes === before && retries++ < maxRetries) schedule()
  }

  function schedule(): void {
    timer ??= setTimeout(attempt, delayMs)
  }

  return {
    wake() {
      retries = 0
      schedule()
    },
    async flush() {
      flushes++
      clearTimeout(timer)
      await begin()
    },
  }
}
