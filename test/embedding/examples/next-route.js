// app/service/[...path]/route.js
import { createPartnerApi } from 'partner-api'
import { openSqliteStore } from 'partner-api/sqlite'

// A proxy in front says in X-Forwarded-For whose request it is: Next.js itself does not tell.
const { fetch } = createPartnerApi({ store: await openSqliteStore('partner-api.db') }, { trustedProxies: 1 })

export {
  fetch as DELETE,
  fetch as GET,
  fetch as HEAD,
  fetch as OPTIONS,
  fetch as PATCH,
  fetch as POST,
  fetch as PUT,
}
