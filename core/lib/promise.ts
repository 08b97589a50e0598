import type { WebAbortSignal } from './web-globals.ts'

/** A value or a promise of it. A request whose values need no waiting gets its response without a promise. */
export type MaybePromise<T> = T | Promise<T>

/** Awaits thenables: what query builders and ORMs return is often no `Promise`, and runs when it is awaited. */
export function toPromise(value: unknown): MaybePromise<unknown> {
  return value instanceof Promise || typeof (value as PromiseLike<unknown>)?.then !== 'function'
    ? value
    : Promise.resolve(value)
}

/** Calls `next` with a value, synchronously unless it is a promise. */
export function andThen<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** The values of a tuple of values and promises. */
type Settled<T extends readonly unknown[]> = { -readonly [Index in keyof T]: Awaited<T[Index]> }

/** Calls `next` with several values, synchronously unless one is a promise. */
export function all<const T extends readonly unknown[], R>(
  values: T,
  next: (values: Settled<T>) => MaybePromise<R>,
): MaybePromise<R> {
  const isPending = values.some((value) => value instanceof Promise)
  return isPending ? Promise.all(values).then(next) : next(values as Settled<T>)
}

/**
 * Calls `work` and then `last`, whether `work` returns, throws, or settles later.
 *
 * @param last Gets what was thrown.
 */
export function lastly<T>(work: () => MaybePromise<T>, last: (error?: unknown) => void): MaybePromise<T> {
  const fail = (error: unknown): never => {
    last(error)
    throw error
  }
  let result: MaybePromise<T>
  try {
    result = work()
  } catch (error) {
    return fail(error)
  }
  const succeed = (value: T): T => {
    last()
    return value
  }
  return result instanceof Promise ? result.then(succeed, fail) : succeed(result)
}

/** Calls a function and ignores its error, whether it throws or its promise rejects. */
export function ignoreFailure(call: () => unknown): void {
  try {
    const result = call()
    if (result instanceof Promise) result.catch(() => undefined)
  } catch {
    // Ignored, as a rejection is.
  }
}

/** Resolves after `ms` milliseconds, or rejects with the reason of `signal` when that is aborted first. */
export function delay(ms: number, signal?: WebAbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', abort, { once: true })
  })
}

/** Settles as `work` does, or as `onTimeout` does when `work` is still pending after `ms` milliseconds. */
export function timeout<T>(work: Promise<T>, ms: number, onTimeout: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      try {
        resolve(onTimeout())
      } catch (error) {
        reject(error)
      }
    }, ms)
    work.finally(() => clearTimeout(timer)).then(resolve, reject)
  })
}

/** @returns Whether `work` is fulfilled within `ms` milliseconds. @throws what `work` rejects with in time. */
export function completesWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  return timeout(work.then(() => true), ms, () => false)
}
