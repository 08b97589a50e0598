import { Problem } from '../http/problem.ts'
import { type MaybePromise, timeout, toPromise } from '../lib/promise.ts'
import type { Observer } from './observer.ts'

/**
 * How long a call may take: as long as a look-up, for which a request waits before it is admitted, or as other data.
 */
export type TimeLimit = 'lookUp' | 'data'

/** The methods of a port that a service calls, each with its time limit. */
export type TimeLimits<Port> = { readonly [Method in keyof Port]?: TimeLimit }

type Method = (...args: readonly unknown[]) => unknown

/**
 * Wraps ports so that they respond in time or throw the `Problem` `store_unavailable`, with the error as its cause; or
 * `overloaded`, if that is the `code` of the error.
 *
 * @param deadlinesMs Milliseconds, 1 or more, after which a pending call fails.
 * @param observer Its `storeCall` runs each call.
 */
export function withTimeouts(
  deadlinesMs: Readonly<Record<TimeLimit, number>>,
  observer?: Pick<Observer, 'storeCall'>,
) {
  const pending = new Set<Promise<unknown>>()

  function inTime<T>(result: Promise<T>, deadlineMs: number): Promise<T> {
    const first = timeout(result, deadlineMs, () => {
      throw new Error(`no answer within ${deadlineMs} ms`)
    }).finally(() => pending.delete(first))
    pending.add(first)
    return first
  }

  function call(run: () => unknown, deadlineMs: number, source: string | undefined): MaybePromise<unknown> {
    const throwUnavailable = (cause: unknown): never => {
      const isOverloaded = cause instanceof Error && 'code' in cause && cause.code === 'overloaded'
      const named = source === undefined ? cause : new Error(`${source}: ${cause}`, { cause })
      throw new Problem(isOverloaded ? 'overloaded' : 'store_unavailable', { retryAfterSeconds: 1 }, named)
    }
    try {
      const result = toPromise(run())
      return result instanceof Promise ? inTime(result, deadlineMs).catch(throwUnavailable) : result
    } catch (cause) {
      return throwUnavailable(cause)
    }
  }

  return {
    /**
     * The methods of a port that are in the table, without those that the port does not have.
     * @param customPort Name of a port of the embedder's own, for its errors.
     */
    wrap<Port extends object, Limits extends TimeLimits<Port>>(
      port: Port,
      limits: Limits,
      customPort?: string,
    ): Pick<Port, keyof Port & keyof Limits> {
      const methods = port as Record<string, Method | undefined>
      const wrapped: Record<string, Method> = {}
      for (const [name, limit] of Object.entries<TimeLimit>(limits as Record<string, TimeLimit>)) {
        if (methods[name] == null) continue
        const deadlineMs = deadlinesMs[limit]
        const source = customPort === undefined ? undefined : `${customPort}.${name}`
        const run: Method = (...args) => call(() => methods[name]!(...args), deadlineMs, source)
        wrapped[name] = observer?.storeCall === undefined
          ? run
          : (...args) => observer.storeCall!(name, () => run(...args))
      }
      return wrapped as Pick<Port, keyof Port & keyof Limits>
    },
    /** Resolves when every pending call has responded or failed. Never rejects. */
    idle: (): Promise<unknown> => Promise.allSettled(pending),
  }
}
