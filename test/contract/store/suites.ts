/**
 * What a store is. Every store passes this suite unchanged, and nothing that it does not say may be relied on.
 */
import type { Store } from '../../../core/ports/store.ts'
import { activityContract } from './activity.ts'
import { auditContract } from './audit.ts'
import { contentContract } from './content.ts'
import { directoryContract } from './directory.ts'
import { factsContract } from './facts.ts'
import { quotasContract } from './quotas.ts'
import { replicasContract } from './replicas.ts'
import { searchContract } from './search.ts'
import { signupsContract } from './signups.ts'
import { summaryContract } from './summary.ts'

/** The little of a test object that the suite needs: tap's has it, and other runners' can be given it. */
export interface Tester {
  test(name: string, body: (t: Tester) => Promise<void>): PromiseLike<unknown>
  ok(value: unknown, message: string): unknown
  equal(found: unknown, wanted: unknown, ...message: [] | [string]): unknown
  /** Deep equality; a member that is `undefined` is there all the same. */
  strictSame(found: unknown, wanted: unknown, ...message: [] | [string]): unknown
}

/** Runs one check on a store of its own. */
export type Check = (name: string, body: (t: Tester, store: Store) => Promise<void>) => Promise<void>

/**
 * @param open Makes an empty store, whose key prefix is the default one.
 * @param openMany Makes one of the hundreds that properties are tried on; where a disk makes stores slow, one without.
 */
export async function storeContract(
  t: Tester,
  open: () => Promise<Store>,
  openMany: () => Promise<Store> = open,
): Promise<void> {
  const check: Check = async (name, body) => {
    await t.test(name, async (t) => {
      const store = await open()
      try {
        await body(t, store)
      } finally {
        await store.close()
      }
    })
  }
  await factsContract(check)
  await contentContract(check)
  await auditContract(check)
  await signupsContract(check)
  await summaryContract(check, openMany)
  await activityContract(check, openMany)
  await directoryContract(check, openMany)
  await searchContract(check)
}

/** A store that replicas share. What it has for them is its own to have: of no other store it is asked. */
export type SharedStore = Store & Required<Pick<Store, 'quotas' | 'replicas'>>

/** Runs one check on a store of its own, which it opens as often as it likes: as replicas that share it do. */
export type SharedCheck = (
  name: string,
  body: (t: Tester, open: () => Promise<SharedStore>) => Promise<void>,
) => Promise<void>

/**
 * What a store is beyond that where replicas share it. Apart from `storeContract`, which says the same of all stores.
 *
 * @param create Makes an empty store that can be opened any number of times.
 */
export async function sharedStoreContract(
  t: Tester,
  create: () => Promise<() => Promise<Store>>,
): Promise<void> {
  const check: SharedCheck = async (name, body) => {
    await t.test(name, async (t) => {
      const open = await create()
      const stores: Store[] = []
      try {
        await body(t, async () => {
          const store = await open()
          stores.push(store)
          if (store.quotas === undefined || store.replicas === undefined) throw new Error('nothing is shared')
          return store as SharedStore
        })
      } finally {
        await Promise.all(stores.map((store) => store.close()))
      }
    })
  }
  await quotasContract(check)
  await replicasContract(check)
}
