// app/service/[...path]/route.js; /.well-known/api-catalog needs a route of its own.
import { createPartnerApi } from 'partner-api'
import { openSqliteStore } from 'partner-api/sqlite'

let opening

// Called by the first request: `next build` also loads this file, and may have no access to the store.
async function open() {
  const store = await openSqliteStore('partner-api.db')
  // Next.js does not add to X-Forwarded-For: a proxy in front has to.
  return createPartnerApi({ store }, { trustedProxies: 1 })
}

async function answer(request) {
  opening ??= open()
  try {
    return (await opening).fetch(request)
  } catch (error) {
    opening = undefined
    throw error
  }
}

export {
  answer as DELETE,
  answer as GET,
  answer as HEAD,
  answer as OPTIONS,
  answer as PATCH,
  answer as POST,
  answer as PUT,
}
