/** Delivers the events of a store to its webhooks. @module */
export type { LogEvent } from '../../core/log.ts'
export type { Store } from '../../core/ports/store.ts'
export { type RunningWebhooks, startWebhooks, type WebhookOptions } from './deliverer.ts'
export { importWebhookKey, type WebhookKey } from './secrets.ts'
