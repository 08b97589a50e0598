import { sha256 } from '../../adapters/digest.ts'
import { newSettings } from '../../adapters/stores/sql/schema.ts'
import { mintKey } from '../../core/keys/format.ts'
import { MODULE_NAMES, MODULES } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import { key as keyOf, partner } from '../contract/store/samples.ts'
import { createStubStore } from './stub-store.ts'

/** A store for runtimes without SQLite: of one key of `acme`, with all scopes. @param members Replace its own. */
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
  const store = createStubStore({
    settings,
    findKey: (wanted) => wanted === id ? facts : undefined,
    ...members,
  })
  return { store, key: text }
}
