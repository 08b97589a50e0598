/** What the HTTP suites receive: a deployed service and its administration. */
import type { Limit, ServicePolicyName } from '../../../core/model.ts'
import type { Endpoint } from '../../../core/routes/route.ts'
import type { ServedOptions } from '../../support/own-endpoints.ts'
import type { World } from '../../support/world.ts'
import type { TestContext } from '../store/suites.ts'

export type { TestContext }

/** Settings of a service, serializable as JSON for services in other processes. */
export type Settings = Pick<
  ServedOptions,
  | 'serviceName'
  | 'basePath'
  | 'maxStalenessMs'
  | 'limits'
  | 'trustedProxies'
  | 'allowBrowsers'
  | 'problemBase'
  | 'handlerTimeoutMs'
  | 'ownEndpoints'
>

/** Differences of a runtime that take effect before the service receives the request. */
export type Quirk = 'resolves-targets' | 'no-trace' | 'knows-few-methods'

/** The reason for each quirk. */
export const QUIRKS: Readonly<Record<Quirk, string>> = {
  'resolves-targets':
    'Bun, workerd and Request resolve the URL, which removes dot segments before the service can refuse them. Bun and Request treat a backslash as a slash.',
  'no-trace': 'The Fetch standard forbids TRACE: Request and workerd reject it themselves.',
  'knows-few-methods': 'workerd answers rare registered methods with 501 without calling the Worker.',
}

/** A request, sent unmodified. */
export interface TestRequest {
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
export interface TestResponse {
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
export type Send = (request: TestRequest) => Promise<TestResponse>

/** A running service. */
export interface Service {
  /** Prefix of the paths of the service: `/service`, below the base path. */
  readonly root: string
  readonly names: {
    readonly realm: string
    readonly key: string
    readonly version: string
  }
  readonly world: World
  /** Every endpoint that the service should have. */
  readonly routes: readonly Endpoint[]
  /** Differences of its runtime. */
  readonly quirks: ReadonlySet<Quirk>
  /** Sends a request; throws if the response breaks a convention of section 1. */
  readonly send: Send
}

/**
 * Starts a service with a new world, calls `body`, and stops the service. Defaults: limits out of reach, and
 * `maxStalenessMs` 0.
 */
export type Deploy = (settings: Settings, body: (service: Service) => Promise<void>) => Promise<void>

/** Tests of one subject that share a service with other suites of the same settings. */
export interface Suite {
  readonly settings?: Settings
  /** Such a suite shares no service with suites that compare content with what was imported. */
  readonly changesContent?: true
  /** By title. */
  readonly tests: Readonly<
    Record<string, (t: TestContext, service: Service) => Promise<void>>
  >
}

/** The version of this contract. */
export const VERSION = '2026-11-20'

const far: Limit = { quota: 1_000_000, windowSeconds: 60 }
/** Limits that no test reaches unintentionally. */
export const FAR_LIMITS: Readonly<Record<ServicePolicyName, Limit>> = {
  key: far,
  signup: far,
  verify: far,
  rotate: far,
  authfail: far,
}

/** The header field that carries a key. */
export function withKey(key: { readonly text: string }): { readonly 'x-service-partner-key': string } {
  return { 'x-service-partner-key': key.text }
}

/** Sends a GET to a path of the service, by default with the full key of `demo`. */
export function get(
  { send, root, world }: Service,
  path: string,
  more: Partial<TestRequest> & { readonly key?: { readonly text: string } } = {},
): Promise<TestResponse> {
  const { key = world.keys['demo full'], headers, ...rest } = more
  return send({ target: root + path, ...rest, headers: { ...withKey(key), ...headers } })
}

/** Posts a body, by default to verify-key with the full key of `demo`. */
export function post(
  { send, root, world }: Service,
  body: string | Uint8Array,
  more: Partial<TestRequest> & { readonly key?: { readonly text: string } } = {},
): Promise<TestResponse> {
  const { key = world.keys['demo full'], headers, ...rest } = more
  return send({
    method: 'POST',
    target: `${root}/developer/verify-key`,
    body,
    ...rest,
    headers: { ...withKey(key), 'content-type': 'application/json', ...headers },
  })
}

/** The first expected response. */
export interface AwaitedResponse {
  readonly response: TestResponse
  /** When the last request before it was sent; -Infinity if there was none. */
  readonly lastBefore: number
}

/**
 * Repeats a request until its response is the expected one. `lastBefore` lets tests compare deadlines with the times at
 * which requests were sent, so that a slow machine fails none.
 *
 * @param clock For `lastBefore`: milliseconds, monotonic by default.
 * @throws {Error} after a minute.
 */
export async function until(
  request: () => Promise<TestResponse>,
  isExpected: (response: TestResponse) => boolean,
  clock: () => number = () => performance.now(),
): Promise<AwaitedResponse> {
  const deadline = performance.now() + 60_000
  for (let lastBefore = -Infinity;;) {
    const sentAt = clock()
    const response = await request()
    if (isExpected(response)) return { response, lastBefore }
    lastBefore = sentAt
    if (performance.now() > deadline) {
      throw new Error(`Unexpected after a minute: ${response.status} ${response.text}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/**
 * Prepares a future instant and observes the state before it. Repeats with a later instant if the preparation took too
 * long.
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
