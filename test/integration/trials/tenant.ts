import { createKeyAdministration, type IssuedKey, type KeyAdministration } from '../../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../../core/admin/partners.ts'
import { MODULE_NAMES } from '../../../core/model.ts'
import type { Store } from '../../../core/ports/store.ts'

/** The partner of a trial. */
export const PARTNER = 'acme'

/** A path with a cached response, so that requests only check the key. */
export const READ: string = `/public/plans?partner=${PARTNER}`

/** Options of `serve` without limits, so that only the key matters. */
export const NO_LIMITS: readonly string[] = ['key=0', 'signup=0', 'verify=0', 'authfail=0']
  .flatMap((limit) => ['--limit', limit])

/** The administration of the partner. */
export interface Tenant {
  readonly keys: KeyAdministration
  issue(): Promise<IssuedKey>
}

/** Creates a partner with every module. */
export async function createTenant(store: Store): Promise<Tenant> {
  const operator = { actor: 'trial' }
  await createPartnerAdministration(store, operator).create({
    slug: PARTNER,
    name: 'Acme',
    modules: MODULE_NAMES,
  })
  const keys = createKeyAdministration(store, operator)
  return { keys, issue: () => keys.issue({ partner: PARTNER, name: 'trial', environment: 'live' }) }
}
