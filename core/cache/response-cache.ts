import { type CachedBody, encode } from '../http/message.ts'
import { createLruCache } from '../lib/lru.ts'
import { all, andThen, ignoreFailure, type MaybePromise } from '../lib/promise.ts'
import type { Catalog, Directory } from '../ports/directory.ts'
import type { Revision } from '../ports/facts.ts'

/** A response to a GET, with everything that its reuse depends on. */
export interface CachedResponse<Route> extends CachedBody {
  /** What the target was routed to, so that it is not parsed again. */
  readonly route: Route
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  /** The partner that the target names, and the only one that gets this response. */
  readonly partner: string
  /** The revision of content that it was made from; of an endpoint of the host's own, its revision. */
  readonly content: string
  /** The revision of facts, when the response depends on it. */
  readonly facts: string | undefined
  /** The instant that it was made at, milliseconds since the epoch: a clock may go back. */
  readonly madeAt: number
  /** The instant from which time alone may change the response, milliseconds since the epoch. */
  readonly expiresAt: number
}

/** A response to cache. */
interface StoredResponse<Route> extends Omit<CachedResponse<Route>, 'madeAt' | 'expiresAt'> {
  /** When the response expires; by default, the next instant at which time alone changes what the partner sees. */
  readonly expiresAt?: number | undefined
}

/** Responses by their targets. */
export interface ResponseCache<Route> {
  /** The response to this target, fresh or not. */
  lookup(target: string): CachedResponse<Route> | undefined
  /** Caches a response if its target was requested before. The request does not wait for that or fail by it. */
  store(target: string, now: number, response: StoredResponse<Route>): void
}

/** The rough size of an entry besides its body and target, in bytes, with what is evicted and not yet collected. */
const overheadBytes = 4096

/** @param maxBytes Bytes of bodies and targets together; 0 caches nothing. */
export function createResponseCache<Route>(
  maxBytes: number,
  directory: Directory,
  catalog: Catalog,
): ResponseCache<Route> {
  const entries = createLruCache<CachedResponse<Route>>(
    maxBytes,
    // Node keeps the text of a body, too.
    ({ body }, target) => 2 * body.length + target.length + overheadBytes,
  )
  const wasRequested = createAdmissionFilter()
  const nextChangeAt = createExpirySchedule(directory, catalog)

  return {
    lookup: entries.get,
    store(target, now, response) {
      if (maxBytes === 0 || !wasRequested(target) && entries.get(target) === undefined) return
      const setUntil = (expiresAt: number): void => {
        const body = typeof response.body === 'string' ? encode(response.body) : response.body
        entries.set(target, { ...response, body, madeAt: now, expiresAt })
      }
      // The response itself is complete.
      ignoreFailure(() => {
        const { expiresAt = nextChangeAt(response.partner, response.content, now) } = response
        return andThen(expiresAt, setUntil)
      })
    },
  }
}

/** Whether a handler would still return the same. */
export function isFresh(cached: CachedResponse<unknown>, revision: Revision, now: number): boolean {
  return cached.content === revision.content && now >= cached.madeAt && now < cached.expiresAt &&
    (cached.facts === undefined || cached.facts === revision.facts)
}

/** A power of two. */
const filterSlots = 16_384

/**
 * @returns Whether a text was passed recently. It keeps a hash per slot and no text, so that a target that is requested
 * once leaves nothing to collect; two texts with the same hash only get one of them cached early.
 */
function createAdmissionFilter(): (text: string) => boolean {
  const hashes = new Uint32Array(filterSlots)
  return (text) => {
    // FNV-1a.
    let hash = 0x811c9dc5
    for (let index = 0; index < text.length; index++) {
      hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
    }
    const slot = (hash ^ (hash >>> 16)) & (filterSlots - 1)
    const isKnown = hashes[slot] === hash >>> 0
    hashes[slot] = hash
    return isKnown
  }
}

const maxSchedules = 10_000

/** @returns The first instant after `now` at which time alone changes what a partner sees, or Infinity. */
function createExpirySchedule(
  directory: Directory,
  catalog: Catalog,
): (partner: string, content: string, now: number) => MaybePromise<number> {
  const entries = createLruCache<{ readonly content: string; readonly from: number; readonly at: number }>(
    maxSchedules,
  )
  return (partner, content, now) => {
    const entry = entries.get(partner)
    const isKnown = entry?.content === content && now >= entry.from && now < entry.at
    if (isKnown) return entry.at
    return all(
      [directory.nextProfileChangeAt(partner, now), catalog.findBanner(partner)],
      ([due, banner]) => {
        const instants = [due, banner?.startsAt, banner?.endsAt]
        const at = Math.min(
          ...instants.filter((instant) => instant !== undefined && instant > now) as number[],
        )
        entries.set(partner, { content, from: now, at })
        return at
      },
    )
  }
}
