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

/** @param maxBytes Bytes of bodies and targets together, 0 or more; 0 keeps nothing. */
export function createReplies(maxBytes: number): Replies {
  const kept = createBoundedMap<KeptReply>(maxBytes)
  const wasAskedFor = createRecollection()
  return {
    recall: kept.get,
    isWorthKeeping: (target) => wasAskedFor(target) || kept.get(target) !== undefined,
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

/** How many targets are remembered: a power of two. */
const remembered = 16_384

/**
 * Tells of a text whether it was asked about lately, and remembers that it was. Only hashes are kept, each in a
 * place of its own: what is asked for once leaves nothing to collect, and two texts that share a hash merely have
 * one of them kept early.
 */
function createRecollection(): (text: string) => boolean {
  const hashes = new Uint32Array(remembered)
  return (text) => {
    // FNV-1a.
    let hash = 0x811c9dc5
    for (let index = 0; index < text.length; index++) {
      hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
    }
    const place = (hash ^ (hash >>> 16)) & (remembered - 1)
    const known = hashes[place] === hash >>> 0
    hashes[place] = hash
    return known
  }
}
