/**
 * The fixture of the HTTP tests: the demo content, records that partners may not see, and partners and keys in every
 * state. Created through the administration API; tests compare responses with the imported lines.
 */
import { readFileSync } from 'node:fs'
import { importKeys, type KeyImportOptions, type KeyImportReport } from '../../core/admin/import-keys.ts'
import type { ClaimRequest } from '../../core/admin/claim-request.ts'
import { createClaim, revokeClaim } from '../../core/admin/claims.ts'
import type { NewKey } from '../../core/admin/key-plans.ts'
import { createKeyAdministration, type KeyAdministration } from '../../core/admin/keys.ts'
import { createModuleAdministration, type ModuleAdministration } from '../../core/admin/modules.ts'
import { createPartnerAdministration, type PartnerAdministration } from '../../core/admin/partners.ts'
import { importContent } from '../../core/content/lines.ts'
import { MODULE_NAMES } from '../../core/model.ts'
import type { ContentKind } from '../../core/ports/content.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Industry, Named, Plan, Profile } from '../../core/wire.ts'

/** Members that a line may leave out or set to null. */
type Optional<T> = { readonly [Name in keyof T]?: T[Name] | null }

type Contact = Optional<NonNullable<Profile['contact']>>
type Employees = Optional<NonNullable<Profile['employees']>>

/** A line of a profile import (section 8). */
export interface ProfileLine extends
  Pick<Profile, 'slug' | 'name' | 'headline'>,
  Optional<
    Pick<Profile, 'logo_url' | 'description' | 'website_url' | 'city' | 'founded_year' | 'tags' | 'links'>
  > {
  readonly country: string
  readonly industry: string
  readonly published_at: string | null
  readonly employees?: Employees | null
  readonly contact?: Contact | null
  readonly visible_to?: readonly string[] | null
}

/** A line of industries. */
export type IndustryLine = Named & Optional<Pick<Industry, 'parent_slug'>>

/** A line of plans. */
export type PlanLine =
  & Pick<Plan, 'slug' | 'name' | 'description' | 'interval' | 'features'>
  & Optional<Pick<Plan, 'highlighted' | 'position'>>
  & { readonly price: Omit<Plan['price'], 'exponent'> }

/** A line of banners. */
export type BannerLine = Readonly<Record<string, string | null>>

/** All imported lines. */
export interface Lines {
  readonly profiles: readonly ProfileLine[]
  readonly industries: readonly IndustryLine[]
  readonly plans: readonly PlanLine[]
  readonly banners: readonly BannerLine[]
}

/** A key with its secret. */
export interface TestKey {
  readonly id: string
  readonly text: string
}

/** Keys of {@linkcode World}: the partner, and the property of the key. */
export type KeyName =
  | `demo ${'full' | 'test' | 'profiles' | 'powerless' | 'fenced' | 'local'}`
  | `demo ${'revoked' | 'expired' | 'disabled' | 'fenced and revoked'}`
  | `${'acme' | 'kiosk' | 'hush'} full`
  | 'hush powerless'

/** The contents of a store. */
export interface WorldContents {
  readonly keys: Readonly<Record<KeyName, TestKey>>
  readonly lines: Lines
  /** When `lines` were imported, milliseconds since the epoch. */
  readonly importedAt: number
}

type Rotation = Extract<ClaimRequest, { readonly rotates: string }>

/** The contents of a store, and its administration. */
export interface World extends WorldContents {
  readonly modules: ModuleAdministration
  readonly partners: PartnerAdministration
  readonly keyRing: KeyAdministration
  issue(key: Partial<NewKey>): Promise<TestKey>
  importKeys(lines: readonly object[], options?: KeyImportOptions): Promise<KeyImportReport>
  /** Rotates a key that ends at an instant. */
  rotate(id: string, successorId: string, retiresAt: number): Promise<void>
  /** Makes a link. @returns Its path below the service, and the id of the claim. */
  offer(
    request?: Partial<NewKey> | Rotation,
    ms?: number,
    createdAt?: number,
  ): Promise<{ id: string; path: string }>
  revokeClaim(id: string): Promise<void>
  /** Imports lines like `content import`. @returns The instant of the import. */
  publish(kind: ContentKind, lines: readonly object[]): Promise<number>
  remove(kind: ContentKind, slugs: readonly string[]): Promise<void>
}

/** An address range for allow-lists, and addresses inside and outside of it. */
export const FENCE = { range: '198.51.100.0/24', inside: '198.51.100.7', outside: '203.0.113.9' } as const

const bare: Omit<ProfileLine, 'slug' | 'name'> = {
  headline: 'Nothing but what is required',
  country: 'AD',
  industry: 'education',
  published_at: '2024-02-29T12:00:00.000Z',
}

/** Additional records: for one partner or none, with equal sort keys, and without optional values. */
const more: Lines = {
  industries: [
    { slug: 'tied-a', name: 'Éducation' },
    { slug: 'tied-b', name: 'education', parent_slug: 'culture' },
  ],
  plans: [
    {
      slug: 'unplaced-b',
      name: 'Unplaced B',
      description: 'Without a position.',
      price: { amount_minor: 1500, currency: 'KWD' },
      interval: 'once',
      features: [],
    },
    {
      slug: 'unplaced-a',
      name: 'Unplaced A',
      description: 'Without a position, too.',
      price: { amount_minor: 0, currency: 'EUR' },
      interval: 'year',
      features: ['Nothing to pay'],
      highlighted: null,
      position: null,
    },
    {
      slug: 'also-second',
      name: 'Also second',
      description: 'Shares its position.',
      price: { amount_minor: 4900, currency: 'USD' },
      interval: 'month',
      features: ['One'],
      highlighted: true,
      position: 2,
    },
  ],
  profiles: [
    { ...bare, slug: 'bare', name: 'Bare' },
    { ...bare, slug: 'bare-twin', name: 'BÄRE' },
    { ...bare, slug: 'bare-third', name: 'bare!', employees: { max: 5 }, contact: { phone: '+376 800 000' } },
    { ...bare, slug: 'for-acme', name: 'For Acme', visible_to: ['acme'], country: 'TV', industry: 'tied-a' },
    { ...bare, slug: 'for-two', name: 'For two', visible_to: ['acme', 'demo'] },
    { ...bare, slug: 'for-nobody', name: 'For nobody', visible_to: [], country: 'TV', industry: 'tied-b' },
    { ...bare, slug: 'draft', name: 'Draft', published_at: null, country: 'TV' },
    { ...bare, slug: 'not-yet', name: 'Not yet', published_at: '2098-12-31T23:59:59.999Z', country: 'TV' },
  ],
  banners: [
    { partner: 'acme', title: 'Over', ends_at: '2024-01-01T00:00:00.000Z' },
    { partner: 'hush', title: 'Bare' },
  ],
}

/** The operator in the audit log. */
const actor = 'operator'

/** Fills an empty store with the world. */
export async function fillWorld(store: Store): Promise<World> {
  const { issue, keyRing, partners } = administrationOf(store)
  await partners.create({ slug: 'demo', name: 'Demo partner', modules: MODULE_NAMES })
  await partners.create({ slug: 'acme', name: 'Acme Travel', modules: MODULE_NAMES })
  await partners.create({ slug: 'kiosk', name: 'Kiosk', modules: ['widget'] })
  await partners.create({ slug: 'hush', name: 'Hush', modules: MODULE_NAMES })

  const importedAt = Date.now()
  const lines: Lines = {
    industries: [...fixture<IndustryLine>('industries'), ...more.industries],
    plans: [...fixture<PlanLine>('plans'), ...more.plans],
    profiles: [...fixture<ProfileLine>('profiles'), ...more.profiles],
    banners: [...fixture<BannerLine>('banners'), ...more.banners],
  }
  for (const kind of ['industries', 'plans', 'profiles', 'banners'] as const) {
    await publish(store, kind, lines[kind], importedAt)
  }

  const yesterday = Date.now() - 86_400_000
  const expired = await createKeyAdministration(store, { actor, clock: () => yesterday }).issue({
    partner: 'demo',
    name: 'Expired',
    environment: 'live',
    expiresAt: yesterday + 1000,
  })
  const keys: Record<KeyName, TestKey> = {
    'demo full': await issue({ name: 'WordPress plugin' }),
    'demo test': await issue({ environment: 'test' }),
    'demo profiles': await issue({ scopes: ['read:profiles'] }),
    'demo powerless': await issue({ scopes: [] }),
    'demo fenced': await issue({ allow: [FENCE.range] }),
    'demo local': await issue({ allow: ['127.0.0.0/8', '::1'] }),
    'demo revoked': await issue({}),
    'demo expired': { id: expired.key.id, text: expired.text },
    'demo disabled': await issue({}),
    'demo fenced and revoked': await issue({ allow: [FENCE.range] }),
    'acme full': await issue({ partner: 'acme' }),
    'kiosk full': await issue({ partner: 'kiosk' }),
    'hush full': await issue({ partner: 'hush' }),
    'hush powerless': await issue({ partner: 'hush', scopes: [] }),
  }
  await keyRing.revoke(keys['demo revoked'].id)
  await keyRing.revoke(keys['demo fenced and revoked'].id)
  await keyRing.disable(keys['demo disabled'].id)
  await partners.suspend('hush')
  // The key keeps the scopes of inactive modules.
  await partners.deactivate('acme', ['banner', 'pricing'])

  return worldOn(store, { keys, lines, importedAt })
}

/** The world of a filled store. */
export function worldOn(store: Store, filling: WorldContents): World {
  return { ...filling, ...administrationOf(store) }
}

async function publish(
  store: Store,
  kind: ContentKind,
  lines: readonly object[],
  now: number,
): Promise<number> {
  const outcome = await importContent(store, kind, lines.map((line) => JSON.stringify(line)), { now, actor })
  if ('errors' in outcome) throw new Error(JSON.stringify(outcome.errors))
  return now
}

function administrationOf(store: Store): Omit<World, keyof WorldContents> {
  const keyRing = createKeyAdministration(store, { actor })
  return {
    partners: createPartnerAdministration(store, { actor }),
    modules: createModuleAdministration(store, { actor }),
    keyRing,
    async issue(key) {
      const issued = await keyRing.issue({ partner: 'demo', name: 'Test key', environment: 'live', ...key })
      return { id: issued.key.id, text: issued.text }
    },
    async importKeys(lines, options) {
      const texts = lines.map((line) => JSON.stringify(line))
      const outcome = await importKeys(store, texts, { actor }, options)
      if ('errors' in outcome) throw new Error(JSON.stringify(outcome.errors))
      return outcome
    },
    publish: (kind, lines) => publish(store, kind, lines, Date.now()),
    async rotate(id, successorId, retiresAt) {
      const { facts } = await store.revision()
      const applied = await store.apply([{ type: 'key.rotated', id, successorId, retiresAt }], facts, {
        actor,
        at: Date.now(),
      })
      if (!applied) throw new Error('The facts changed during the rotation.')
    },
    async offer(request = {}, ms = 3_600_000, createdAt = Date.now()) {
      const newKey = { partner: 'demo', name: 'Offered', environment: 'live', ...request } as const
      const operator = { actor, clock: () => createdAt }
      const made = await createClaim(store, operator, 'rotates' in request ? request : newKey, ms)
      return { id: made.claim.id, path: `/claim/${made.token}` }
    },
    async revokeClaim(id) {
      await revokeClaim(store, { actor }, id)
    },
    async remove(kind, slugs) {
      const { missing, used } = await store.removeContent(kind, slugs, { actor, at: Date.now() })
      if (missing.length + used.length > 0) throw new Error(`Not removed: ${[...missing, ...used]}`)
    },
  }
}

/** The sample content of a kind. */
export function fixture<T>(kind: ContentKind): T[] {
  const file = new URL(`../../fixtures/content/${kind}.jsonl`, import.meta.url)
  return readFileSync(file, 'utf8').split('\n').filter((line) => line !== '').map((line) => JSON.parse(line))
}
