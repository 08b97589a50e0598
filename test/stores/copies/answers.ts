/** What a service says over a store, for tests of copies: two stores that are the same say the same. */
import { createPartnerApi } from '../../../core/api.ts'
import type { Store } from '../../../core/ports/store.ts'
import { FAR_LIMITS, type Heard, withKey } from '../../contract/http/service.ts'
import { fetchWire } from '../../contract/http/wires.ts'
import type { KeyName, World } from '../../support/world.ts'
import { REPEATED } from './full-store.ts'

/** A service over a store. */
export interface Listening {
  /** Answers to everything that the contract has, by key and path. What differs from one asking to the next is left out. */
  everything(): Promise<Readonly<Record<string, string>>>
  /** A page of the directory. */
  page(cursor?: string): Promise<Heard>
  /** Sends again what was sent before. */
  repeat(): Promise<Heard>
  close(): Promise<void>
}

const paths = [
  // First, before anything else that is asked is counted.
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
const keyNames: readonly KeyName[] = [
  'demo full',
  'demo test',
  'demo powerless',
  'demo revoked',
  'demo fenced',
]

/** Serves a store to keys of its world. */
export function listenTo(store: Store, { keys }: Pick<World, 'keys'>): Listening {
  const api = createPartnerApi({ store }, { limits: FAR_LIMITS, maxStalenessMs: 0 })
  const wire = fetchWire(api.fetch)
  const post = (path: string, body: unknown, key: KeyName, headers: Readonly<Record<string, string>> = {}) =>
    wire({
      method: 'POST',
      target: `/service${path}`,
      headers: { ...withKey(keys[key]), 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const get = (path: string, key: KeyName) => wire({ target: `/service${path}`, headers: withKey(keys[key]) })

  return {
    async everything() {
      const said: Record<string, string> = {}
      for (const path of paths) {
        for (const key of keyNames) said[`${key}: ${path}`] = lasting(await get(path, key))
      }
      for (const key of Object.keys(keys) as KeyName[]) {
        const partner = key.split(' ')[0]!
        said[`${key}: verify-key`] = lasting(await post('/developer/verify-key', { partner }, key))
      }
      return said
    },
    page: (cursor) =>
      get(
        `/public/profiles?partner=demo&limit=7${cursor === undefined ? '' : `&cursor=${cursor}`}`,
        'demo full',
      ),
    repeat: () =>
      post('/partner/signups', REPEATED.body, 'demo full', { 'idempotency-key': REPEATED.idempotencyKey }),
    close: () => api.close(),
  }
}

function lasting({ status, text }: Heard): string {
  return `${status} ${text}`
    .replace(/req_\w+/g, 'req_')
    .replace(/"checked_at":"[^"]*"/, '"checked_at":""')
    .replace(/"resets_in_seconds":\d+/g, '"resets_in_seconds":0')
}
