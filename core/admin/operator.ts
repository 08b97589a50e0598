import { ACTOR_RULE, isActor } from '../audit/actor.ts'
import type { Stamp } from '../audit/entry.ts'

/** Who administers. */
export interface Operator {
  /** Name that the audit trail shows: 1–200 code points without control characters. */
  readonly actor: string
  /** Gives milliseconds since the epoch, by default the store's where machines share it, else the runtime's. */
  readonly clock?: () => number
}

/**
 * Says who decides, and when, each time that it is asked.
 *
 * @throws {RangeError} when the actor is no name that the audit trail could show.
 */
export function createStamp({ actor, clock = Date.now }: Operator): () => Stamp {
  if (!isActor(actor)) throw new RangeError(ACTOR_RULE)
  return () => ({ actor, at: clock() })
}
