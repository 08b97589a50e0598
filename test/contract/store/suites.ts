/** The store contract, which every store passes. Callers may rely on nothing else. */
import fc from 'fast-check'
import type { Store } from '../../../core/ports/store.ts'
import { asOneAssertion } from '../http/checks.ts'
import { activityContract } from './activity.ts'
import { auditContract } from './audit.ts'
import { chainsContract } from './chains.ts'
import { claimsContract } from './claims.ts'
import { contentContract } from './content.ts'
import { detailsContract } from './details.ts'
import { directoryContract } from './directory.ts'
import { factsContract } from './facts.ts'
import { importsContract } from './imports.ts'
import { lifetimesContract } from './lifetimes.ts'
import { modulesContract } from './modules.ts'
import { problemsContract } from './problems.ts'
import { quotasContract } from './quotas.ts'
import { replicasContract } from './replicas.ts'
import { searchContract } from './search.ts'
import { signupsContract } from './signups.ts'
import { summaryContract } from './summary.ts'
import { webhooksContract } from './webhooks.ts'

/** The part of a test object that the suites use. */
export interface TestContext {
  test(name: string, body: (t: TestContext) => Promise<void>): PromiseLike<unknown>
  ok(value: unknown, message: string): unknown
  equal(found: unknown, expected: unknown, ...message: [] | [string]): unknown
  /** Deep equality, in which an absent member differs from one that is `undefined`. */
  strictSame(found: unknown, expected: unknown, ...message: [] | [string]): unknown
}

/** Runs one check on a new store. */
export type Check = (name: string, body: (t: TestContext, store: Store) => Promise<void>) => Promise<void>

/** Checks a property on 60 stores, or fast-check's configured number of runs. */
export async function checkProperty<T>(
  t: TestContext,
  open: () => Promise<Store>,
  arbitrary: fc.Arbitrary<T>,
  body: (store: Store, drawn: T) => Promise<void>,
): Promise<void> {
  const property = fc.asyncProperty(arbitrary, async (drawn) => {
    const store = await open()
    try {
      await body(store, drawn)
    } finally {
      await store.close()
    }
  })
  const { numRuns = 60 } = fc.readConfigureGlobal()
  await fc.assert(property, { numRuns })
  t.ok(true, `in ${numRuns} stores`)
}

/** @param open Opens an empty store with the default key prefix. */
export async function storeContract(t: TestContext, open: () => Promise<Store>): Promise<void> {
  const check: Check = async (name, body) => {
    await asOneAssertion(t, name, async (t) => {
      const store = await open()
      try {
        await body(t, store)
      } finally {
        await store.close()
      }
    })
  }
  await factsContract(check)
  await modulesContract(check)
  await detailsContract(check)
  await lifetimesContract(check)
  await importsContract(check)
  await claimsContract(check)
  await chainsContract(check)
  await contentContract(check)
  await auditContract(check)
  await signupsContract(check)
  await summaryContract(check, open)
  await problemsContract(check)
  await activityContract(check, open)
  await directoryContract(check, open)
  await searchContract(check)
  await webhooksContract(check)
}

/** Runs one check on a new store, which it may open several times, as replicas do. */
export type SharedCheck = (
  name: string,
  body: (t: TestContext, open: () => Promise<Store>) => Promise<void>,
) => Promise<void>

/**
 * The contract of a store that replicas share, in addition to `storeContract`.
 *
 * @param create Creates an empty store that can be opened any number of times.
 */
export async function sharedStoreContract(
  t: TestContext,
  create: () => Promise<() => Promise<Store>>,
): Promise<void> {
  const check: SharedCheck = async (name, body) => {
    await asOneAssertion(t, name, async (t) => {
      const open = await create()
      const stores: Store[] = []
      try {
        await body(t, async () => {
          const store = await open()
          stores.push(store)
          if (store.quotas === undefined || store.replicas === undefined) {
            throw new Error('the store has no quotas or no replica registry')
          }
          return store
        })
      } finally {
        await Promise.all(stores.map((store) => store.close()))
      }
    })
  }
  await quotasContract(check)
  await replicasContract(check)
}
