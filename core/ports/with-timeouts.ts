import { Problem } from '../http/problem.ts'
import { type MaybePromise, timeout } from '../lib/promise.ts'
import type { Catalog, Directory } from './directory.ts'
import type { FactSource } from './facts.ts'
import type { QuotaStore } from './quotas.ts'
import type { ReplicaRegistration } from './replicas.ts'
import type { Reports } from './reports.ts'
import type { SignupStore } from './signups.ts'

type PortCall<A extends unknown[], R> = (...question: A) => MaybePromise<R>

/** Makes ports of the service that throw only `Problem` `store_unavailable`, and in time. */
export interface PortTimeouts {
  facts(source: FactSource): FactSource
  directory(directory: Directory): Required<Directory>
  catalog(offers: Catalog): Catalog
  signups(store: SignupStore): SignupStore
  reports(reports: Reports): Reports
  quotas(ledger: QuotaStore): QuotaStore
  membership(membership: ReplicaRegistration): ReplicaRegistration
  /** Resolves when whatever is being asked is answered, or is not waited for any longer. Never rejects. */
  idle(): Promise<unknown>
}

/**
 * Whatever a source of the service throws means that it does not answer, and so does silence; the log gets the
 * cause.
 *
 * @param deadlineMs Milliseconds, 1 or more, after which an answer that is awaited is not awaited any longer.
 */
export function withTimeouts(deadlineMs: number): PortTimeouts {
  const pending = new Set<Promise<unknown>>()

  function bounded<A extends unknown[], R>(ask: PortCall<A, R>): PortCall<A, R> {
    return (...question) => {
      try {
        const answer = ask(...question)
        return answer instanceof Promise ? inTime(answer).catch(throwUnavailable) : answer
      } catch (cause) {
        return throwUnavailable(cause)
      }
    }
  }

  function inTime<T>(answer: Promise<T>): Promise<T> {
    const first = timeout(answer, deadlineMs, () => {
      throw new Error(`no answer within ${deadlineMs} ms`)
    }).finally(() => pending.delete(first))
    pending.add(first)
    return first
  }

  return {
    facts: (source) => ({
      check: bounded(() => source.check()),
      revision: bounded(() => source.revision()),
      findKey: bounded((id) => source.findKey(id)),
      recordKeyUses: bounded((uses) => source.recordKeyUses(uses)),
    }),
    directory: (directory) => ({
      listProfiles: bounded((partner, query, now) => directory.listProfiles(partner, query, now)),
      findProfile: bounded((partner, slug, now) => directory.findProfile(partner, slug, now)),
      countProfiles: bounded((partner, by, now) => directory.countProfiles(partner, by, now)),
      listIndustries: bounded(() => directory.listIndustries()),
      nextProfileChangeAt: bounded((partner, now) => directory.nextProfileChangeAt(partner, now)),
      directoryRevision: bounded(() => directory.directoryRevision?.() ?? ''),
    }),
    catalog: (offers) => ({
      findBanner: bounded((partner) => offers.findBanner(partner)),
      listPlans: bounded(() => offers.listPlans()),
    }),
    signups: (store) => ({
      createSignup: bounded((signup, claim) => store.createSignup(signup, claim)),
      listSignups: bounded((partner, after, limit) => store.listSignups(partner, after, limit)),
    }),
    reports: (reports) => ({
      recordUsage: bounded((counts, batch, from) => reports.recordUsage(counts, batch, from)),
      summarise: bounded((partner, from, to) => reports.summarise(partner, from, to)),
      listActivity: bounded((partner, query, now) => reports.listActivity(partner, query, now)),
    }),
    quotas: (ledger) => ({ leaseQuota: bounded((ask) => ledger.leaseQuota(ask)) }),
    membership: (membership) => ({ ...membership, registered: bounded(() => membership.registered()) }),
    idle: () => Promise.allSettled(pending),
  }
}

function throwUnavailable(cause: unknown): never {
  throw new Problem('store_unavailable', { retryAfterSeconds: 1 }, cause)
}
