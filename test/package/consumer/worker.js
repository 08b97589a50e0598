/**
 * A Worker with a store of one key, which is in the variables SETTINGS and FACTS. At `/ask`, it calls another service with
 * the client.
 */
import { createHash } from 'node:crypto'
import { createPartnerApi } from 'partner-api'
import { createPartnerClient } from 'partner-api-client'
import { createWorker } from 'partner-api/workers'

/** What the test does not need. */
const empty = Object.fromEntries(
  [
    ...['check', 'findImportedKey', 'listProfiles', 'findProfile', 'listIndustries', 'findBanner', 'listPlans'],
    ...['createSignup', 'reserveSignup', 'isReserved', 'findSignup', 'summarise', 'listActivity', 'listProblems'],
    ...['recordEndpoints', 'listEndpoints', 'findPartner', 'listKeys', 'listChain', 'wasChangedByOthers'],
    ...['findClaim', 'maxKeyLifetimeMs', 'apply'],
  ].map((name) => [name, () => []]),
)

const worker = createWorker(({ SETTINGS, FACTS }) =>
  createPartnerApi({
    store: {
      ...empty,
      settings: JSON.parse(SETTINGS),
      sha256: (text) => createHash('sha256').update(text).digest('hex'),
      revision: () => ({ facts: 'unchanging', content: 'unchanging' }),
      findKey: () => JSON.parse(FACTS),
      countProfiles: () => new Map(),
      nextProfileChangeAt: () => undefined,
      directoryRevision: () => 'unchanging',
      clock: () => undefined,
      listModules: () => [],
      knownModules: () => [],
      onChange: () => () => {},
      recordKeyUses() {},
      recordUsage() {},
      replicas: {
        register: () => ({ registered() {}, replicaCount: () => 1, deregister: () => Promise.resolve() }),
      },
      quotas: { sharesLimits: false, leastWindowSeconds: Infinity },
    },
  })
)

export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url)
    if (pathname === '/ask') return Response.json(await createPartnerClient(await request.json()).verifyKey())
    return await worker.fetch(request, env, context)
  },
}
