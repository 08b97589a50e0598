import { containsKey, formatValue } from '../http/redact.ts'
import { KEY_ID_PATTERN } from '../keys/format.ts'
import { clockOf } from '../lib/clock.ts'
import { assertOptions, assertStore } from '../lib/options.ts'
import type { MaybePromise } from '../lib/promise.ts'
import { SLUG_PATTERN } from '../content/scalars.ts'
import { type KeyFacts, type Modules, modulesWith, type Partner } from '../model.ts'
import type { Administration, Change, Claim } from '../ports/changes.ts'
import { readRows, type Store } from '../ports/store.ts'
import type { Webhook } from '../ports/webhooks.ts'
import { AdminError, notFoundError } from './error.ts'
import { findNameProblem } from './validate.ts'

/** Who administers. */
export interface Operator {
  /** The name in the audit log: 1–200 code points without control characters. */
  readonly actor: string
  /** Returns milliseconds since the epoch; by default the store's clock where machines share it, else the runtime's. */
  readonly clock?: () => number
}

/** An operator who may look at changes instead of making them. */
export interface PreviewingOperator extends Operator {
  /** Gets the changes of each call, which are not applied. */
  readonly preview?: (changes: readonly Change[]) => Promise<void>
}

/** Applies the changes of an operator to a store. */
export interface Administrator {
  readonly actor: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Whether changes are only looked at. */
  readonly isPreview: boolean
  /**
   * Builds changes from the current facts and applies them, and builds them again when the facts have changed since. An
   * empty list changes nothing.
   *
   * @param build Gets all modules of the store. @returns What it built last.
   * @throws {AdminError} `concurrent_change`
   */
  applyPlan<P extends { readonly changes: readonly Change[] }>(
    build: (modules: Modules) => MaybePromise<P>,
  ): Promise<P>
  /** Builds and applies a list of changes as `applyPlan` does, and returns the list. */
  apply(build: (modules: Modules) => MaybePromise<readonly Change[]>): Promise<readonly Change[]>
}

const maxAttempts = 8

/**
 * @throws {RangeError} for an actor that the audit log cannot show.
 * @throws {TypeError} for a member of the operator that does not exist, and for a value of another kind.
 */
export function createAdministrator(
  store: Pick<Store, 'revision' | 'apply' | 'clock' | 'now' | 'listModules'>,
  operator: PreviewingOperator,
): Administrator {
  assertOptions<PreviewingOperator>('The operator', operator, {
    actor: 'a text',
    clock: 'a function',
    preview: 'a function',
  })
  const { actor, clock, preview } = operator
  assertStore('The administration', store)
  const { now } = clockOf(store, clock)
  const problem = findNameProblem(actor)
  if (problem !== undefined) throw new RangeError(`The name of an operator ${problem}.`)

  /** @returns Whether the facts are still those that the changes were built from. */
  async function commit(changes: readonly Change[], facts: string): Promise<boolean> {
    if (preview === undefined) return await store.apply(changes, facts, { actor, at: now() })
    await preview(changes)
    return true
  }

  async function applyPlan<P extends { readonly changes: readonly Change[] }>(
    build: (modules: Modules) => MaybePromise<P>,
  ): Promise<P> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const { facts } = await store.revision()
      const plan = await build(await readModules(store))
      if (plan.changes.length === 0 || await commit(plan.changes, facts)) return plan
    }
    const detail =
      `Nothing was changed: concurrent changes interrupted all ${maxAttempts} attempts. Try again.`
    throw new AdminError('concurrent_change', detail)
  }

  async function apply(
    build: (modules: Modules) => MaybePromise<readonly Change[]>,
  ): Promise<readonly Change[]> {
    const { changes } = await applyPlan(async (modules) => ({ changes: await build(modules) }))
    return changes
  }

  return { actor, now, isPreview: preview !== undefined, applyPlan, apply }
}

/** All modules of a store. */
export async function readModules(store: Pick<Store, 'listModules'>): Promise<Modules> {
  return modulesWith(await store.listModules())
}

/** Finds a partner by its slug, in any state. @throws {AdminError} `partner_not_found` */
export async function findPartner(store: Pick<Store, 'findPartner'>, slug: string): Promise<Partner> {
  // Some stores fail on text that they cannot hold, such as NUL.
  const isSlug = typeof slug === 'string' && SLUG_PATTERN.test(slug)
  const partner = isSlug ? await store.findPartner(slug) : undefined
  if (partner !== undefined) return partner
  throw notFoundError('partner_not_found', `There is no partner ${formatValue(slug)}.`, slug)
}

/** Finds a key by its id, in any state, with its partner. @throws {AdminError} `key_not_found` */
export async function findKey(store: Pick<Store, 'findKey'>, id: string): Promise<KeyFacts> {
  const isId = typeof id === 'string' && KEY_ID_PATTERN.test(id)
  const facts = isId ? await store.findKey(id) : undefined
  if (facts !== undefined) return facts
  if (containsKey(String(id))) {
    const advice = 'Pass the id of a key, the 12 characters after live_ or test_, not the whole key.'
    throw new AdminError('key_not_found', `${advice} Treat that key as exposed: rotate or revoke it.`)
  }
  throw notFoundError('key_not_found', `There is no key with the id ${formatValue(id)}.`, id)
}

/** The claims of a partner, or of all, that can be used at an instant. */
export async function listOpenClaims(
  store: Administration,
  openAt: number,
  partner?: string,
): Promise<readonly Claim[]> {
  const filter = { openAt, partner }
  return await Array.fromAsync(readRows<Claim>((last, rows) => store.listClaims(filter, last, rows)))
}

/** The changes that revoke claims. */
export function claimRevocations(claims: readonly Claim[]): readonly Change[] {
  return claims.map((claim): Change => ({ type: 'claim.revoked', claim: { ...claim, state: 'revoked' } }))
}

/** A webhook as it is once it is disabled; `undefined` if it was removed. */
export function toDisabledWebhook(webhook: Webhook | undefined): Webhook | undefined {
  return webhook && { ...webhook, state: 'disabled', failingSince: undefined }
}
