/** Checks of keys and partners, in one pass over each. */
import { keyState } from '../../core/keys/lifecycle.ts'
import { readPages } from '../../core/lib/read-pages.ts'
import { MS_PER_DAY, utcDay } from '../../core/lib/time.ts'
import type { Key, KeyState, Partner } from '../../core/model.ts'
import { MODULES, type Scope, SCOPES } from '../../core/policy/modules.ts'
import type { Store } from '../../core/ports/store.ts'
import { ROUTES } from '../../core/routes/router.ts'
import { type Checks, type Finding, findMany } from './check.ts'

/** A check of each key or partner. All that it finds are one finding. */
interface Rule<Subject> {
  readonly severity: Finding['severity']
  readonly what: string
  /** @returns The command that mends it, or that lists all; false when nothing is found. */
  find(subject: Subject): string | false
}

type Rules<Subject> = Readonly<Record<string, Rule<Subject>>>

interface KeySubject {
  readonly key: Key
  readonly state: KeyState
  readonly inForce: boolean
  /** Scopes that no request of the last 90 days needed; empty unless its requests are counted since 30 days. */
  readonly unusedScopes: readonly Scope[]
  readonly usedSinceRotation: boolean
  /** Days since an instant. */
  age(instant: number): number
}

export const KEY_CHECKS: Rules<KeySubject> = {
  'keys-without-expiry': {
    severity: 'info',
    what: 'Keys that never expire',
    find: ({ key, inForce }) =>
      inForce && (key.expiresAt ?? key.retiresAt) === undefined &&
      `partner-api keys update ${key.id} --expires 365d`,
  },
  'keys-expiring': {
    severity: 'warning',
    what: 'Keys that expire within 14 days',
    find: ({ key, state, age }) =>
      state === 'active' && age(key.expiresAt ?? Infinity) > -14 && 'partner-api keys list --expiring 14d',
  },
  'keys-retiring': {
    severity: 'warning',
    what: 'Rotated keys that are still used and end within 14 days',
    find: ({ key, state, usedSinceRotation, age }) =>
      state === 'retiring' && usedSinceRotation && age(key.retiresAt!) > -14 &&
      `partner-api keys rotation ${key.id}`,
  },
  'keys-unused': {
    severity: 'warning',
    what: 'Keys that have not been used for 90 days',
    find: ({ key, inForce, age }) =>
      inForce && age(key.lastUsedAt ?? Infinity) > 90 && 'partner-api keys list --unused 90d',
  },
  'keys-never-used': {
    severity: 'warning',
    what: 'Keys that are older than 30 days and were never used',
    find: ({ key, inForce, age }) =>
      inForce && key.lastUsedAt === undefined && age(key.createdAt) > 30 &&
      'partner-api keys list --unused 30d',
  },
  'keys-disabled': {
    severity: 'info',
    what: 'Disabled keys that have not been used for 90 days',
    find: ({ key, state, age }) =>
      state === 'disabled' && age(key.lastUsedAt ?? key.createdAt) > 90 &&
      'partner-api keys list --state disabled',
  },
  'scopes-unused': {
    severity: 'info',
    what: 'Keys with scopes that they did not need for 90 days',
    find: ({ key, unusedScopes }) =>
      unusedScopes.length > 0 && `partner-api scopes remove ${key.id} ${unusedScopes.join(' ')}`,
  },
}

interface PartnerSubject {
  readonly partner: Partner
  /** One of its keys in force. */
  readonly keyId: string | undefined
  /** Scopes that its active modules need and none of its keys in force holds. */
  readonly missingScopes: readonly Scope[]
}

export const PARTNER_CHECKS: Rules<PartnerSubject> = {
  'modules-without-key': {
    severity: 'info',
    what: 'Partners with active modules that none of their keys may use',
    find: ({ keyId, missingScopes }) =>
      keyId !== undefined && missingScopes.length > 0 &&
      `partner-api scopes grant ${keyId} ${missingScopes.join(' ')}`,
  },
  'partners-without-key': {
    severity: 'info',
    what: 'Partners without a key in force',
    find: ({ partner: { slug, state }, keyId }) =>
      state !== 'removed' && keyId === undefined && `partner-api keys issue ${slug} --name ${slug}`,
  },
  'partners-suspended': {
    severity: 'info',
    what: 'Suspended partners',
    find: ({ partner: { slug, state } }) => state === 'suspended' && `partner-api partners resume ${slug}`,
  },
  'partners-removed': {
    severity: 'error',
    what: 'Removed partners with a key in force',
    find: ({ partner, keyId }) =>
      partner.state === 'removed' && keyId !== undefined && `partner-api keys revoke ${keyId}`,
  },
}

function createTallies<Subject>(rules: Rules<Subject>) {
  const tallies = Object.entries(rules).map(([check, rule]) => ({
    check,
    ...rule,
    count: 0,
    names: [] as string[],
    command: '',
  }))
  return {
    add(name: string, subject: Subject): void {
      for (const tally of tallies) {
        const command = tally.find(subject)
        if (command === false) continue
        if (tally.count++ === 0) tally.command = command
        if (tally.count <= 5) tally.names.push(name)
      }
    },
    checks: (): Checks<undefined> =>
      Object.fromEntries(tallies.map((tally) => [tally.check, () => findMany(tally)])),
  }
}

/** A key has at most some thousand counts in 90 days. */
const keysPerPage = 100

/** Reads all keys and partners. Memory grows by about 100 bytes for each partner. */
export async function readKeys(
  store: Store,
  now: number,
  report: (progress: string) => void,
): Promise<Checks<undefined>> {
  const age = (instant: number) => (now - instant) / MS_PER_DAY
  const [keys, partners] = [createTallies(KEY_CHECKS), createTallies(PARTNER_CHECKS)]
  /** By partner: one of its keys in force, and the scopes of all, a bit for each. */
  const owners = new Map<string, { readonly keyId: string; scopes: number }>()
  let page: readonly Key[] | undefined
  for (let count = 0; page === undefined || page.length === keysPerPage; count += page.length) {
    page = await store.listKeys({}, page?.at(-1), keysPerPage)
    report(`Reading keys: ${count}`)
    const older = page.filter(({ createdAt, lastUsedAt = 0 }) => age(createdAt) > 30 && age(lastUsedAt) < 90)
    const neededScopes = await readNeededScopes(store, older.map(({ id }) => id), now)
    for (const key of page) {
      const state = keyState(key, now)
      const inForce = state === 'active' || state === 'retiring'
      const successor = inForce && key.successorId ? await store.findKey(key.successorId) : undefined
      const needed = neededScopes.get(key.id)
      keys.add(key.id, {
        ...{ key, state, inForce, age },
        unusedScopes: inForce && needed ? key.scopes.filter((scope) => !needed.has(scope)) : [],
        usedSinceRotation: (key.lastUsedAt ?? 0) > (successor?.key.createdAt ?? Infinity),
      })
      const owner = owners.get(key.partner) ?? { keyId: key.id, scopes: 0 }
      if (inForce) owners.set(key.partner, { ...owner, scopes: owner.scopes | bits(key.scopes) })
    }
  }
  for await (const partner of readPages<Partner>((after, limit) => store.listPartners(after?.slug, limit))) {
    const { keyId, scopes = 0 } = owners.get(partner.slug) ?? {}
    const missingScopes = partner.modules.map((module) => MODULES[module].scope).filter((scope) =>
      !(scopes & bits([scope]))
    )
    partners.add(partner.slug, { partner, keyId, missingScopes })
  }
  return { ...keys.checks(), ...partners.checks() }
}

function bits(scopes: readonly Scope[]): number {
  return scopes.reduce((bits, scope) => bits | 1 << SCOPES.indexOf(scope), 0)
}

const scopesByEndpoint = new Map(
  ROUTES.map((route) => [route.name as string, 'scope' in route && route.scope]),
)

/** The scopes that requests of the last 90 days needed, by the keys whose requests are counted since 30 days. */
async function readNeededScopes(store: Store, ids: readonly string[], now: number) {
  const day = (age: number) => utcDay(now - age * MS_PER_DAY)
  const counts = ids.length === 0 ? [] : await store.keyUsage(ids, day(90), day(0))
  const byKey = Map.groupBy(counts, ({ keyId }) => keyId)
  return new Map(
    [...byKey].filter(([, counts]) => counts.some((count) => count.day <= day(30)))
      .map(([id, counts]) => [id, new Set(counts.map(({ endpoint }) => scopesByEndpoint.get(endpoint)))]),
  )
}
