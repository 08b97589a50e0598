import { Problem } from '../http/problem.ts'
import { type MaybePromise, timeout } from '../lib/promise.ts'
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

  function bounded<A extends unknown[], R>(call: (...args: A) => MaybePromise<R>) {
    return (...args: A): MaybePromise<R> => {
      try {
        const result = call(...args)
        return result instanceof Promise ? inTime(result).catch(throwUnavailable) : result
      } catch (cause) {
        return throwUnavailable(cause)
      }
    }
  }

  function inTime<T>(result: Promise<T>): Promise<T> {
    const first = timeout(result, deadlineMs, () => {
      throw new Error(`no answer within ${deadlineMs} ms`)
    }).finally(() => pending.delete(first))
    pending.add(first)
    return first
  }

  return {
    facts: (source: FactSource): FactSource => ({
      check: bounded(() => source.check()),
      revision: bounded(() => source.revision()),
      findKey: bounded((id) => source.findKey(id)),
      recordKeyUses: bounded((uses) => source.recordKeyUses(uses)),
    }),
    directory: (directory: Directory): Required<Directory> => ({
      listProfiles: bounded((partner, query, now) => directory.listProfiles(partner, query, now)),
      findProfile: bounded((partner, slug, now) => directory.findProfile(partner, slug, now)),
      countProfiles: bounded((partner, by, now) => directory.countProfiles(partner, by, now)),
      listIndustries: bounded(() => directory.listIndustries()),
      nextProfileChangeAt: bounded((partner, now) => directory.nextProfileChangeAt(partner, now)),
      directoryRevision: bounded(() => directory.directoryRevision?.() ?? ''),
    }),
    catalog: (catalog: Catalog): Catalog => ({
      findBanner: bounded((partner) => catalog.findBanner(partner)),
      listPlans: bounded(() => catalog.listPlans()),
    }),
    signups: (store: SignupStore): Pick<SignupStore, 'createSignup'> => ({
      createSignup: bounded((signup, claim) => store.createSignup(signup, claim)),
    }),
    reports: (reports: Reports): Reports => ({
      recordUsage: bounded((counts, batch, from) => reports.recordUsage(counts, batch, from)),
      summarise: bounded((partner, from, to) => reports.summarise(partner, from, to)),
      listActivity: bounded((partner, query, now) => reports.listActivity(partner, query, now)),
    }),
    quotas: (quotas: QuotaStore): QuotaStore => ({
      leaseQuota: bounded((request) => quotas.leaseQuota(request)),
    }),
    registration: (replica: ReplicaRegistration): ReplicaRegistration => ({
      ...replica,
      registered: bounded(() => replica.registered()),
    }),
    /** Resolves when every pending call has responded or failed. Never rejects. */
    idle: (): Promise<unknown> => Promise.allSettled(pending),
  }
}

function throwUnavailable(cause: unknown): never {
  throw new Problem('store_unavailable', { retryAfterSeconds: 1 }, cause)
}
