import { createPartnerApi, type PartnerApi } from '../../core/api.ts'
import type { HttpRequest } from '../../core/http/message.ts'
import type { Store } from '../../core/ports/store.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { createPartner, PARTNER } from '../support/partner.ts'
import { INDUSTRIES, profiles } from './profiles.ts'

/** Where the directory is, in the service and in every peer. */
export const DIRECTORY_PATH = '/service/public/profiles'

/** The benchmarked page: 20 profiles. */
export const CACHED_TARGET: string = `${DIRECTORY_PATH}?partner=${PARTNER}&limit=20`

/** The check of a key, in the service and in every peer. */
export const VERIFY_PATH = '/service/developer/verify-key'

/** The body of a check. */
export const VERIFY_BODY: string = JSON.stringify({ partner: PARTNER })

/** A quota that no run spends. Requests are counted against it all the same. */
export const ENOUGH = { quota: 1_000_000_000, windowSeconds: 60 }

/** Creates the partner on a store without it. @returns A key, which no store can give back. */
export async function issueKey(store: Store): Promise<string> {
  return (await (await createPartner(store)).issue()).text
}

/** Fills an empty store with the industries and the first `count` profiles. */
export async function fill(store: Store, count: number): Promise<void> {
  const now = Date.now()
  await store.importContent('industries', INDUSTRIES, { now, actor: 'bench' })
  await store.importContent('profiles', [...profiles(count)], { now, actor: 'bench' })
}

/** The service as a self-hoster runs it, but for quotas that no run spends. */
export function createService(store: Store, options: PartnerApiOptions = {}): PartnerApi {
  return createPartnerApi({ store }, { limits: { key: ENOUGH, verify: ENOUGH }, ...options })
}

/** A GET as the Node adapter would hand it over. */
export function exchangeFor(target: string, key: string): HttpRequest {
  const headers: Readonly<Record<string, string>> = {
    host: '127.0.0.1',
    accept: 'application/json',
    authorization: `Bearer ${key}`,
  }
  return {
    method: 'GET',
    target,
    header: (name) => headers[name],
    body: () => new Uint8Array(),
    address: '127.0.0.1',
  }
}

/** A check of the key as the Node adapter would hand it over. */
export function verifyExchangeFor(key: string): HttpRequest {
  const exchange = exchangeFor(VERIFY_PATH, key)
  const bytes = new TextEncoder().encode(VERIFY_BODY)
  return {
    ...exchange,
    method: 'POST',
    header: (name) => name === 'content-type' ? 'application/json' : exchange.header(name),
    body: () => bytes,
  }
}

/** A response of the service, for peers to have ready. */
export interface ReadyAnswer {
  readonly text: string
  readonly bytes: Uint8Array
  /** The fields that every answer has alike; names and values. */
  readonly headers: Readonly<Record<string, string>>
}

/** What is another one in each answer, and what a server writes by itself. */
const changing = new Set(['X-Request-Id', 'RateLimit', 'Content-Length'])

/** Sends a request once, by default for the page of 20 profiles. */
export async function readyAnswer(
  service: PartnerApi,
  key: string,
  exchange: HttpRequest = exchangeFor(CACHED_TARGET, key),
): Promise<ReadyAnswer> {
  const { status, headers, body } = await service.handle(exchange)
  if (status !== 200 || body === undefined) throw new Error(`The response has the status ${status}.`)
  const pairs = Array.from(
    { length: headers.length / 2 },
    (_, index) => [headers[2 * index]!, headers[2 * index + 1]!] as const,
  )
  return {
    text: Buffer.from(body).toString(),
    bytes: Buffer.from(body),
    headers: Object.fromEntries(pairs.filter(([name]) => !changing.has(name))),
  }
}
