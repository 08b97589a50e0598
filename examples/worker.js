// On Cloudflare or workerd, with a variable DATABASE_URL, a Durable Object PARTNER_API of the class below, and
// `nodejs_compat` where the compatibility date is before 2026-08-04.
import { DurableObject } from 'cloudflare:workers'
import { createPartnerApi } from 'partner-api'
import { openPostgresStore } from 'partner-api/postgres'
import { createWorker } from 'partner-api/workers'

const worker = createWorker(
  async ({ DATABASE_URL }) => createPartnerApi({ store: await openPostgresStore(DATABASE_URL) }),
  { trustConnectingIp: true },
)

// A request's connections end with it; an object's stay, and its quotas hold for everybody.
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
