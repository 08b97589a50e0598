import { sha256 } from '../../adapters/digest.ts'
import { newSettings } from '../../adapters/stores/sql/schema.ts'
import { mintKey } from '../../core/keys/format.ts'
import { MODULE_NAMES, MODULES } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import { key as keyOf, partner } from '../contract/store/samples.ts'

/**
 * A store for runtimes without SQLite: of one key of `acme`, with all scopes. It has only what a service calls for the
 * requests of the tests.
 */
export function createOneKeyStore(
  members: Partial<Store> = {},
): { readonly store: Store; readonly key: string } {
  const settings = newSettings(undefined)
  const { id, text } = mintKey(settings.keyPrefix, 'live')
  const scopes = MODULE_NAMES.map((name) => MODULES[name].scope)
  const facts = {
    key: keyOf({ id, digest: sha256(text), scopes }),
    partner: partner({ name: 'Acme', modules: MODULE_NAMES }),
  }
  const needed: Partial<Store> = {
    settings,
    sha256,
    check() {},
    revision: () => ({ facts: 'unchanging', content: 'unchanging' }),
    findKey: (wanted) => wanted === id ? facts : undefined,
    listPlans: () => [],
    recordKeyUses() {},
    recordUsage() {},
    ...members,
  }
  return { store: needed as Store, key: text }
}
