// app/service/[...path]/route.js: all but /.well-known/api-catalog, which would be a route of its own.
import { createPartnerApi } from 'partner-api'
import { openSqliteStore } from 'partner-api/sqlite'

let opening

// With the first request: `next build` loads this file, too, where no store may be in reach.
async function open() {
  const store = await openSqliteStore('partner-api.db')
  // Next.js passes X-Forwarded-For on as it came: a proxy in front has to write it.
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
