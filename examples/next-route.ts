// app/service/[...path]/route.ts; /.well-known/api-catalog needs a route of its own. Start Next.js with
// NEXT_MANUAL_SIG_HANDLE=true: otherwise it exits before the last counts are written.
import { createPartnerApi, type PartnerApi } from 'partner-api'
import { openSqliteStore } from 'partner-api/sqlite'

let opening: Promise<PartnerApi> | undefined

// Called by the first request: `next build` also loads this file, and may have no access to the store.
async function open(): Promise<PartnerApi> {
  const store = await openSqliteStore('partner-api.db')
  // Next.js does not add to X-Forwarded-For: a proxy in front has to.
  const api = createPartnerApi({ store }, { trustedProxies: 1 })
  async function stop() {
    await api.close()
    await store.close()
    process.exit()
  }
  process.once('SIGTERM', stop).once('SIGINT', stop)
  return api
}

async function answer(request: Request): Promise<Response> {
  opening ??= open()
  try {
    return await (await opening).fetch(request)
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
