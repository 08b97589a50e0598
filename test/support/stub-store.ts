import { sha256 } from '../../adapters/digest.ts'
import { newSettings } from '../../adapters/stores/sql/schema.ts'
import { EMPTY_AUDIT_HEAD } from '../../core/ports/audit.ts'
import type { QuotaStore } from '../../core/ports/quotas.ts'
import type { ReplicaRegistry } from '../../core/ports/replicas.ts'
import type { Store } from '../../core/ports/store.ts'
import type { WebhookStore } from '../../core/ports/webhooks.ts'

/** A registry that a service does not wait for: it answers the first request at once, too, and sets fewer timers. */
export const noReplicas: ReplicaRegistry = {
  register: () => ({
    registered: () => undefined,
    replicaCount: () => 1,
    deregister: () => Promise.resolve(),
  }),
  progress: () => [],
}

/** Quotas of which every process counts all by itself. */
const localQuotas: QuotaStore = {
  sharesLimits: false,
  leastWindowSeconds: Infinity,
  leaseQuota: () => {
    throw new Error('leased')
  },
  returnQuotas: () => undefined,
}

const noWebhooks: WebhookStore = {
  listWebhooks: () => [],
  changeWebhook: (_id, _type, _context, change) => change(undefined),
  enqueue: () => undefined,
  dueWebhooks: () => [],
  leaseDeliveries: () => [],
  settleDeliveries: () => undefined,
  listDeliveries: () => [],
  countPending: () => 0,
  replayDeliveries: () => [],
  pruneDeliveries: () => [],
}

/** A whole store, which is empty and forgets what it is given. @param members Replace its own. */
export function createStubStore(members: Partial<Store> = {}): Store {
  return {
    settings: newSettings(undefined),
    sha256,
    check: () => undefined,
    revision: () => ({ facts: 'unchanging', content: 'unchanging' }),
    directoryRevision: () => 'unchanging',
    clock: () => undefined,
    now: undefined,
    onChange: () => () => undefined,
    close: () => undefined,

    findKey: () => undefined,
    findImportedKey: () => false,
    listModules: () => [],
    knownModules: () => [],
    recordKeyUses: () => undefined,

    listPartners: () => [],
    findPartner: () => undefined,
    maxKeyLifetimeMs: () => undefined,
    listKeys: () => [],
    listChain: () => [],
    wasChangedByOthers: () => false,
    findClaim: () => undefined,
    listClaims: () => [],
    findDigests: () => ({ schemes: [], keys: [] }),
    apply: () => true,

    listProfiles: () => [],
    findProfile: () => undefined,
    countProfiles: () => new Map(),
    listIndustries: () => [],
    nextProfileChangeAt: () => undefined,
    findBanner: () => undefined,
    listPlans: () => [],
    importContent: () => ({ created: 0, replaced: 0, unchanged: 0 }),
    exportContent: () => [],
    removeContent: () => ({ missing: [], used: [] }),

    createSignup: () => ({ outcome: 'created' }),
    reserveSignup: () => ({ outcome: 'created' }),
    isReserved: () => false,
    findSignup: () => undefined,
    listSignups: () => [],
    deleteSignups: () => 0,
    eraseRemains: () => undefined,

    recordUsage: () => undefined,
    listProblems: () => [],
    summarise: () => ({
      signupsByPlan: [],
      signupsByCountry: [],
      signupsByDay: [],
      requestsByEndpoint: [],
      requestsByDay: [],
    }),
    summarisePartners: () => [],
    keyUsage: () => [],
    listActivity: () => [],
    recordEndpoints: () => undefined,
    listEndpoints: () => [],

    listAudit: () => [],
    auditTail: () => -Infinity,
    auditHead: () => EMPTY_AUDIT_HEAD,
    auditIntruders: () => [],

    replicas: noReplicas,
    quotas: localQuotas,
    webhooks: noWebhooks,
    ...members,
  }
}
