/** How often an incomplete write is retried without a further `wake`. */
const maxRetries = 5

/**
 * Writes in the background, one write at a time.
 *
 * @param delayMs The delay between `wake` and the write.
 * @param write Never rejects; returns whether nothing is left to write. An incomplete write is retried after the delay,
 * but only a few times, so that a store that is gone does not keep the process alive, and not after a flush.
 */
export function createWriteBehind(delayMs: number, write: () => Promise<boolean>) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let writing: Promise<boolean> = Promise.resolve(true)
  let flushes = 0
  let retries = 0
  let isClosed = false

  function start(): Promise<boolean> {
    timer = undefined
    return writing = writing.then(write)
  }

  async function attempt(): Promise<void> {
    const before = flushes
    const done = await start()
    if (done) retries = 0
    else if (flushes === before && retries++ < maxRetries) schedule()
  }

  function schedule(): void {
    if (!isClosed) timer ??= setTimeout(attempt, delayMs)
  }

  async function flush(): Promise<void> {
    flushes++
    clearTimeout(timer)
    await start()
  }

  return {
    /** Schedules a write. */
    wake(): void {
      retries = 0
      schedule()
    },
    /** Writes now. Resolves when the write has ended, successfully or not. */
    flush,
    /** Writes for the last time: the store may be closed, so that `wake` does nothing from now on. */
    close(): Promise<void> {
      isClosed = true
      return flush()
    },
  }
}
