/** Asks all the time, and keeps account of what came of it. */
export interface Asking {
  /** How many were answered or failed up to now. */
  answered(): number
  failed(): number
  /** When the last one that was answered had been asked, on the clock of `performance.now()`. */
  lastAnswered(): number
  /** Asks no more. @returns What came of each, once all are settled. */
  stop(): Promise<readonly Asked[]>
}

/** What came of one. */
export interface Asked {
  readonly askedAt: number
  readonly tookMs: number
  readonly error: unknown
}

/** Asks every few milliseconds, however many are still under way. */
export function askOnAndOn(ask: () => Promise<unknown>): Asking {
  const settled: Asked[] = []
  const all: Promise<void>[] = []
  let lastAnswered = 0

  async function askOnce(): Promise<void> {
    const askedAt = performance.now()
    let error: unknown
    try {
      await ask()
      lastAnswered = Math.max(lastAnswered, askedAt)
    } catch (thrown) {
      error = thrown ?? new Error('nothing was thrown')
    }
    settled.push({ askedAt, tookMs: performance.now() - askedAt, error })
  }

  const timer = setInterval(() => all.push(askOnce()), 5)
  return {
    answered: () => settled.filter(({ error }) => error === undefined).length,
    failed: () => settled.filter(({ error }) => error !== undefined).length,
    lastAnswered: () => lastAnswered,
    async stop() {
      clearInterval(timer)
      await Promise.all(all)
      return settled
    },
  }
}

/** Measures for how long this process is kept from doing what is due. */
export function measureLag(): { stop(): number } {
  let due = performance.now() + 5
  let most = 0
  const timer = setInterval(() => {
    const now = performance.now()
    most = Math.max(most, now - due)
    due = now + 5
  }, 5)
  return {
    /** @returns The longest lag in milliseconds. */
    stop() {
      clearInterval(timer)
      return most
    },
  }
}
