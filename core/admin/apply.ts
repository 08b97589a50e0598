import { containsKey, formatValue } from '../http/redact.ts'
import { KEY_ID_PATTERN } from '../keys/format.ts'
import type { MaybePromise } from '../lib/promise.ts'
import { SLUG_PATTERN } from '../lib/text.ts'
import type { KeyFacts, Partner } from '../model.ts'
import type { Administration, AuditContext, Change } from '../ports/changes.ts'
import type { FactSource } from '../ports/facts.ts'
import { ACTOR_RULE, AdminError, isValidActor } from './validate.ts'

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
export function createAuditContext({ actor, clock = Date.now }: Operator): () => AuditContext {
  if (!isValidActor(actor)) throw new RangeError(ACTOR_RULE)
  return () => ({ actor, at: clock() })
}

const maxAttempts = 8

/**
 * Applies what `decide` decides, provided that the facts it read are still so; decides anew when they have
 * been changed meanwhile. No changes are nothing to apply.
 *
 * @param auditContext Who decides, and when.
 * @param buildChanges Reads the facts afresh and applies the rules to them.
 * @returns What was applied.
 * @throws {AdminError} `concurrent_change` when the facts changed under eight decisions in a row.
 */
export async function applyWithRetry(
  store: Pick<FactSource & Administration, 'revision' | 'apply'>,
  auditContext: () => AuditContext,
  buildChanges: () => MaybePromise<readonly Change[]>,
): Promise<readonly Change[]> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const { facts } = await store.revision()
    const changes = await buildChanges()
    if (changes.length === 0 || await store.apply(changes, facts, auditContext())) return changes
  }
  throw new AdminError(
    'concurrent_change',
    `Nothing was changed: others changed the facts under all ${maxAttempts} attempts. Try again.`,
  )
}

/** The partner with this slug, removed or not. @throws {AdminError} `partner_not_found` */
export async function findPartner(
  store: Pick<Administration, 'findPartner'>,
  slug: string,
): Promise<Partner> {
  // A store is never asked for what it could not even keep: some refuse text with NUL in it.
  const partner = SLUG_PATTERN.test(slug) ? await store.findPartner(slug) : undefined
  if (partner !== undefined) return partner
  throw new AdminError('partner_not_found', `There is no partner ${formatValue(slug)}.`)
}

/** The key with this public id, whatever its state, and its partner. @throws {AdminError} `key_not_found` */
export async function findKey(store: Pick<FactSource, 'findKey'>, id: string): Promise<KeyFacts> {
  const facts = KEY_ID_PATTERN.test(id) ? await store.findKey(id) : undefined
  if (facts !== undefined) return facts
  throw new AdminError(
    'key_not_found',
    containsKey(id)
      ? 'A whole key arrived where its id belongs, the 12 characters after live_ or test_. ' +
        'Treat that key as exposed: rotate or revoke it.'
      : `There is no key with the id ${formatValue(id)}.`,
  )
}
