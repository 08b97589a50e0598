/** A store with a million keys and a million profiles, made in a minute or so. */
import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { openSqliteStore } from '../../../adapters/stores/sqlite/store.ts'
import type { Key } from '../../../core/model.ts'
import type { Store } from '../../../core/ports/store.ts'
import { INDUSTRIES, profiles } from '../data/profiles.ts'
import { createRandom } from '../data/random.ts'

const chunk = 25_000
const partners = Array.from({ length: 1000 }, (_, number) => `partner-${number}`)

/** Opens the store of so many rows in a directory. It is made unless it is there from another run. */
export async function openBigStore(directory: string, rows: number): Promise<Store> {
  const file = join(directory, `partner-api-bench-${rows}.db`)
  if (!existsSync(file)) {
    // Only a whole one gets the name: a run that was broken off leaves nothing to be taken for it.
    const unfinished = join(directory, `unfinished-${process.pid}.db`)
    const store = await openSqliteStore(unfinished)
    try {
      await addKeys(store, rows)
      await addProfiles(store, rows)
    } finally {
      await store.close()
    }
    await rename(unfinished, file)
  }
  return await openSqliteStore(file)
}

/** The ids of the store's keys: the same in every run, in order, so that they are inserted where the last one was. */
export function keyIds(rows: number): readonly string[] {
  const random = createRandom(7)
  const part = () => Math.floor(random() * 2_176_782_336).toString(36).padStart(6, '0')
  return Array.from({ length: rows }, () => part() + part()).sort()
}

async function addKeys(store: Store, rows: number): Promise<void> {
  const apply = async (changes: Parameters<Store['apply']>[0]) => {
    const { facts } = await store.revision()
    if (!await store.apply(changes, facts, { actor: 'bench', at: Date.now() })) {
      throw new Error('Somebody else changes the store.')
    }
  }
  await apply(partners.map((slug) => ({
    type: 'partner.created',
    partner: { slug, name: slug, state: 'active', modules: ['profiles'], limits: {}, createdAt: 0 },
  })))
  const ids = keyIds(rows)
  for (let start = 0; start < rows; start += chunk) {
    await apply(
      ids.slice(start, start + chunk).map((id, index) => ({
        type: 'key.issued',
        key: keyFor(id, partners[(start + index) % partners.length]!, store.sha256(id)),
      })),
    )
  }
}

function keyFor(id: string, partner: string, digest: string): Key {
  return {
    id,
    partner,
    name: 'WordPress plugin',
    environment: 'live',
    digest,
    hint: id.slice(-4),
    state: 'active',
    scopes: ['read:profiles'],
    allow: [],
    limits: {},
    createdAt: 0,
    expiresAt: undefined,
    retiresAt: undefined,
    successorId: undefined,
    lastUsedAt: undefined,
  }
}

async function addProfiles(store: Store, rows: number): Promise<void> {
  const options = { now: Date.now(), actor: 'bench' }
  await store.importContent('industries', INDUSTRIES, options)
  await store.importContent('profiles', profiles(rows), options)
}
