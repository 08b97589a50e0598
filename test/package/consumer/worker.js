/**
 * A Worker with a store of one key, which is in the variables SETTINGS and FACTS. At `/ask`, it calls another service with
 * the client.
 */
import { createHash } from 'node:crypto'
import { createPartnerApi } from 'partner-api'
import { createPartnerClient } from 'partner-api-client'
import { createWorker } from 'partner-api/workers'

const worker = createWorker(({ SETTINGS, FACTS }) =>
  createPartnerApi({
    store: {
      settings: JSON.parse(SETTINGS),
      sha256: (text) => createHash('sha256').update(text).digest('hex'),
      revision: () => ({ facts: 'unchanging', content: 'unchanging' }),
      findKey: () => JSON.parse(FACTS),
      countProfiles: () => new Map(),
      nextProfileChangeAt: () => undefined,
      recordKeyUses() {},
      recordUsage() {},
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
