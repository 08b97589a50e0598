import { Problem } from '../http/problem.ts'
import { type MaybePromise, timeout, toPromise } from '../lib/promise.ts'
import type { Observer } from './observer.ts'

type Methods = Readonly<Record<string, (...args: readonly unknown[]) => MaybePromise<unknown>>>

/**
 * Wraps ports so that they respond in time or throw the `Problem` `store_unavailable`, with the error as its cause; or
 * `overloaded`, if that is the `code` of the error.
 *
 * @param deadlineMs Milliseconds, 1 or more, after which a pending call fails.
 * @param observer Its `storeCall` runs each call.
 */
export function withTimeouts(deadlineMs: number, observer?: Pick<Observer, 'storeCall'>) {
  const pending = new Set<Promise<unknown>>()

  function inTime<T>(result: Promise<T>): Promise<T> {
    const first = timeout(result, deadlineMs, () => {
      throw new Error(`no answer within ${deadlineMs} ms`)
    }).finally(() => pending.delete(first))
    pending.add(first)
    return first
  }

  function call(
    port: Methods,
    name: string,
    args: readonly unknown[],
    customPort: string | undefined,
  ): MaybePromise<unknown> {
    const throwUnavailable = (cause: unknown): never => {
      const isOverloaded = cause instanceof Error && 'code' in cause && cause.code === 'overloaded'
      const named = customPort === undefined ? cause : new Error(`${customPort}.${name}: ${cause}`, { cause })
      throw new Problem(isOverloaded ? 'overloaded' : 'store_unavailable', { retryAfterSeconds: 1 }, named)
    }
    try {
      const result = toPromise(port[name]!(...args))
      return result instanceof Promise ? inTime(result).catch(throwUnavailable) : result
    } catch (cause) {
      return throwUnavailable(cause)
    }
  }

  return {
    /**
     * The methods with these names that the port has.
     * @param customPort Name of a port of the embedder's own, for its errors.
     */
    wrap<P extends object, N extends keyof P & string>(
      port: P,
      names: readonly N[],
      customPort?: string,
    ): Pick<P, N> {
      const methods = port as unknown as Methods
      const entries = names.filter((name) => methods[name] != null).map((name) => [
        name,
        observer?.storeCall === undefined
          ? (...args: unknown[]) => call(methods, name, args, customPort)
          : (...args: unknown[]) => observer.storeCall!(name, () => call(methods, name, args, customPort)),
      ])
      return Object.fromEntries(entries) as unknown as Pick<P, N>
    },
    /** Resolves when every pending call has responded or failed. Never rejects. */
    idle: (): Promise<unknown> => Promise.allSettled(pending),
  }
}
