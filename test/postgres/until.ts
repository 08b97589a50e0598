import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Resolves as soon as the condition holds. For conditions without an event.
 *
 * @param what What is waited for, for the error.
 * @param deadlineMs Milliseconds, default 60,000.
 * @throws when it does not hold in time.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  deadlineMs = 60_000,
): Promise<void> {
  const end = performance.now() + deadlineMs
  while (!await condition()) {
    if (performance.now() > end) throw new Error(`Waited ${deadlineMs} ms for ${what}.`)
    await sleep(2)
  }
}

/** @throws when the promise is not settled in time. */
export async function within<T>(promise: Promise<T>, what: string, deadlineMs = 60_000): Promise<T> {
  const timer = Promise.withResolvers<never>()
  const handle = setTimeout(
    () => timer.reject(new Error(`Waited ${deadlineMs} ms for ${what}.`)),
    deadlineMs,
  )
  try {
    return await Promise.race([promise, timer.promise])
  } finally {
    clearTimeout(handle)
  }
}
