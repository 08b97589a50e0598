/** The port of the service to its data. */
import type { StoreClock } from '../lib/clock.ts'
import type { MaybePromise } from '../lib/promise.ts'
import type { EndpointMethod, Key, ModuleDefinition, Partner, PolicyName, Scope } from '../model.ts'
import type { AuditLog } from './audit.ts'
import type { Administration, KeyFilter } from './changes.ts'
import type { ContentAdministration } from './content.ts'
import type { Catalog, Directory } from './directory.ts'
import type { FactSource } from './facts.ts'
import type { QuotaStore } from './quotas.ts'
import type { ReplicaRegistry } from './replicas.ts'
import type { Reports } from './reports.ts'
import type { SignupStore } from './signups.ts'
import type { WebhookStore } from './webhooks.ts'

/** Settings that are fixed when the store is created. */
export interface StoreSettings {
  /** First part of every key of this store: 2–10 lower-case letters or digits, a letter first. */
  readonly keyPrefix: string
  /** Authenticates paging cursors in every replica: 64 hexadecimal digits. */
  readonly cursorSecret: string
}

/** An endpoint that a service has recorded for administrators, who cannot know it otherwise. */
export interface RecordedEndpoint {
  /** Name of the service that has recorded it: `serviceName` of its options. */
  readonly service: string
  /** Name in usage counts and the OpenAPI document; never changes. */
  readonly name: string
  /** The method of its requests; `GET` includes `HEAD`. */
  readonly method: EndpointMethod
  /** The complete path, `{name}` for a parameter. */
  readonly path: string
  /** The scope that a key needs; `undefined` if any valid key, or none, is enough. */
  readonly scope: Scope | undefined
  /** The rate limit policies that apply. */
  readonly limits: readonly PolicyName[]
}

/** The store of the service. */
export interface Store
  extends
    FactSource,
    Directory,
    Catalog,
    Administration,
    ContentAdministration,
    SignupStore,
    Reports,
    AuditLog,
    StoreClock {
  /** The settings that were fixed when the store was created. */
  readonly settings: StoreSettings
  /** The modules that the operator has defined, as last read: what a new service can require. */
  knownModules(): readonly ModuleDefinition[]
  /** Adds or replaces these endpoints, by service and name. Is no administrative change, and moves no revision. */
  recordEndpoints(endpoints: readonly RecordedEndpoint[]): MaybePromise<void>
  /** The endpoints that services have recorded, by name, then service. */
  listEndpoints(): MaybePromise<readonly RecordedEndpoint[]>
  /**
   * Calls back before a change of facts or content through this object returns: services of the same
   * process apply it at once.
   * @returns A function that ends the subscription.
   */
  onChange(listener: () => void): () => void
  /** The revision of the content, see `Directory.directoryRevision`. */
  directoryRevision(): MaybePromise<string>
  /** The registry of replicas that share the store. */
  readonly replicas: ReplicaRegistry
  /** The quotas that replicas share. */
  readonly quotas: QuotaStore
  /** Webhooks and what is to be sent to them. */
  readonly webhooks: WebhookStore
  /** SHA-256 of the UTF-8 bytes of `text`, 64 lower-case hexadecimal digits. */
  sha256(text: string): string
  /** Releases all resources. The store must not be used afterwards. */
  close(): MaybePromise<void>
}

/** What changes of an operator need of a store. */
export type AdministeredStore =
  & Administration
  & Pick<Store, 'revision' | 'clock' | 'now' | 'listModules'>

const maxPageRows = 1000

type ReadPage<T> = (after: T | undefined, limit: number) => MaybePromise<readonly T[]>

/**
 * Reads a list to its end, page by page. Rows that are added after the current position are read as well.
 * @param wanted The most rows that the caller takes, 1 or more.
 */
export async function* readRows<T>(
  readPage: ReadPage<T>,
  wanted: number = maxPageRows,
): AsyncGenerator<T, void, undefined> {
  for await (const page of pagesOf(readPage, Math.min(wanted, maxPageRows))) yield* page
}

/** All partners, removed ones included, by slug. */
export function readPartners(store: Pick<Store, 'listPartners'>): AsyncGenerator<Partner, void, undefined> {
  return readRows<Partner>((after, limit) => store.listPartners(after?.slug, limit))
}

/** The keys that a filter selects, by default all, oldest first. */
export function readKeys(
  store: Pick<Store, 'listKeys'>,
  filter: KeyFilter = {},
): AsyncGenerator<Key, void, undefined> {
  return readRows<Key>((after, limit) => store.listKeys(filter, after, limit))
}

/** The pages of a list, none of them empty. */
export async function* pagesOf<T>(
  readPage: ReadPage<T>,
  pageRows: number = maxPageRows,
): AsyncGenerator<readonly T[], void, undefined> {
  let after: T | undefined
  for (;;) {
    const page = await readPage(after, pageRows)
    if (page.length > 0) yield page
    if (page.length < pageRows) return
    after = page.at(-1)
  }
}
