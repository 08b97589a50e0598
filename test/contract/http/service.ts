/** What every suite of the wire is given: services of its own, running somewhere, and their operator's hands. */
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

/** A request, nothing of which is made nicer on its way. */
export interface Ask {
  /** Default GET. */
  readonly method?: string
  /** Path and query as they go over the wire. */
  readonly target: string
  /** A list of values makes the field stand several times. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Uint8Array
  /** Send the body in chunks, without its length. */
  readonly chunked?: boolean
}

/** An answer. */
export interface Heard {
  readonly status: number
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  /** Names that stood more than once. */
  readonly repeated: readonly string[]
  /** As it came, compressed or not. */
  readonly body: Uint8Array
  readonly text: string
  // deno-lint-ignore no-explicit-any -- a test reads whatever members it expects
  readonly json: any
}

/** Sends a request and waits for the whole answer. */
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
  /** What its runtime does in its own way. */
  readonly quirks: ReadonlySet<Quirk>
  /** Sends a request; throws when the answer breaks what holds for every answer. */
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

/** An answer that was waited for. */
export interface Awaited {
  readonly heard: Heard
  /** When the last request was sent whose answer would not do; -Infinity when the first one did. */
  readonly lastBefore: number
}

/**
 * Asks until an answer will do. What was promised for an instant is judged by when requests were sent, not by when
 * this comes to look: a busy machine is no breach.
 *
 * @param clock Tells `lastBefore`: milliseconds that are never set back by default.
 * @throws {Error} when no answer has done after a minute.
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
 * Prepares something for an instant to come and observes what precedes it. Repeats with a later instant when that took
 * until the instant: a busy machine is no breach.
 *
 * @param prepare Is given the instant and the number of the attempt.
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
