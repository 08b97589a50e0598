/** A memory store with the facts of the proof, and the targets and bodies of its requests. */
import { createMemoryStore } from '../../../adapters/stores/memory/store.ts'
import type { Key, Partner } from '../../../core/model.ts'
import type { Change } from '../../../core/ports/changes.ts'
import type { Store } from '../../../core/ports/store.ts'
import { forge } from '../../contract/http/forgery.ts'
import {
  actor,
  banner,
  industry,
  key,
  partner,
  plan,
  profile,
  stamp,
  T0,
} from '../../contract/store/samples.ts'
import { type Endpoint, NEEDS } from './oracle.ts'

/** A key with its text. */
export interface HeldKey {
  readonly id: string
  readonly text: string
}

/** A store whose facts the proof controls. */
export interface World {
  readonly store: Store
  /** @throws when the store refuses. */
  apply(...changes: readonly Change[]): void
  createPartner(slug: string, more?: Partial<Partner>): void
  createKey(more: Partial<Key>): HeldKey
}

/** The names for bits of `NEEDS`. */
export function scopesIn(mask: number): Key['scopes'] {
  return NEEDS.filter((_, index) => mask & (1 << index)).map(({ scope }) => scope) as unknown as Key['scopes']
}

/** The names for bits of `NEEDS`. */
export function modulesIn(mask: number): Partner['modules'] {
  return NEEDS.filter((_, index) => mask & (1 << index)).map(({ module }) => module) as Partner['modules']
}

/** The bit of the scope that an endpoint needs; 0 for none. */
export function bitOf({ scope }: Endpoint): number {
  return scope === undefined ? 0 : 1 << NEEDS.findIndex((need) => need.scope === scope)
}

/** A world with two partners' banners. */
export function createWorld(): World {
  const store = createMemoryStore()
  let keys = 0

  function apply(...changes: readonly Change[]): void {
    const revision = store.revision()
    if (revision instanceof Promise || store.apply(changes, revision.facts, stamp) !== true) {
      throw new Error('The memory store did not apply the changes synchronously.')
    }
  }

  store.importContent('industries', [industry('education')], { now: T0, actor })
  store.importContent('profiles', [profile('there')], { now: T0, actor })
  store.importContent('plans', [plan], { now: T0, actor })
  store.importContent('banners', ['acme', 'globex'].map((slug) => ({ ...banner, partner: slug })), {
    now: T0,
    actor,
  })
  return {
    store,
    apply,
    createPartner: (slug, more) =>
      apply({ type: 'partner.created', partner: partner({ slug, name: slug, ...more }) }),
    createKey(more) {
      const id = `Key${String(keys++).padStart(9, '0')}`
      const text = forge('spk_live', id, `Secret${keys}`.padEnd(32, 'x'))
      const issued = key({ id, digest: store.sha256(text), hint: text.slice(-4), ...more })
      apply({ type: 'key.issued', key: issued })
      return { id, text }
    },
  }
}

/** A valid request to an endpoint, without credential, partner and address. */
export function targetOf({ path }: Endpoint): string {
  return path.replace('{slug}', 'there')
}

/** The members of a valid body besides `partner`. */
export function bodyOf({ path }: Endpoint): Record<string, unknown> {
  return path.endsWith('/signups') ? { email: 'ada@example.com', name: 'Ada Lovelace' } : {}
}
