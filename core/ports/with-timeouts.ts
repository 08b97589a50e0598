import { Problem } from '../http/problem.ts'
import { timeout } from '../lib/promise.ts'
import type { Catalog, Directory } from './directory.ts'
import type { FactSource } from './facts.ts'
import type { QuotaStore } from './quotas.ts'
import type { ReplicaRegistration } from './replicas.ts'
import type { Reports } from './reports.ts'
import type { SignupStore } from './signups.ts'

/**
 * Wraps ports so that they respond in time or throw the `Problem` `store_unavailable`, with the error as its cause.
 *
 * @param deadlineMs Milliseconds, 1 or more, after which a pending call fails.
 */
export function withTimeouts(deadlineMs: number) {
  const pending = new Set<Promise<unknown>>()

  function inTime<T>(result: Promise<T>): Promise<T> {
    const first = timeout(result, deadlineMs, () => {
      throw new Error(`no answer within ${deadlineMs} ms`)
    }).finally(() => pending.delete(first))
    pending.add(first)
    return first
  }

  /** The methods of a port that have these names. */
  function wrap<T, K extends keyof T>(port: T, ...names: readonly K[]): Pick<T, K> {
    const methods = port as Readonly<Record<K, (...args: unknown[]) => unknown>>
    const wrapped = names.map((name) => [name, (...args: unknown[]): unknown => {
      try {
        const result = methods[name](...args)
        return result instanceof Promise ? inTime(result).catch(throwUnavailable) : result
      } catch (cause) {
        return throwUnavailable(cause)
      }
    }])
    return Object.fromEntries(wrapped)
  }

  return {
    facts: (source: FactSource): FactSource => wrap(source, 'check', 'revision', 'findKey', 'recordKeyUses'),
    directory: (directory: Directory): Required<Directory> => ({
      ...wrap(
        directory,
        'listProfiles',
        'findProfile',
        'countProfiles',
        'listIndustries',
        'nextProfileChangeAt',
      ),
      ...wrap({ directoryRevision: () => directory.directoryRevision?.() ?? '' }, 'directoryRevision'),
    }),
    catalog: (catalog: Catalog): Catalog => wrap(catalog, 'findBanner', 'listPlans'),
    signups: (store: SignupStore): Pick<SignupStore, 'createSignup'> => wrap(store, 'createSignup'),
    reports: (reports: Reports): Reports => wrap(reports, 'recordUsage', 'summarise', 'listActivity'),
    quotas: (quotas: QuotaStore): QuotaStore => wrap(quotas, 'leaseQuota'),
    registration: (replica: ReplicaRegistration): ReplicaRegistration => ({
      ...replica,
      ...wrap(replica, 'registered'),
    }),
    /** Resolves when every pending call has responded or failed. Never rejects. */
    idle: (): Promise<unknown> => Promise.allSettled(pending),
  }
}

function throwUnavailable(cause: unknown): never {
  throw new Problem('store_unavailable', { retryAfterSeconds: 1 }, cause)
}
