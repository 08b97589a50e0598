import type { Stamp } from '../audit/entry.ts'
import type { Administration, FactSource, MaybePromise } from '../ports.ts'
import type { Change } from './changes.ts'
import { Refusal } from './refusal.ts'

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
