import { Problem } from './http/problem.ts'
import type { QuotaLedger } from './limits/ledger.ts'
import type { Directory, FactSource, MaybePromise, Offers, Reports, SignupStore } from './ports.ts'
import type { Membership } from './replicas/registry.ts'

type Ask<A extends unknown[], R> = (...question: A) => MaybePromise<R>

/** Makes ports of the service that throw only `Problem` `store_unavailable`, and in time. */
export interface Guard {
  facts(source: FactSource): FactSource
  directory(directory: Directory): Required<Directory>
  offers(offers: Offers): Offers
  signups(store: SignupStore): SignupStore
  reports(reports: Reports): Reports
  quotas(ledger: QuotaLedger): QuotaLedger
  membership(membership: Membership): Membership
  /** Resolves when whatever is being asked is answered, or is not waited for any longer. Never rejects. */
  settled(): Promise<unknown>
}

/**
 * Whatever a source of the service throws means that it does not answer, and so does silence; the log gets the
 * cause.
 *
 * @param deadlineMs Milliseconds, 1 or more, after which an answer that is awaited is not awaited any longer.
 */
export function createGuard(deadlineMs: number): Guard {
  const awaited = new Set<Promise<unknown>>()

  function answering<A extends unknown[], R>(ask: Ask<A, R>): Ask<A, R> {
    return (...question) => {
      try {
        const answer = ask(...question)
        return answer instanceof Promise ? inTime(answer).catch(fail) : answer
      } catch (cause) {
        return fail(cause)
      }
    }
  }

  function inTime<T>(answer: Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout>
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${deadlineMs} ms`)), deadlineMs)
    })
    const first = Promise.race([answer, late]).finally(() => {
      clearTimeout(timer)
      awaited.delete(first)
    })
    awaited.add(first)
    return first
  }

  return {
    facts: (source) => ({
      check: answering(() => source.check()),
      revision: answering(() => source.revision()),
      findKey: answering((id) => source.findKey(id)),
      recordKeyUses: answering((uses) => source.recordKeyUses(uses)),
    }),
    directory: (directory) => ({
      listProfiles: answering((partner, query, now) => directory.listProfiles(partner, query, now)),
      findProfile: answering((partner, slug, now) => directory.findProfile(partner, slug, now)),
      countProfiles: answering((partner, by, now) => directory.countProfiles(partner, by, now)),
      listIndustries: answering(() => directory.listIndustries()),
      nextProfileChangeAt: answering((partner, now) => directory.nextProfileChangeAt(partner, now)),
      directoryRevision: answering(() => directory.directoryRevision?.() ?? ''),
    }),
    offers: (offers) => ({
      findBanner: answering((partner) => offers.findBanner(partner)),
      listPlans: answering(() => offers.listPlans()),
    }),
    signups: (store) => ({
      createSignup: answering((signup, claim) => store.createSignup(signup, claim)),
      listSignups: answering((partner, after, limit) => store.listSignups(partner, after, limit)),
    }),
    reports: (reports) => ({
      recordUsage: answering((counts, batch, from) => reports.recordUsage(counts, batch, from)),
      summarise: answering((partner, from, to) => reports.summarise(partner, from, to)),
      listActivity: answering((partner, query, now) => reports.listActivity(partner, query, now)),
    }),
    quotas: (ledger) => ({ leaseQuota: answering((ask) => ledger.leaseQuota(ask)) }),
    membership: (membership) => ({ ...membership, joined: answering(() => membership.joined()) }),
    settled: () => Promise.allSettled(awaited),
  }
}

function fail(cause: unknown): never {
  throw new Problem('store_unavailable', { retryAfterSeconds: 1 }, cause)
}
