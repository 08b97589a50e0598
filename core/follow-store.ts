import { RevisionCache, type StaleWindow } from './cache/revision-cache.ts'
import { Problem } from './http/problem.ts'
import { type Clock, createSkewWatch } from './lib/clock.ts'
import { andThen, type MaybePromise } from './lib/promise.ts'
import type { RequestLogger } from './log.ts'
import type { Revision } from './ports/facts.ts'
import { registerReplica } from './replicas.ts'
import type { Settings } from './settings.ts'

/** The calls of a store by which a service registers and reads the revision. */
interface StoreCalls {
  readonly register: Parameters<typeof registerReplica>[0]
  revision(): MaybePromise<Revision>
}

/** Registers this replica, and caches the revision of its store until the service is closed. */
export function followStore(
  { register, revision }: StoreCalls,
  { maxStalenessMs, staleIfErrorSeconds, replicaName }: Settings,
  clock: Clock,
  logger: RequestLogger,
  onChange: () => void,
  closing: AbortSignal,
) {
  const bounds = { maxStalenessMs, staleIfErrorMs: staleIfErrorSeconds * 1000 }
  const skew = createSkewWatch(clock, maxStalenessMs, logger.clockSkewed)
  const replica = registerReplica(
    register,
    replicaName,
    bounds,
    () => andThen(revisionCache.revalidate(performance.now()), storeRevision),
    skew.check,
  )
  const revisionCache = new RevisionCache(readRevision, bounds, {
    onChange,
    onUnavailable: (error) => closing.aborted || logger.storeUnavailable(error),
    onRecovered: logger.storeRecovered,
  })

  function readRevision(): MaybePromise<Revision> {
    if (closing.aborted) {
      const detail = 'The service is closed.'
      throw new Problem('store_unavailable', { detail, retryAfterSeconds: 1 }, new Error(detail))
    }
    skew.check()
    // A receipt does not wait for a replica that the store does not know.
    return andThen(replica.registered(), revision)
  }

  return {
    replica,
    revisionCache,
    clockSkewMs: skew.beyondBound,
    staleness: {
      ...bounds,
      staleWindow: () =>
        toCalendar(revisionCache.staleWindow(performance.now()), clock.now() - performance.now()),
    },
  }
}

function storeRevision({ facts, content }: Revision): Revision {
  return { facts, content: content.split(' ', 1)[0]! }
}

function toCalendar(outage: StaleWindow | undefined, start: number): StaleWindow | undefined {
  const onClock = (instant: number): number => Math.round(start + instant)
  return outage && { since: onClock(outage.since), until: onClock(outage.until) }
}
