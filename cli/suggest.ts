import { readModules } from '../core/admin/apply.ts'
import { AdminError, type AdminErrorCode } from '../core/admin/error.ts'
import { similarNames } from '../core/lib/similar-names.ts'
import type { Store } from '../core/ports/store.ts'
import { joinList } from './output/text.ts'

/** The most names that are compared: a store may have millions of partners and keys. */
const maxCompared = 10_000

/** The most characters of a name, or of a few with commas between: a longer text is something else. */
const maxNameLength = 200

/** Asks whether one of the known names that are most like this one is meant; empty when none is like it. */
export function suggest(name: string, known: readonly string[]): string {
  const parts = name.split(',')
  // Names are separated by spaces, and scopes end with the names of modules.
  if (parts.length > 1 && parts.every((part) => known.includes(part))) {
    return `\n(Did you mean ${parts.join(' ')}?)`
  }
  const ending = known.filter((each) => each.endsWith(`:${name}`))
  const similar = ending.length > 0 ? ending : similarNames(name, known)
  return similar.length === 0 ? '' : `\n(Did you mean ${joinList(similar, 'or')}?)`
}

/**
 * Adds suggestions from the store to the message about a partner, key, link, webhook, module or
 * scope that does not exist.
 */
export async function suggestStored(error: unknown, store: Store): Promise<void> {
  if (!(error instanceof AdminError)) return
  const { code, subject } = error
  if (subject !== undefined && subject.length <= maxNameLength) {
    error.message += suggest(subject, await listKnown(store, code))
  }
}

async function listKnown(store: Store, code: AdminErrorCode): Promise<readonly string[]> {
  if (code === 'partner_not_found') {
    return (await store.listPartners(undefined, maxCompared)).map(({ slug }) => slug)
  }
  if (code === 'key_not_found') return (await store.listKeys({}, undefined, maxCompared)).map(({ id }) => id)
  if (code === 'webhook_not_found') return (await store.webhooks.listWebhooks()).map(({ id }) => id)
  if (code === 'claim_not_found') {
    return (await store.listClaims({}, undefined, maxCompared)).map(({ id }) => id)
  }
  if (code === 'unknown_module' || code === 'module_not_found') return (await readModules(store)).names
  if (code === 'unknown_scope') return (await readModules(store)).scopes
  return []
}
