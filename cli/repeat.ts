import { once } from 'node:events'
import process from 'node:process'
import { delay } from '../core/lib/promise.ts'

const signals = ['SIGINT', 'SIGTERM'] as const

/**
 * Reads something at intervals until SIGINT or SIGTERM, which wait for no reading. Before the first reading is done,
 * signals have their usual effect.
 */
export async function* repeat<T extends object>(
  intervalMs: number,
  read: (signal: AbortSignal) => Promise<T>,
): AsyncGenerator<T, void, undefined> {
  const interrupt = new AbortController()
  const { signal } = interrupt
  const interrupted = once(signal, 'abort').then(() => undefined)
  const stop = () => interrupt.abort()
  let reading: T | undefined = await read(signal)
  for (const name of signals) process.on(name, stop)
  try {
    while (reading !== undefined) {
      yield reading
      await delay(intervalMs, signal).catch(() => {})
      reading = signal.aborted ? undefined : await Promise.race([read(signal), interrupted])
    }
  } finally {
    for (const name of signals) process.removeListener(name, stop)
  }
}
