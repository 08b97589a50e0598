/** The ports as a service calls them: in time, and with valid results of a custom directory. */
import type { DirectoryChecks } from './content/custom-directory.ts'
import { combineRevisions } from './content/directory-revision.ts'
import { assertOptions } from './lib/options.ts'
import { all, andThen, type MaybePromise } from './lib/promise.ts'
import type { Directory } from './ports/directory.ts'
import type { Observer } from './ports/observer.ts'
import type { QuotaStore } from './ports/quotas.ts'
import type { Replica, ReplicaRegistration } from './ports/replicas.ts'
import type { SignupDestination } from './ports/signups.ts'
import type { Store } from './ports/store.ts'
import { type TimeLimits, withTimeouts } from './ports/with-timeouts.ts'
import type { Settings } from './settings.ts'
import { createDestinationSignups } from './signups/destination.ts'

/** Where the service gets its data. */
export interface PartnerApiPorts {
  /** Partners, keys and, without a `directory`, profiles. */
  readonly store: Store
  /** A source of profiles and industries to use instead of the store. */
  readonly directory?: Directory | undefined
  /** Where to keep signups instead of the store. */
  readonly signups?: SignupDestination | undefined
}

const directoryLimits = {
  listProfiles: 'data',
  findProfile: 'data',
  countProfiles: 'data',
  listIndustries: 'data',
  nextProfileChangeAt: 'data',
  directoryRevision: 'lookUp',
} as const satisfies TimeLimits<Directory>

/** What requests, and the counting of them, call. */
const storeLimits = {
  revision: 'lookUp',
  check: 'lookUp',
  findKey: 'lookUp',
  findImportedKey: 'lookUp',
  listModules: 'lookUp',
  recordKeyUses: 'lookUp',
  ...directoryLimits,
  findBanner: 'data',
  listPlans: 'data',
  createSignup: 'data',
  reserveSignup: 'data',
  isReserved: 'data',
  findSignup: 'data',
  summarise: 'data',
  listActivity: 'data',
  listProblems: 'data',
  recordUsage: 'data',
  recordEndpoints: 'data',
  listEndpoints: 'data',
  findPartner: 'data',
  listKeys: 'data',
  listChain: 'data',
  wasChangedByOthers: 'data',
  findClaim: 'data',
  maxKeyLifetimeMs: 'data',
  apply: 'data',
} as const satisfies TimeLimits<Store>

const destinationLimits = { createSignup: 'data' } as const satisfies TimeLimits<SignupDestination>
const quotaLimits = { leaseQuota: 'lookUp', returnQuotas: 'lookUp' } as const satisfies TimeLimits<QuotaStore>
const registrationLimits = { registered: 'lookUp' } as const satisfies TimeLimits<ReplicaRegistration>

/** @throws {TypeError} for what TypeScript refuses. */
export function assertPorts(ports: PartnerApiPorts | undefined): void {
  if (ports?.store == null) {
    fail("no store; pass { store: await openSqliteStore('partner-api.db') }, for instance.")
  }
  const { directoryRevision: _, ...requiredOfDirectory } = directoryLimits
  assertMethods('store', ports.store, storeLimits)
  assertMethods('directory', ports.directory, requiredOfDirectory)
  assertMethods('signups', ports.signups, destinationLimits)
  assertOptions('createPartnerApi, first argument (options are in the second)', ports, {
    store: 'anything',
    directory: 'anything',
    signups: 'anything',
  })
}

function assertMethods(name: keyof PartnerApiPorts, port: object | undefined, methods: object): void {
  if (port == null) return
  // A program without types may pass text.
  const members = Object(port)
  if (typeof members.then === 'function') fail(`${name} is a promise; await it first.`)
  const missing = Object.keys(methods).find((method) => typeof members[method] !== 'function')
  if (missing !== undefined) fail(`${name} has no method ${missing}.`)
}

function fail(reason: string): never {
  throw new TypeError(`createPartnerApi: ${reason}`)
}

/** The ports with their time limits. What a custom directory returns is validated. */
export function createTimedPorts(
  { store, directory, signups }: PartnerApiPorts,
  { storeTimeoutMs }: Pick<Settings, 'storeTimeoutMs'>,
  observer: Observer | undefined,
  checks: DirectoryChecks,
  onOutage: Parameters<typeof combineRevisions>[2],
) {
  const { wrap, idle } = withTimeouts({ lookUp: storeTimeoutMs / 5, data: storeTimeoutMs }, observer)
  const { settings, sha256 } = store
  const timed = {
    ...wrap(store, storeLimits),
    settings,
    sha256,
    clock: () => store.clock(),
    now: store.now,
  }
  const custom = directory && checkedLater(wrap(directory, directoryLimits, 'directory'), checks)
  const combined = custom && combineRevisions(timed, custom, onOutage)

  return {
    store: timed,
    directory: custom ?? timed,
    signups: signups == null
      ? timed
      : createDestinationSignups(timed, wrap(signups, destinationLimits, 'signups')),
    quotas: {
      sharesLimits: store.quotas.sharesLimits,
      leastWindowSeconds: store.quotas.leastWindowSeconds,
      ...wrap(store.quotas, quotaLimits),
    },
    register(replica: Replica): ReplicaRegistration {
      const registration = store.replicas.register(replica)
      return { ...registration, ...wrap(registration, registrationLimits) }
    },
    revision: combined?.revision ?? timed.revision,
    /** @returns Whether a custom directory, if there is one, is available. */
    check: () =>
      all(
        [timed.check(), combined?.isAvailable() ?? true],
        ([, isAvailable]) => isAvailable,
      ),
    hasRevision: !directory || directory.directoryRevision != null,
    /** Resolves when no call is pending. */
    idle,
  }
}

/** A directory with valid results. Most services have none: the code that checks them is loaded with the first call. */
function checkedLater(directory: Directory, checks: DirectoryChecks): Required<Directory> {
  let checked: Required<Directory> | undefined

  async function load(): Promise<Required<Directory>> {
    const { checkedDirectory } = await import('./content/custom-directory.ts')
    return checked ??= checkedDirectory(directory, checks)
  }

  const call = <T>(read: (from: Required<Directory>) => MaybePromise<T>) => andThen(checked ?? load(), read)

  return {
    listProfiles: (...args) => call((from) => from.listProfiles(...args)),
    findProfile: (...args) => call((from) => from.findProfile(...args)),
    countProfiles: (...args) => call((from) => from.countProfiles(...args)),
    listIndustries: () => call((from) => from.listIndustries()),
    nextProfileChangeAt: (...args) => call((from) => from.nextProfileChangeAt(...args)),
    directoryRevision: () => call((from) => from.directoryRevision()),
  }
}
