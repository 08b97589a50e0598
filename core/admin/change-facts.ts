import { ACTOR_RULE, isActor } from '../audit/actor.ts'
import type { Stamp } from '../audit/entry.ts'
import type { Administration, FactSource, MaybePromise } from '../ports.ts'
import type { Change } from './changes.ts'
import { Refusal } from './refusal.ts'

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

const maxAttempts = 8

/**
 * Applies what `decide` decides, provided that the facts it read are still so; decides anew when they have
 * been changed meanwhile. No changes are nothing to apply.
 *
 * @param stamp Who decides, and when.
 * @param decide Reads the facts afresh and applies the rules to them.
 * @returns What was applied.
 * @throws {Refusal} `concurrent_change` when the facts changed under eight decisions in a row.
 */
export async function changeFacts(
  store: Pick<FactSource & Administration, 'revision' | 'apply'>,
  stamp: () => Stamp,
  decide: () => MaybePromise<readonly Change[]>,
): Promise<readonly Change[]> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const { facts } = await store.revision()
    const changes = await decide()
    if (changes.length === 0 || await store.apply(changes, facts, stamp())) return changes
  }
  throw new Refusal(
    'concurrent_change',
    `Nothing was changed: others changed the facts under all ${maxAttempts} attempts. Try again.`,
  )
}
