import { Problem } from './http/problem.ts'
import type { Directory, FactSource, MaybePromise, Offers, Reports, SignupStore } from './ports.ts'

/** Whatever a source of the service throws means that it does not answer; the log gets the cause. */
function answering<A extends unknown[], R>(
  ask: (...question: A) => MaybePromise<R>,
): (...question: A) => MaybePromise<R> {
  const fail = (cause: unknown): never => {
    throw new Problem('store_unavailable', { retryAfterSeconds: 1 }, cause)
  }
  return (...question) => {
    try {
      const answer = ask(...question)
      return answer instanceof Promise ? answer.catch(fail) : answer
    } catch (cause) {
      return fail(cause)
    }
  }
}

/** A source of facts that throws only `Problem` `store_unavailable`. */
export function guardFacts(source: FactSource): FactSource {
  return {
    revision: answering(() => source.revision()),
    findKey: answering((id) => source.findKey(id)),
    recordKeyUses: answering((uses) => source.recordKeyUses(uses)),
  }
}

/** A directory that throws only `Problem` `store_unavailable`. */
export function guardDirectory(directory: Directory): Required<Directory> {
  return {
    listProfiles: answering((partner, query, now) => directory.listProfiles(partner, query, now)),
    findProfile: answering((partner, slug, now) => directory.findProfile(partner, slug, now)),
    countProfiles: answering((partner, by, now) => directory.countProfiles(partner, by, now)),
    listIndustries: answering(() => directory.listIndustries()),
    nextProfileChangeAt: answering((partner, now) => directory.nextProfileChangeAt(partner, now)),
    directoryRevision: answering(() => directory.directoryRevision?.() ?? ''),
  }
}

/** Banners and plans from a source that throws only `Problem` `store_unavailable`. */
export function guardOffers(offers: Offers): Offers {
  return {
    findBanner: answering((partner) => offers.findBanner(partner)),
    listPlans: answering(() => offers.listPlans()),
  }
}

/** A place for signups that throws only `Problem` `store_unavailable`. */
export function guardSignups(store: SignupStore): SignupStore {
  return {
    createSignup: answering((signup, claim) => store.createSignup(signup, claim)),
    listSignups: answering((partner, after, limit) => store.listSignups(partner, after, limit)),
  }
}

/** Reports from a source that throws only `Problem` `store_unavailable`. */
export function guardReports(reports: Reports): Reports {
  return {
    recordUsage: answering((counts) => reports.recordUsage(counts)),
    summarise: answering((partner, from, to) => reports.summarise(partner, from, to)),
    listActivity: answering((partner, query, now) => reports.listActivity(partner, query, now)),
  }
}
