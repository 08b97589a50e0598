/** The receiving end of webhooks: verifies deliveries as Standard Webhooks 1.0 describes. */
import { isObject, parseJson } from '../../core/lib/json.ts'
import { assertKind } from '../../core/lib/options.ts'
import type { Key, KeyState, Partner } from '../../core/model.ts'
import type { Signup } from '../../core/ports/signups.ts'
import type { Webhook, WebhookEvent as StoredEvent } from '../../core/ports/webhooks.ts'
import type { RateLimit } from './response.ts'

/** A name of the service as on the wire. */
export type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name

/** A record of the service as on the wire: instants are RFC 3339, and what is absent is `null`. */
export type WireRecord<Row> = {
  readonly [Name in keyof Row & string as SnakeCase<Name>]:
    | (undefined extends Row[Name] ? null : never)
    | (Name extends `${string}At` ? string
      : Name extends 'limits' ? readonly WebhookLimit[]
      : Exclude<Row[Name], undefined>)
}

/** A limit of a partner or a key. A calendar month has no length in seconds. */
export interface WebhookLimit extends Pick<RateLimit, 'policy' | 'quota'> {
  /** The length of the window, in seconds; `null` for a calendar month. */
  readonly window_seconds: number | null
}

/** A partner whose quota is nearly or wholly used up, and how much of it is. */
export interface WebhookQuota {
  /** Slug of the partner. */
  readonly slug: string
  /** Name of the partner. */
  readonly name: string
  /** E-mail address of the partner, if it has one. */
  readonly contact: string | null
  /** Tags of the partner. */
  readonly tags: readonly string[]
  /** Policy of the quota: `partner` or `month`. */
  readonly policy: string
  /** Number of requests that the quota allows. */
  readonly quota: number
  /** Requests that were counted in the window. */
  readonly used: number
  /** When the window ends. */
  readonly resets_at: string
}

/** A key without its secret. */
export type WebhookKey =
  & WireRecord<Omit<Key, 'digest' | 'state' | 'predecessorId' | 'successorId' | 'retiresAt'>>
  & {
    readonly state: KeyState
    readonly rotation: { readonly successor_id: string; readonly retires_at: string | null } | null
  }

/** The `data` of a type of event. `actor` made a change, and `changed` names the members that changed. */
export type WebhookData<Type> =
  & (Type extends 'signup.created' ? WireRecord<Signup>
    : Type extends `${'key' | 'scope'}.${string}` ? WebhookKey
    : Type extends `${'partner' | 'module'}.${string}` ? WireRecord<Omit<Partner, 'note'>>
    : Type extends `quota.${string}` ? WebhookQuota
    : Type extends 'webhook.disabled' ?
        & WireRecord<Pick<Webhook, 'id' | 'events' | 'partner' | 'state' | 'createdAt'>>
        & Readonly<Record<'failing_since' | 'old_secret_expires_at' | 'pending_removed_at', string | null>>
    : unknown)
  & (Type extends `${infer Part extends 'scope' | 'module'}.${string}` ? { readonly [Name in Part]: string }
    : Type extends `key.expir${string}`
      ? WireRecord<Pick<Partner, 'contact'> & { endsAt: number; partnerTags: Partner['tags'] }>
    : unknown)
  & (Type extends 'signup.created' | 'key.expiring' | 'webhook.test' | `quota.${string}` ? unknown
    : { readonly actor: string; readonly changed: readonly string[] })

/**
 * A verified event, discriminated by `type`. Ignore types that you do not know: the service may add some. `id` is the
 * same for all deliveries of an event, which may arrive more than once; `timestamp` is when it happened, RFC 3339.
 */
export type WebhookEvent = {
  readonly [Type in StoredEvent['type']]: {
    readonly id: string
    readonly type: Type
    readonly timestamp: string
    readonly data: WebhookData<Type>
  }
}[StoredEvent['type']]

/** A delivery is not the service's, or is not of the last five minutes: respond with 400. */
export class WebhookVerificationError extends Error {
  /** Identifies the class across copies of this package. */
  override readonly name = 'WebhookVerificationError'
}

/**
 * Verifies a delivery of a webhook.
 *
 * @param secret The secret of the webhook, `whsec_` and Base64, or several of which one must match.
 * @param headers `Headers`, or an object such as Node's, its names in any case.
 * @param body The body as it arrived: its text, or its bytes in UTF-8.
 * @throws {WebhookVerificationError} unless it has a signature by one of the secrets, and is at most five minutes old.
 * @throws {TypeError} for an invalid secret, and for a body that was parsed.
 * @example
 * ```ts
 * const event = await verifyWebhook(secret, request.headers, await request.text())
 * if (event.type === 'signup.created') console.log(event.data.email)
 * ```
 */
export async function verifyWebhook(
  secret: string | readonly string[],
  headers: { get(name: string): string | null } | Readonly<Record<string, unknown>>,
  body: string | Uint8Array,
): Promise<WebhookEvent> {
  assertKind('headers', headers, 'an object')
  if (typeof body !== 'string' && !ArrayBuffer.isView(body)) {
    throw new TypeError(
      'body must be the text or the bytes as they arrived: verify it before a parser reads it.',
    )
  }
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((part) => {
    const name = `webhook-${part}`
    const value = typeof headers.get === 'function'
      ? headers.get(name)
      : Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1]
    if (!value) throw new WebhookVerificationError(`The header ${name} is missing.`)
    return String(value)
  }) as [string, string, string]
  const text = typeof body === 'string' ? body : new TextDecoder('utf-8', { ignoreBOM: true }).decode(body)
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`)
  const macs = signatures.match(/(?<=(?:^| )v1,)[A-Za-z\d+/]{43}=(?= |$)/g) ?? []
  // Once for each secret, however many signatures a stranger sends.
  const expected = await Promise.all([secret].flat().map((each) => sign(each, signed)))
  if (!expected.some((one) => macs.some((mac) => isEqual(one, mac)))) {
    throw new WebhookVerificationError('No signature matches the secret and the body as it arrived.')
  }
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300)) {
    throw new WebhookVerificationError('webhook-timestamp is not within five minutes of the clock.')
  }
  const event = parseJson(text)
  if (!isObject(event)) throw new WebhookVerificationError('The body is not an event.')
  return { ...event, id } as WebhookEvent
}

/** Compares texts of one length in constant time. */
function isEqual(a: string, b: string): boolean {
  let difference = 0
  for (let index = 0; index < a.length; index++) difference |= a.charCodeAt(index) ^ b.charCodeAt(index)
  return difference === 0
}

/** @returns The signature in Base64. */
async function sign(secret: string, signed: Uint8Array<ArrayBuffer>): Promise<string> {
  const [, encoded = ''] = /^whsec_([A-Za-z\d+/]+={0,2})$/.exec(String(secret).trim()) ?? []
  if (!encoded || encoded.length % 4) throw new TypeError('secret must be whsec_ and Base64.')
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0))
  const key = await crypto.subtle.importKey('raw', bytes, algorithm, false, ['sign'])
  return btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.sign('HMAC', key, signed))))
}
