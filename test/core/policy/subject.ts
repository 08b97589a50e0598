import type { createPartnerApi } from '../../../core/api.ts'
import type { preparePrincipal } from '../../../core/keys/principal.ts'
import type { decide, explain } from '../../../core/policy/decide.ts'

/** What the proof is about: the policy and the service of one copy of `core`. */
export interface Subject {
  readonly decide: typeof decide
  readonly explain: typeof explain
  readonly preparePrincipal: typeof preparePrincipal
  readonly createPartnerApi: typeof createPartnerApi
}

/** @param core URL of the folder `core`, with a slash at its end. */
export async function loadSubject(core: URL): Promise<Subject> {
  const load = (path: string) => import(new URL(path, core).href)
  const [policy, explanation, principal, api] = await Promise.all([
    load('policy/decide.ts'),
    load('policy/explain.ts'),
    load('keys/principal.ts'),
    load('api.ts'),
  ])
  return {
    decide: policy.decide,
    explain: explanation.explain,
    preparePrincipal: principal.preparePrincipal,
    createPartnerApi: api.createPartnerApi,
  }
}
