/** Checks of keys and partners, in one pass over each. */
import { formatDuration } from '../../core/admin/validate.ts'
import { endOf, keyState } from '../../core/keys/lifecycle.ts'
import { MS_PER_DAY, utcDay } from '../../core/lib/time.ts'
import type { Key, Modules, Scope } from '../../core/model.ts'
import { readPages, readPartners, type Store } from '../../core/ports/store.ts'
import type { Endpoint } from '../../core/routes/route.ts'
import { readEndpoints } from '../store/open.ts'
import { type Check, findMany } from './check.ts'

/** What the things are that each check finds. */
const kinds = {
  'keys-without-expiry': 'Keys that never expire',
  'keys-beyond-lifetime': 'Keys that end later than the store allows',
  'keys-expiring': 'Keys that expire within 14 days',
  'keys-expired': 'Keys that expired in the last 14 days while they were in use',
  'keys-unused': 'Keys that have not been used for 90 days',
  'scopes-unused': 'Keys with scopes that they have not needed for 90 days',
  'modules-without-key': 'Partners with active modules that none of their keys may use',
  'partners-without-key': 'Partners without a key in force',
} as const
type Kind = keyof typeof kinds

/** A key has at most some thousand counts in 90 days. */
const keysPerPage = 100

/** Reads all keys in force or expired, and all partners. Memory grows by about 100 bytes for each partner. */
export async function checkKeys(check: Check, store: Store, now: number, report: (progress: string) => void) {
  const tallies = new Map<string, { count: number; readonly names: string[]; readonly command: string }>()
  /** @param command The one that fixes it, or that lists all. */
  function found(kind: Kind, name: string, command: string): void {
    const tally = tallies.get(kind) ?? { count: 0, names: [], command }
    tallies.set(kind, tally)
    if (tally.count++ < 5) tally.names.push(name)
  }

  const age = (instant: number) => (now - instant) / MS_PER_DAY
  const { modules, endpoints } = await readEndpoints(store)
  const maxMs = await store.maxKeyLifetimeMs() ?? Infinity
  const lifetime = formatDuration(Math.min(maxMs, 365 * MS_PER_DAY))
  const filter = { states: ['active', 'retiring', 'expired'], now } as const
  const keys = readPages<CountedKey>(async (after, limit) => {
    report('Reading keys …')
    return await addUnusedScopes(store, endpoints, await store.listKeys(filter, after, limit), now)
  }, keysPerPage)
  /** By partner: its newest key, and the scopes of all, a bit for each. */
  const owners = new Map<string, { readonly id: string; readonly scopes: number }>()
  for await (const key of keys) {
    const { id, partner, createdAt, lastUsedAt = createdAt, expiresAt, successorId, unusedScopes } = key
    if (keyState(key, now) === 'expired') {
      const end = endOf(key) ?? 0
      const isLost = key.state === 'active' && age(end) < 14 && end - (key.lastUsedAt ?? 0) < MS_PER_DAY
      if (isLost) found('keys-expired', id, `partner-api keys issue ${partner} --name ${partner}`)
      continue
    }
    const shorten = `partner-api keys update ${id} --expires ${lifetime}`
    if (expiresAt === undefined && successorId === undefined) found('keys-without-expiry', id, shorten)
    if ((endOf(key) ?? Infinity) > now + maxMs) found('keys-beyond-lifetime', id, shorten)
    if (age(expiresAt ?? Infinity) > -14 && successorId === undefined) {
      found('keys-expiring', id, 'partner-api keys list --expiring 14d')
    }
    if (age(createdAt) > 90 && age(lastUsedAt) > 90) {
      found('keys-unused', id, 'partner-api keys list --unused 90d')
    }
    if (unusedScopes.length > 0) {
      found('scopes-unused', id, `partner-api scopes remove ${id} ${unusedScopes.join(' ')}`)
    }
    const owner = owners.get(partner) ?? { id, scopes: 0 }
    owners.set(partner, {
      id: successorId === undefined ? id : owner.id,
      scopes: owner.scopes | toBits(key.scopes, modules),
    })
  }

  await checkPartners(store, owners, modules, found)
  for (const kind of Object.keys(kinds) as Kind[]) {
    const { names = [], command = '', count } = tallies.get(kind) ?? {}
    check(kind, findMany(kinds[kind], names, command, count))
  }
}

async function checkPartners(
  store: Store,
  owners: ReadonlyMap<string, { readonly id: string; readonly scopes: number }>,
  known: Modules,
  found: (kind: Kind, slug: string, command: string) => void,
): Promise<void> {
  for await (const partner of readPartners(store)) {
    const { slug, state, modules } = partner
    const owner = owners.get(slug)
    if (owner === undefined) {
      const command = `partner-api keys issue ${slug} --name ${slug}`
      if (state !== 'removed') found('partners-without-key', slug, command)
      continue
    }
    const missing = modules.flatMap((module) => known.scopeOf(module) ?? [])
      .filter((scope) => !(owner.scopes & toBits([scope], known)))
    const command = `partner-api scopes grant ${owner.id} ${missing.join(' ')}`
    if (missing.length > 0) found('modules-without-key', slug, command)
  }
}

function toBits(scopes: readonly Scope[], known: Modules): number {
  return scopes.reduce((bits, scope) => bits | 1 << known.scopes.indexOf(scope), 0)
}

/** With the scopes that no request of the last 90 days needed; none unless its requests are counted since 30 days. */
type CountedKey = Key & { readonly unusedScopes: readonly Scope[] }

async function addUnusedScopes(
  store: Store,
  endpoints: readonly Endpoint[],
  keys: readonly Key[],
  now: number,
) {
  const scopes = new Map(endpoints.map(({ name, scope }) => [name, scope]))
  const day = (age: number) => utcDay(now - age * MS_PER_DAY)
  const counts = keys.length === 0 ? [] : await store.keyUsage(keys.map(({ id }) => id), day(90), day(0))
  const byKey = Map.groupBy(counts, ({ keyId }) => keyId)
  return keys.map((key): CountedKey => {
    const counts = byKey.get(key.id) ?? []
    // Endpoints are unknown until the service that has them records them: after a copy of the store, for instance.
    const isCounted = counts.some((count) => count.day <= day(30)) &&
      counts.every(({ endpoint }) => scopes.has(endpoint))
    const needed = new Set(counts.map(({ endpoint }) => scopes.get(endpoint)))
    return { ...key, unusedScopes: isCounted ? key.scopes.filter((scope) => !needed.has(scope)) : [] }
  })
}
