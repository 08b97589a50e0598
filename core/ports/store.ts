/** What the service asks of the world, in the service's own words. A store implements all of it. */
import type { MaybePromise } from '../lib/promise.ts'
import type { ClockReading } from '../lib/time.ts'
import type { AuditLog } from './audit.ts'
import type { Administration } from './changes.ts'
import type { ContentAdministration } from './content.ts'
import type { Catalog, Directory } from './directory.ts'
import type { FactSource } from './facts.ts'
import type { QuotaStore } from './quotas.ts'
import type { ReplicaRegistry } from './replicas.ts'
import type { Reports } from './reports.ts'
import type { SignupStore } from './signups.ts'

/** What was settled when the store was made. */
export interface StoreSettings {
  /** First part of every key of this store: 2–10 lower-case letters or digits, a letter first. */
  readonly keyPrefix: string
  /** 64 hexadecimal digits: authenticates paging cursors, the same in every replica. */
  readonly cursorSecret: string
}

/** Everything that the service keeps. */
export interface Store
  extends
    FactSource,
    Directory,
    Catalog,
    Administration,
    ContentAdministration,
    SignupStore,
    Reports,
    AuditLog {
  /** What was settled when it was made. */
  readonly settings: StoreSettings
  /**
   * The last reading of the store's own clock, where machines share the store. Asking for the revision renews it.
   */
  clock?(): ClockReading | undefined
  /** Where replicas that share the store are registered; a store that knows of none has no such place. */
  readonly replicas?: ReplicaRegistry
  /** Where they share quotas; without it, every process counts for itself. */
  readonly quotas?: QuotaStore
  /** SHA-256 of the UTF-8 bytes of `text`, 64 lower-case hexadecimal digits. */
  sha256(text: string): string
  /** Gives back what the store holds. Nothing may be asked of it afterwards. */
  close(): MaybePromise<void>
}
