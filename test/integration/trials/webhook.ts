import { importWebhookKey } from '../../../adapters/webhooks/deliverer.ts'
import { createWebhookSecret } from '../../../adapters/webhooks/secrets.ts'
import type { Store } from '../../../core/ports/store.ts'

/** The key that seals the secrets of webhooks. */
export const keyText: string = Buffer.alloc(32, 7).toString('base64')

export async function addWebhook(store: Store, url: string, id: string): Promise<void> {
  const key = await importWebhookKey(keyText)
  const secrets = [{ sealed: await key.seal(createWebhookSecret(), id), expiresAt: undefined }]
  const at = Date.now()
  await store.webhooks!.changeWebhook(id, 'webhook.created', { actor: 'trial', at }, () => ({
    ...{ id, url, events: ['signup.created'], partner: undefined, state: 'active', createdAt: at, secrets },
    failingSince: undefined,
  }))
}
