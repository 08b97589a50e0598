/** Asks all the time, and keeps account of what came of it. */
export interface Asking {
  /** How many were answered or failed up to now. */
  answered(): number
  failed(): number
  /** How many of the last ones were answered, one after the other. */
  answeredInARow(): number
  /** Asks no more. @returns What came of each, once all are settled. */
  stop(): Promise<readonly Asked[]>
}

/** What came of one. */
export interface Asked {
  readonly tookMs: number
  readonly error: unknown
}

/** Asks every few milliseconds, however many are still under way. */
export function askOnAndOn(ask: () => Promise<unknown>): Asking {
  const settled: Asked[] = []
  const all: Promise<void>[] = []
  let inARow = 0

  async function askOnce(): Promise<void> {
    const askedAt = performance.now()
    let error: unknown
    try {
      await ask()
      inARow++
    } catch (thrown) {
      inARow = 0
      error = thrown ?? new Error('nothing was thrown')
    }
    settled.push({ tookMs: performance.now() - askedAt, error })
  }

  const timer = setInterval(() => all.push(askOnce()), 5)
  return {
    answered: () => settled.filter(({ error }) => error === undefined).length,
    failed: () => settled.filter(({ error }) => error !== undefined).length,
    answeredInARow: () => inARow,
    async stop() {
      clearInterval(timer)
      await Promise.all(all)
      return settled
    },
  }
}
