/** Signing secrets of webhooks: made, sealed for the store, and used for signatures as in Standard Webhooks 1.0. */
import { Buffer } from 'node:buffer'
import { createHmac, randomBytes } from 'node:crypto'
import { assertKind } from '../../core/lib/options.ts'
import type { Webhook } from '../../core/ports/webhooks.ts'

/** Seals the secrets of webhooks for the store, and opens them. */
export interface WebhookKey {
  /** Encrypts a secret for the webhook with this id only. */
  seal(secret: string, id: string): Promise<string>
  /** Decrypts a secret. @throws {RangeError} for one that was sealed with another key. */
  open(sealed: string, id: string): Promise<string>
}

/** @throws {TypeError} for what importWebhookKey has not returned. */
export function assertWebhookKey(where: string, key: WebhookKey | undefined): void {
  if (key === undefined || typeof key.seal === 'function' && typeof key.open === 'function') return
  throw new TypeError(`${where}: key must be what importWebhookKey returned; await it first.`)
}

const prefix = 'whsec_'
const ivBytes = 12

/** Makes a secret: `whsec_` and 32 random bytes in Base64. */
export function createWebhookSecret(): string {
  return prefix + randomBytes(32).toString('base64')
}

/**
 * Imports a key for AES-256-GCM.
 *
 * @param text 32 bytes in Base64. A previous key may follow after white space: it only opens secrets.
 * @throws {RangeError} for other text. The message does not contain it.
 */
export async function importWebhookKey(text: string): Promise<WebhookKey> {
  assertKind('The key for the secrets of webhooks', text, 'a text')
  const keys = await Promise.all(text.trim().split(/\s+/).map(importKey))

  return {
    async seal(secret, id) {
      const iv = crypto.getRandomValues(new Uint8Array(ivBytes))
      const sealed = await crypto.subtle.encrypt(
        algorithm(iv, id),
        keys[0]!,
        new TextEncoder().encode(secret),
      )
      return Buffer.concat([iv, new Uint8Array(sealed)]).toString('base64')
    },
    async open(sealed, id) {
      const bytes = Uint8Array.from(Buffer.from(sealed, 'base64'))
      const iv = bytes.subarray(0, ivBytes)
      const data = bytes.subarray(ivBytes)
      for (const key of keys) {
        const secret = await crypto.subtle.decrypt(algorithm(iv, id), key, data).catch(() => undefined)
        if (secret !== undefined) return new TextDecoder().decode(secret)
      }
      throw new RangeError(`The secret of ${id} was sealed with another key.`)
    },
  }
}

function importKey(text: string): Promise<CryptoKey> {
  const bytes = Uint8Array.from(Buffer.from(text, 'base64'))
  if (!/^[\w+/-]{43}=?$/.test(text) || bytes.length !== 32) {
    throw new RangeError('It must be 32 bytes in Base64.')
  }
  return crypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt', 'decrypt'])
}

function algorithm(iv: Uint8Array<ArrayBuffer>, id: string): AesGcmParams {
  return { name: 'AES-GCM', iv, additionalData: new TextEncoder().encode(id) }
}

/** Opens the secrets that have not expired. @throws {RangeError} for secrets that were sealed with another key. */
export function openSecrets(key: WebhookKey, { id, secrets }: Webhook, now: number): Promise<string[]> {
  const valid = secrets.filter(({ expiresAt = Infinity }) => expiresAt > now)
  return Promise.all(valid.map(({ sealed }) => key.open(sealed, id)))
}

/**
 * Makes the value of `webhook-signature`: one signature for each secret.
 *
 * @param id The message's `webhook-id`.
 * @param timestamp Its `webhook-timestamp`: seconds since the epoch.
 */
export function signWebhook(secrets: readonly string[], id: string, timestamp: number, body: string): string {
  return secrets.map((secret) => {
    const hmac = createHmac('sha256', Buffer.from(secret.slice(prefix.length), 'base64'))
    return `v1,${hmac.update(`${id}.${timestamp}.${body}`).digest('base64')}`
  }).join(' ')
}
