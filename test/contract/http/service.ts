/** What the suites of the wire get: services that run somewhere, and their administration. */
import type { Limit, LimitName } from '../../../core/model.ts'
import type { Endpoint } from '../../../core/routes/context.ts'
import type { PartnerApiOptions } from '../../../core/settings.ts'
import type { World } from '../../support/world.ts'
import type { Tester } from '../store/suites.ts'
import type { Quirk } from './quirks.ts'

export type { Tester }

/** Settings of a service. They can be written down as JSON, for services that run in another process. */
export type Settings = Pick<
  PartnerApiOptions,
  'serviceName' | 'maxStalenessMs' | 'limits' | 'trustedProxies' | 'allowBrowsers' | 'problemBase'
>

/** A request, sent exactly as it is. */
export interface Ask {
  /** Default GET. */
  readonly method?: string
  /** Path and query as they go over the wire. */
  readonly target: string
  /** A list of values repeats the field. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Uint8Array
  /** Send the body in chunks, without its length. */
  readonly chunked?: boolean
}

/** A response. */
export interface Heard {
  readonly status: number
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  /** Names of repeated fields. */
  readonly repeated: readonly string[]
  /** As received, compressed or not. */
  readonly body: Uint8Array
  readonly text: string
  // deno-lint-ignore no-explicit-any -- a test reads whatever members it expects
  readonly json: any
}

/** Sends a request and waits for the complete response. */
export type Wire = (ask: Ask) => Promise<Heard>

/** A service that runs. */
export interface Service {
  /** Below this are the paths of the service: `/service`. */
  readonly root: string
  readonly names: {
    readonly realm: string
    readonly key: string
    readonly version: string
  }
  readonly world: World
  /** Every endpoint that it should have. */
  readonly routes: readonly Endpoint[]
  /** Where its runtime differs. */
  readonly quirks: ReadonlySet<Quirk>
  /** Sends a request; throws if the response breaks a convention of section 1. */
  readonly send: Wire
}

/**
 * Starts a service over a fresh world, lends it, and stops it. Limits are far off unless the settings name some;
 * `maxStalenessMs` is 0 unless they say otherwise.
 */
export type Deploy = (settings: Settings, body: (service: Service) => Promise<void>) => Promise<void>

/** Tests of one subject that share a service with other suites of the same settings. */
export interface Suite {
  readonly settings?: Settings
  /** The service is shared only with suites that change content as well: others compare it with what was imported. */
  readonly changesContent?: true
  /** By title. */
  readonly tests: Readonly<
    Record<string, (t: Tester, service: Service) => Promise<void>>
  >
}

/** The version of this contract. */
export const VERSION = '2026-11-20'

const far: Limit = { quota: 1_000_000, windowSeconds: 60 }
/** Limits that no test meets by chance. */
export const FAR_LIMITS: Readonly<Record<LimitName, Limit>> = {
  key: far,
  signup: far,
  verify: far,
  authfail: far,
}

/** The field of a key. */
export function withKey(key: { readonly text: string }): { readonly 'x-service-partner-key': string } {
  return { 'x-service-partner-key': key.text }
}

/** A GET below the service's path with the full key of `demo`, unless something else is asked for. */
export function get(
  { send, root, world }: Service,
  path: string,
  more: Partial<Ask> & { readonly key?: { readonly text: string } } = {},
): Promise<Heard> {
  const { key = world.keys['demo full'], headers, ...rest } = more
  return send({ target: root + path, ...rest, headers: { ...withKey(key), ...headers } })
}

/** A POST of a body to verify-key with the full key of `demo`, unless something else is asked for. */
export function post(
  { send, root, world }: Service,
  body: string | Uint8Array,
  more: Partial<Ask> & { readonly key?: { readonly text: string } } = {},
): Promise<Heard> {
  const { key = world.keys['demo full'], headers, ...rest } = more
  return send({
    method: 'POST',
    target: `${root}/developer/verify-key`,
    body,
    ...rest,
    headers: { ...withKey(key), 'content-type': 'application/json', ...headers },
  })
}

/** A response that was waited for. */
export interface Awaited {
  readonly heard: Heard
  /** When the last request before it was sent; -Infinity if there was none. */
  readonly lastBefore: number
}

/**
 * Repeats a request until its response is the expected one. Promises about an instant are compared with the times at
 * which requests were sent, so that a busy machine breaks none.
 *
 * @param clock For `lastBefore`: milliseconds, monotonic by default.
 * @throws {Error} after a minute.
 */
export async function until(
  ask: () => Promise<Heard>,
  will: (heard: Heard) => boolean,
  clock: () => number = () => performance.now(),
): Promise<Awaited> {
  const deadline = performance.now() + 60_000
  for (let lastBefore = -Infinity;;) {
    const sentAt = clock()
    const heard = await ask()
    if (will(heard)) return { heard, lastBefore }
    lastBefore = sentAt
    if (performance.now() > deadline) throw new Error(`After a minute still: ${heard.status} ${heard.text}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/**
 * Prepares something for a future instant and observes what precedes it. Repeats with a later instant if that took too
 * long, on a busy machine.
 *
 * @param prepare Gets the instant and the number of the attempt.
 */
export async function before<T>(
  prepare: (at: number, attempt: number) => Promise<T>,
): Promise<{ readonly at: number; readonly observed: T }> {
  for (let attempt = 0, leadMs = 400;; attempt++, leadMs *= 2) {
    const at = Date.now() + leadMs
    const observed = await prepare(at, attempt)
    if (Date.now() < at) return { at, observed }
  }
}
