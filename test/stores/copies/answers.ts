/** The responses of a service over a store, for tests of copies: equal stores give equal responses. */
import { createPartnerApi } from '../../../core/api.ts'
import type { Store } from '../../../core/ports/store.ts'
import { FAR_LIMITS, type TestResponse, withKey } from '../../contract/http/service.ts'
import { fetchTransport } from '../../contract/http/wires.ts'
import type { KeyName, World } from '../../support/world.ts'
import { IMPORTED, REPEATED } from './full-store.ts'

const paths = [
  // First, because the requests below are counted.
  '/partner/reports/summary?partner=demo',
  '/partner/reports/activity?partner=demo&limit=100',
  '/public/profiles/recent?partner=demo&limit=50',
  '/public/profiles?partner=demo&limit=100',
  '/public/profiles?partner=demo&limit=100&q=workshop&country=DE',
  '/public/profiles?partner=demo&sort=-published_at&industry=education',
  '/public/profiles/for-two?partner=demo',
  '/public/profiles/for-acme?partner=demo',
  '/public/banner?partner=demo',
  '/public/countries?partner=demo&in_use=true',
  '/public/industries?partner=demo',
  '/public/plans?partner=demo',
  '/partner-widget?partner=demo',
]
/** Keys that call every endpoint. For all others, `verify-key` reports state and scopes. */
const keyNames: readonly KeyName[] = ['demo full', 'demo test']

/** Serves a store to the keys of its world. */
export function serve(store: Store, { keys }: Pick<World, 'keys'>) {
  const api = createPartnerApi({ store }, {
    limits: FAR_LIMITS,
    maxStalenessMs: 0,
    storeTimeoutMs: 60_000,
  })
  const wire = fetchTransport(api.fetch)
  const post = (
    path: string,
    body: unknown,
    key: { readonly text: string },
    headers: Readonly<Record<string, string>> = {},
  ) =>
    wire({
      method: 'POST',
      target: `/service${path}`,
      headers: { ...withKey(key), 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const get = (path: string, key: KeyName) => wire({ target: `/service${path}`, headers: withKey(keys[key]) })

  return {
    /** Responses of every endpoint by key and path, without members that differ between requests. */
    async everything() {
      const responses: Record<string, string> = {}
      for (const path of paths) {
        for (const key of keyNames) responses[`${key}: ${path}`] = withoutVariables(await get(path, key))
      }
      for (const key of Object.keys(keys) as KeyName[]) {
        const partner = key.split(' ')[0]!
        responses[`${key}: verify-key`] = withoutVariables(
          await post('/developer/verify-key', { partner }, keys[key]),
        )
      }
      const imported = await post('/developer/verify-key', { partner: 'demo' }, { text: IMPORTED })
      if (imported.status !== 200) throw new Error(`The imported key gets ${imported.status}.`)
      responses['imported: verify-key'] = withoutVariables(imported)
      return responses
    },
    /** A page of the directory. */
    page: (cursor?: string) =>
      get(
        `/public/profiles?partner=demo&limit=7${cursor === undefined ? '' : `&cursor=${cursor}`}`,
        'demo full',
      ),
    /** Sends `REPEATED` again. */
    repeat: () =>
      post('/partner/signups', REPEATED.body, keys['demo full'], {
        'idempotency-key': REPEATED.idempotencyKey,
      }),
    close: () => api.close(),
  }
}

function withoutVariables({ status, text }: TestResponse): string {
  return `${status} ${text}`
    .replace(/req_\w+/g, 'req_')
    .replace(/"checked_at":"[^"]*"/, '"checked_at":""')
    .replace(/"resets_in_seconds":\d+/g, '"resets_in_seconds":0')
}
