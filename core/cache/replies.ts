import type { Revision } from '../ports.ts'
import type { KeyedRoute } from '../routes/route.ts'
import { createBoundedMap } from './bounded.ts'

/** The answer to a GET as it was represented once, with all that it holds good for. */
export interface KeptReply {
  /** Where the target led, so that it need not be read again. */
  readonly route: KeyedRoute
  readonly path: string
  readonly slug: string
  /** The partner that it was made for: what the target names, and the only one that it is given to. */
  readonly partner: string
  readonly body: Uint8Array
  readonly etag: string
  /** Header fields that every use of the reply has, names and values in turn, those of the body first. */
  readonly fields: readonly string[]
  /** The revision of content it was made from, and that of facts when it shows some. */
  readonly content: string
  readonly facts: string | undefined
  /** The instant from which time alone may have changed the answer, milliseconds since the epoch. */
  readonly goodUntil: number
}

/** Replies by request target, within a bounded number of bytes. */
export interface Replies {
  /** The reply that was kept for this target, whether it still holds good or not. */
  recall(target: string): KeptReply | undefined
  /** Whether a target is asked for again: what nobody asks for twice is not worth keeping. */
  isWorthKeeping(target: string): boolean
  keep(target: string, reply: KeptReply): void
}

/** What an entry costs besides its body and target, roughly, in bytes. */
const overhead = 512
/** What part of the bytes may go to targets that were asked for once. */
const askedOnceShare = 1 / 8

/** @param maxBytes Bytes of bodies and targets together, 0 or more; 0 keeps nothing. */
export function createReplies(maxBytes: number): Replies {
  const kept = createBoundedMap<KeptReply>(maxBytes)
  const askedOnce = createBoundedMap<true>(maxBytes * askedOnceShare)
  return {
    recall: kept.get,
    isWorthKeeping(target) {
      if (kept.get(target) !== undefined || askedOnce.get(target)) return true
      askedOnce.set(target, true, target.length + overhead)
      return false
    },
    keep(target, reply) {
      kept.set(target, reply, reply.body.length + target.length + overhead)
    },
  }
}

/** Whether a reply is still what a handler would reply. */
export function holdsGood(reply: KeptReply, revision: Revision, now: number): boolean {
  return reply.content === revision.content && now < reply.goodUntil &&
    (reply.facts === undefined || reply.facts === revision.facts)
}
