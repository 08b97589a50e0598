/** Sends a query every few milliseconds, however many are pending. */
export function queryContinuously(query: () => Promise<unknown>) {
  const settled: { readonly tookMs: number; readonly error: unknown }[] = []
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
    /** @returns All outcomes, once every query has settled. */
    async stop() {
      clearInterval(timer)
      await Promise.all(all)
      return settled
    },
  }
}
