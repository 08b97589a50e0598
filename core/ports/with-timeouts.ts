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

  function inTime<T>(result: Promise<T>): Promise<T> {
    const first = timeout(result, deadlineMs, () => {
      throw new Error(`no answer within ${deadlineMs} ms`)
    }).finally(() => pending.delete(first))
    pending.add(first)
    return first
  }

  function bounded<T>(call: () => MaybePromise<T>): MaybePromise<T> {
    try {
      const result = call()
      return result instanceof Promise ? inTime(result).catch(throwUnavailable) : result
    } catch (cause) {
      return throwUnavailable(cause)
    }
  }

  return {
    facts: (source: FactSource): FactSource => ({
      check: () => bounded(() => source.check()),
      revision: () => bounded(() => source.revision()),
      findKey: (id) => bounded(() => source.findKey(id)),
      ...(source.findImportedKey && {
        findImportedKey: (text: string) => bounded(() => source.findImportedKey!(text)),
      }),
      recordKeyUses: (uses) => bounded(() => source.recordKeyUses(uses)),
    }),

    directory: (directory: Directory): Required<Directory> => ({
      listProfiles: (partner, query, now) => bounded(() => directory.listProfiles(partner, query, now)),
      findProfile: (partner, slug, now) => bounded(() => directory.findProfile(partner, slug, now)),
      countProfiles: (partner, by, now) => bounded(() => directory.countProfiles(partner, by, now)),
      listIndustries: () => bounded(() => directory.listIndustries()),
      nextProfileChangeAt: (partner, now) => bounded(() => directory.nextProfileChangeAt(partner, now)),
      directoryRevision: () => bounded(() => directory.directoryRevision?.() ?? ''),
    }),

    catalog: (catalog: Catalog): Catalog => ({
      findBanner: (partner) => bounded(() => catalog.findBanner(partner)),
      listPlans: () => bounded(() => catalog.listPlans()),
    }),

    signups: (store: SignupStore): Pick<SignupStore, 'createSignup'> => ({
      createSignup: (signup, claim) => bounded(() => store.createSignup(signup, claim)),
    }),

    reports: (reports: Reports): Pick<Reports, 'recordUsage' | 'summarise' | 'listActivity'> => ({
      recordUsage: (counts, batch, keepFrom) => bounded(() => reports.recordUsage(counts, batch, keepFrom)),
      summarise: (partner, from, to) => bounded(() => reports.summarise(partner, from, to)),
      listActivity: (partner, query, now) => bounded(() => reports.listActivity(partner, query, now)),
    }),

    quotas: (quotas: QuotaStore): QuotaStore => ({
      leaseQuota: (request) => bounded(() => quotas.leaseQuota(request)),
    }),

    registration: (replica: ReplicaRegistration): ReplicaRegistration => ({
      ...replica,
      registered: () => bounded(() => replica.registered()),
    }),

    /** Resolves when every pending call has responded or failed. Never rejects. */
    idle: (): Promise<unknown> => Promise.allSettled(pending),
  }
}

function throwUnavailable(cause: unknown): never {
  throw new Problem('store_unavailable', { retryAfterSeconds: 1 }, cause)
}
