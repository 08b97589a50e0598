import type { WebAbortSignal } from './web.ts'

/**
 * A value that may have to be awaited. A source that has its answer at hand returns it as it is, and the
 * request is then answered without a turn of the event loop.
 */
export type MaybePromise<T> = T | Promise<T>

/** Goes on with a value: at once when it is there, later when it has to be awaited. */
export function andThen<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** Goes on with several values: at once when all are there. */
export function all<T extends readonly unknown[], R>(
  values: { readonly [Index in keyof T]: MaybePromise<T[Index]> },
  next: (values: T) => MaybePromise<R>,
): MaybePromise<R> {
  const isPending = values.some((value) => value instanceof Promise)
  return isPending
    ? Promise.all(values).then((results) => next(results as unknown as T))
    : next(values as unknown as T)
}

/** Resolves after `ms` milliseconds, or rejects with the reason of `signal` when that is aborted first. */
export function delay(ms: number, signal?: WebAbortSignal): Promise<void> {
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
