/** Queries in a loop, with the outcome of each. */
export interface ContinuousQueries {
  /** The number of queries that succeeded or failed so far. */
  answered(): number
  failed(): number
  /** The number of consecutive successes up to now. */
  answeredInARow(): number
  /** Stops. @returns The outcomes, once all queries have settled. */
  stop(): Promise<readonly QueryOutcome[]>
}

/** The outcome of a query. */
export interface QueryOutcome {
  readonly tookMs: number
  readonly error: unknown
}

/** Sends a query every few milliseconds, however many are pending. */
export function queryContinuously(query: () => Promise<unknown>): ContinuousQueries {
  const settled: QueryOutcome[] = []
  const all: Promise<void>[] = []
  let inARow = 0

  async function askOnce(): Promise<void> {
    const askedAt = performance.now()
    let error: unknown
    try {
      await query()
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
