import type { IssuedKey, NewKey } from '../../core/admin/key-plans.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { MODULE_NAMES } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'

/** The partner of tests that need one. */
export const PARTNER = 'acme'

/** Creates the partner, by default with every module. */
export async function createPartner(store: Store, modules: readonly string[] = MODULE_NAMES) {
  const operator = { actor: 'test' }
  const partners = createPartnerAdministration(store, operator)
  const keys = createKeyAdministration(store, operator)
  await partners.create({ slug: PARTNER, name: 'Acme', modules })
  return {
    partners,
    keys,
    /** Issues a key, by default a live one with every scope. */
    issue: (more: Partial<NewKey> = {}): Promise<IssuedKey> =>
      keys.issue({ partner: PARTNER, name: 'Plugin', environment: 'live', ...more }),
  }
}
