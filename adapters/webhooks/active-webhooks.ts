/**
 * The active webhooks, as this process last read them. None is called later than `maxStalenessMs`, or 500 ms if that is
 * longer, after it was disabled or removed.
 */
import type { Webhook, WebhookStore } from '../../core/ports/webhooks.ts'

/** A webhook is failing after so many failures in a row. */
export const failuresInARow = 3
/** A lower staleness would leave no time to read them. */
const minStalenessMs = 500

/** An active webhook, and how it responds. */
export interface Target {
  webhook: Webhook
  failures: number
  /** Leased deliveries, or those that are being leased. */
  attempts: number
  isFast: boolean
  /** When `Retry-After` ends, on `performance.now()`. */
  pausedUntil: number
}

export function createActiveWebhooks(port: Pick<WebhookStore, 'listWebhooks'>, maxStalenessMs: number) {
  const targets = new Map<string, Target>()
  let reading: Promise<void> | undefined
  let readAt = -Infinity

  async function read(startedAt: number): Promise<void> {
    const active = (await port.listWebhooks()).filter(({ state }) => state === 'active')
    for (const id of targets.keys()) if (!active.some((webhook) => webhook.id === id)) targets.delete(id)
    readAt = startedAt
    for (const webhook of active) {
      const failures = webhook.failingSince === undefined ? 0 : failuresInARow
      const target = targets.get(webhook.id) ?? { failures, attempts: 0, isFast: false, pausedUntil: 0 }
      targets.set(webhook.id, Object.assign(target, { webhook }))
    }
  }

  return {
    targets,
    refresh: () => reading ??= read(performance.now()).finally(() => reading = undefined),
    /** Whether the webhook was active within the staleness. */
    mayBeCalled(target: Target): boolean {
      const isFresh = performance.now() - readAt < Math.max(minStalenessMs, maxStalenessMs)
      return isFresh && targets.get(target.webhook.id) === target
    },
  }
}
