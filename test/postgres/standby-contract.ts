/** The contract of stores, for one that reads from a standby. */
import type { StandbyReads } from '../../adapters/stores/postgres/reader.ts'
import type { Store } from '../../core/ports/store.ts'
import { query, T0 } from '../contract/store/samples.ts'
import { sharedStoreContract, storeContract, type TestContext } from '../contract/store/suites.ts'
import { contractStore } from './fixtures.ts'
import type { PostgresServer } from './server.ts'
import { readingFrom, type StandbyServer } from './standby.ts'

/** Every read that a standby may answer. */
export const READS = {
  findKey: (store) => store.findKey('acme-live'),
  findImportedKey: (store) => store.findImportedKey!('some_imported_key_that_is_long'),
  listModules: (store) => store.listModules!(),
  listProfiles: (store) => store.listProfiles('acme', query(), T0),
  search: (store) => store.listProfiles('acme', query({ words: ['profile'] }), T0),
  findProfile: (store) => store.findProfile('acme', 'one', T0),
  countProfiles: (store) => store.countProfiles('acme', 'country', T0),
  listIndustries: (store) => store.listIndustries(),
  nextProfileChangeAt: (store) => store.nextProfileChangeAt('acme', T0),
  findBanner: (store) => store.findBanner('acme'),
  listPlans: (store) => store.listPlans(),
} satisfies Record<string, (store: Store) => unknown>

/** Has the store read from standbys, as that of a service does. */
export function follow(store: Store): void {
  const revalidate = async () => await store.revision()
  store.replicas!.register({ name: 'test', leaseMs: 1_000, revalidateEveryMs: 1_000, revalidate })
}

/** A store that confirms the revision before each of these reads, as a service does within its bound. */
function confirming(store: Store, caughtUp: () => Promise<void>): Store {
  const members = Object.keys(READS).filter((name) => name !== 'search').map((name) => {
    const read = store[name as 'findKey'] as (...args: unknown[]) => unknown
    return [name, async (...args: unknown[]) => {
      await store.revision()
      return await read(...args)
    }]
  })
  return {
    ...store,
    ...Object.fromEntries(members),
    // The last use of a key moves no revision.
    async recordKeyUses(uses) {
      await store.recordKeyUses(uses)
      await caughtUp()
    },
  }
}

/** @returns What became of the reads that the standby may answer. */
export async function standbyContract(
  t: TestContext,
  primary: Pick<PostgresServer, 'createDatabase'>,
  { port, caughtUp }: Pick<StandbyServer, 'port' | 'caughtUp'>,
): Promise<StandbyReads> {
  const { emptied, open, close } = await contractStore(primary, (url) => readingFrom(url, port))
  try {
    const reads = (await emptied()).standbyReads!()
    await storeContract(t, async () => {
      const store = await emptied()
      follow(store)
      return confirming(store, caughtUp)
    })
    await sharedStoreContract(t, () => emptied().then(() => open))
    return reads
  } finally {
    await close()
  }
}
