import type { Revision } from '../ports.ts'
import { createBoundedMap } from './bounded.ts'

/** The answer to a GET as it was represented once, with all that it holds good for. */
export interface KeptReply {
  /** The partner that it was made for: what the target names, and the only one that it is given to. */
  readonly partner: string
  readonly body: Uint8Array
  readonly etag: string
  /** Header fields that every use of the reply has, names and values in turn; without those of the body. */
  readonly fields: readonly string[]
  /** The revision of content it was made from, and that of facts when it shows some. */
  readonly content: string
  readonly facts: string | undefined
  /** The instant from which time alone may have changed the answer, milliseconds since the epoch. */
  readonly goodUntil: number
}

/** Replies by request target, within a bounded number of bytes. */
export interface Replies {
  /** The reply to this target if it still holds good. */
  find(target: string, revision: Revision, now: number): KeptReply | undefined
  keep(target: string, reply: KeptReply): void
}

/** What an entry costs besides its body and target, roughly, in bytes. */
const overhead = 512

/** @param maxBytes Bytes of bodies and targets together. */
export function createReplies(maxBytes: number): Replies {
  const kept = createBoundedMap<KeptReply>(maxBytes)
  return {
    find(target, revision, now) {
      const reply = kept.get(target)
      if (reply === undefined || reply.content !== revision.content || now >= reply.goodUntil) {
        return undefined
      }
      return reply.facts === undefined || reply.facts === revision.facts ? reply : undefined
    },
    keep(target, reply) {
      kept.set(target, reply, reply.body.length + target.length + overhead)
    },
  }
}
