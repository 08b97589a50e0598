// For Cloudflare or workerd. Needs the variable DATABASE_URL, a Durable Object binding PARTNER_API for the class below,
// and `nodejs_compat` if the compatibility date is before 2026-08-04.
import { DurableObject } from 'cloudflare:workers'
import { createPartnerApi } from 'partner-api'
import { openPostgresStore } from 'partner-api/postgres'
import { createWorker } from 'partner-api/workers'

const worker = createWorker(
  async ({ DATABASE_URL }) => createPartnerApi({ store: await openPostgresStore(DATABASE_URL) }),
  { trustConnectingIp: true },
)

// Connections of a Worker end with their request; those of a Durable Object stay open. It also counts limits for all
// requests.
export class PartnerApi extends DurableObject {
  fetch(request) {
    return worker.fetch(request, this.env, this.ctx)
  }
}

export default {
  fetch(request, { PARTNER_API }) {
    return PARTNER_API.get(PARTNER_API.idFromName('partner-api')).fetch(request)
  },
}
