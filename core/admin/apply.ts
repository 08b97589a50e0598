import { containsKey, formatValue } from '../http/redact.ts'
import { KEY_ID_PATTERN } from '../keys/format.ts'
import { clockOf } from '../lib/clock.ts'
import { assertOptions } from '../lib/options.ts'
import type { MaybePromise } from '../lib/promise.ts'
import { SLUG_PATTERN } from '../lib/text.ts'
import { type KeyFacts, type Modules, modulesWith, type Partner } from '../model.ts'
import type { Administration, Change, Claim } from '../ports/changes.ts'
import { readRows, type Store } from '../ports/store.ts'
import type { Webhook } from '../ports/webhooks.ts'
import { AdminError } from './error.ts'
import { validateName } from './validate.ts'

/** Who administers. */
export interface Operator {
  /** The name in the audit log: 1–200 code points without control characters. */
  readonly actor: string
  /** Returns milliseconds since the epoch; by default the store's clock where machines share it, else the runtime's. */
  readonly clock?: () => number
}

const maxAttempts = 8

/**
 * @returns `apply`, which builds changes from the current facts and applies them, and builds them again when the
 * facts have changed since it was decided. An empty list changes nothing.
 * @throws {RangeError} for an actor that the audit log cannot show.
 * @throws {TypeError} for a member of the operator that does not exist, and for a value of another kind.
 */
export function createAdministrator(
  store: Pick<Store, 'revision' | 'apply' | 'clock' | 'now' | 'listModules'>,
  operator: Operator,
) {
  assertOptions('The operator', operator, { actor: 'a text', clock: 'a function' })
  const { actor, clock: now = clockOf(store).now } = operator
  const problem = validateName(actor)
  if (problem !== undefined) throw new RangeError(`The name of an operator ${problem}.`)

  /** @param buildChanges Gets all modules of the store. */
  async function apply(
    buildChanges: (modules: Modules) => MaybePromise<readonly Change[]>,
  ): Promise<readonly Change[]> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const { facts } = await store.revision()
      const changes = await buildChanges(await readModules(store))
      if (changes.length === 0 || await store.apply(changes, facts, { actor, at: now() })) return changes
    }
    const detail =
      `Nothing was changed: concurrent changes interrupted all ${maxAttempts} attempts. Try again.`
    throw new AdminError('concurrent_change', detail)
  }

  return { now, apply }
}

/** All modules of a store. */
export async function readModules(store: Pick<Store, 'listModules'>): Promise<Modules> {
  return modulesWith(await store.listModules())
}

export async function findPartner(store: Pick<Store, 'findPartner'>, slug: string): Promise<Partner> {
  // Some stores fail on text that they cannot hold, such as NUL.
  const isSlug = typeof slug === 'string' && SLUG_PATTERN.test(slug)
  const partner = isSlug ? await store.findPartner(slug) : undefined
  if (partner !== undefined) return partner
  throw new AdminError('partner_not_found', `There is no partner ${formatValue(slug)}.`)
}

export async function findKey(store: Pick<Store, 'findKey'>, id: string): Promise<KeyFacts> {
  const isId = typeof id === 'string' && KEY_ID_PATTERN.test(id)
  const facts = isId ? await store.findKey(id) : undefined
  if (facts !== undefined) return facts
  throw new AdminError(
    'key_not_found',
    containsKey(String(id))
      ? 'Pass the id of a key, the 12 characters after live_ or test_, not the whole key. ' +
        'Treat that key as exposed: rotate or revoke it.'
      : `There is no key with the id ${formatValue(id)}.`,
  )
}

/** The changes that revoke the open claims of a partner, or all. */
export async function revokeClaims(store: Administration, openAt: number, partner?: string) {
  const filter = { openAt, partner }
  const open = await Array.fromAsync(readRows<Claim>((last, rows) => store.listClaims(filter, last, rows)))
  return open.map((claim) => ({ type: 'claim.revoked', claim: { ...claim, state: 'revoked' } }) as const)
}

/** A webhook that is disabled; `undefined` if it was removed. */
export function disableWebhook(webhook: Webhook | undefined): Webhook | undefined {
  return webhook && { ...webhook, state: 'disabled', failingSince: undefined }
}
