import type { MaybePromise } from './ports.ts'

/** Goes on with a value: at once when it is there, later when it has to be awaited. */
export function after<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** Goes on with several values: at once when all are there. */
export function afterAll<T extends readonly unknown[], R>(
  values: { readonly [Index in keyof T]: MaybePromise<T[Index]> },
  next: (values: T) => MaybePromise<R>,
): MaybePromise<R> {
  const waits = values.some((value) => value instanceof Promise)
  return waits
    ? Promise.all(values).then((settled) => next(settled as unknown as T))
    : next(values as unknown as T)
}
