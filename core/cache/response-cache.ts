import { createLruCache } from '../lib/lru.ts'
import { all, type MaybePromise } from '../lib/promise.ts'
import type { Banner } from '../model.ts'
import type { Catalog, Directory } from '../ports/directory.ts'
import type { Revision } from '../ports/facts.ts'
import type { KeyedRoute } from '../routes/route.ts'

/** The answer to a GET as it was represented once, with all that it holds good for. */
export interface CachedResponse {
  /** Where the target led, so that it need not be read again. */
  readonly route: KeyedRoute
  readonly path: string
  readonly slug: string
  /** The partner that it was made for: what the target names, and the only one that it is given to. */
  readonly partner: string
  readonly body: Uint8Array
  readonly etag: string
  /** Header fields that every use of the reply has, names and values in turn, those of the body first. */
  readonly headers: readonly string[]
  /** The revision of content it was made from, and that of facts when it shows some. */
  readonly content: string
  readonly facts: string | undefined
  /** The instant from which time alone may have changed the answer, milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Replies by request target, within a bounded number of bytes. */
export interface ResponseCache {
  /** The reply that was kept for this target, whether it still holds good or not. */
  lookup(target: string): CachedResponse | undefined
  /** Whether a target is asked for again: what nobody asks for twice is not worth keeping. */
  admit(target: string): boolean
  set(target: string, response: CachedResponse): void
}

/** What an entry costs besides its body and target, roughly, in bytes. */
const overheadBytes = 512

/** @param maxBytes Bytes of bodies and targets together, 0 or more; 0 keeps nothing. */
export function createResponseCache(maxBytes: number): ResponseCache {
  const entries = createLruCache<CachedResponse>(maxBytes)
  const doorkeeper = createDoorkeeper()
  return {
    lookup: entries.get,
    admit: (target) => doorkeeper(target) || entries.get(target) !== undefined,
    set(target, reply) {
      entries.set(target, reply, reply.body.length + target.length + overheadBytes)
    },
  }
}

/** Whether a reply is still what a handler would reply. */
export function isFresh(cached: CachedResponse, revision: Revision, now: number): boolean {
  return cached.content === revision.content && now < cached.expiresAt &&
    (cached.facts === undefined || cached.facts === revision.facts)
}

/** How many targets are remembered: a power of two. */
const doorkeeperSlots = 16_384

/**
 * Tells of a text whether it was asked about lately, and remembers that it was. Only hashes are kept, each in a
 * place of its own: what is asked for once leaves nothing to collect, and two texts that share a hash merely have
 * one of them kept early.
 */
function createDoorkeeper(): (text: string) => boolean {
  const hashes = new Uint32Array(doorkeeperSlots)
  return (text) => {
    // FNV-1a.
    let hash = 0x811c9dc5
    for (let index = 0; index < text.length; index++) {
      hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
    }
    const slot = (hash ^ (hash >>> 16)) & (doorkeeperSlots - 1)
    const seen = hashes[slot] === hash >>> 0
    hashes[slot] = hash
    return seen
  }
}

/** Knows when time alone changes what a partner sees. */
export interface ExpirySchedule {
  /**
   * The first instant after `now` at which a profile falls due or a banner comes into or out of its dates;
   * Infinity when none does.
   * @param content The revision of content.
   */
  nextChangeAt(partner: string, content: string, now: number): MaybePromise<number>
}

/** @param maxPartners For how many partners an instant is remembered. */
export function createExpirySchedule(
  directory: Directory,
  catalog: Catalog,
  maxPartners = 10_000,
): ExpirySchedule {
  const entries = createLruCache<{ readonly content: string; readonly at: number }>(maxPartners)
  return {
    nextChangeAt(partner, content, now) {
      const entry = entries.get(partner)
      if (entry !== undefined && entry.content === content && now < entry.at) return entry.at
      return all<[number | undefined, Banner | undefined], number>(
        [directory.nextProfileChangeAt(partner, now), catalog.findBanner(partner)],
        ([due, banner]) => {
          const instants = [due, banner?.startsAt, banner?.endsAt]
          const at = Math.min(
            ...instants.filter((instant) => instant !== undefined && instant > now) as number[],
          )
          entries.set(partner, { content, at })
          return at
        },
      )
    },
  }
}
